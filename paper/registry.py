"""The experiments by name; a module is imported when its experiment is needed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from graphsnd.errors import InputError
from paper.experiment import Experiment

# In the order of the paper, then what the paper does not have.
NAMES = (
    "recovery",
    "unbiasedness",
    "concentration",
    "training",
    "timing",
    "construction",
    "expanders",
    "theory",
    "mpe",
    "dico-10",
    "dico-50",
    "designs",
)


def find(name: str) -> Experiment[Any, Any]:
    """Return one experiment.

    Args:
        name: One of :data:`NAMES`.

    Raises:
        InputError: For another name.

    Example:
        >>> find("expander")
        Traceback (most recent call last):
        graphsnd.errors.InputError: Expected `name` to be one of recovery, unbiasedness, concentration, training, \
timing, construction, expanders, theory, mpe, dico-10, dico-50, designs, got 'expander'.
    """
    check_names([name])
    module = importlib.import_module(f"paper.{name.replace('-', '_')}")
    experiment = getattr(module, "EXPERIMENT", None)
    if not isinstance(experiment, Experiment) or experiment.name != name:
        raise InputError("name", f"with an EXPERIMENT called {name!r} in {module.__name__}", repr(experiment))
    return experiment


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return these names without repetitions, in the order of :data:`NAMES`; all of them when there are none.

    Raises:
        InputError: For an unknown name.

    Example:
        >>> check_names(["timing", "recovery", "timing"])
        ('recovery', 'timing')
    """
    for name in names:
        if name not in NAMES:
            raise InputError("name", f"to be one of {', '.join(NAMES)}", repr(name))
    return tuple(name for name in NAMES if name in names or not names)
