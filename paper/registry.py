"""The experiments by name; a module is imported when its experiment is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

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
    "mpe",
    "dico-10",
    "dico-50",
    "designs",
)


def find(name: str) -> Experiment:
    """One experiment.

    Args:
        name: One of :data:`NAMES`.

    Raises:
        InputError: For another name, or one whose module this installation lacks.

    Example:
        >>> find("expander")
        Traceback (most recent call last):
        graphsnd.errors.InputError: Expected `name` to be one of recovery, unbiasedness, concentration, training, \
timing, construction, expanders, mpe, dico-10, dico-50, designs, got 'expander'.
    """
    check_names([name])
    path = f"paper.{name.replace('-', '_')}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise  # something that the module needs is missing, and says so itself
        raise InputError("name", "of an experiment that is installed", f"{name!r}: there is no module {path}") from None
    found = getattr(module, "EXPERIMENT", None)
    if not isinstance(found, Experiment) or found.name != name:
        raise InputError("name", f"with an EXPERIMENT called {name!r} in {path}", repr(found))
    return found


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """These names without repetitions, in the order of :data:`NAMES`; all of them when there are none.

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
