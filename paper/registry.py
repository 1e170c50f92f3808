"""The experiments by name; a module is imported when its experiment is needed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from graphsnd.errors import check_choice
from paper.experiment import Experiment

# In the order of the paper, then what the paper does not have.
NAMES = (
    "recovery", "unbiasedness", "concentration", "training", "timing", "construction", "expanders", "theory", "mpe",
    "dico-10", "dico-50", "designs",
)  # fmt: skip


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
    experiment: Experiment[Any, Any] = importlib.import_module(f"paper.{name.replace('-', '_')}").EXPERIMENT
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
        check_choice("name", name, NAMES)
    return tuple(name for name in NAMES if name in names or not names)
