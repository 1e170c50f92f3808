"""Errors, and the argument checks that every stage uses.

Every message names the argument, what was expected, what came, and the fix. The command line turns
:class:`InputError` and :class:`MissingExtraError` into one line and exit code 2; anything else is a bug. Arguments are
checked once, by the public function that takes them; what is behind it trusts its input.
"""

from __future__ import annotations

import importlib
import math
import operator
import re
import warnings
from collections.abc import Collection
from numbers import Real
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch  # at run time inside the checks of tensors: the command line's help does without


class InputError(ValueError):
    """An argument that graphsnd cannot accept."""

    def __init__(self, name: str, expected: str, got: object, fix: str = "") -> None:
        """Compose ``Expected `name` <expected>, got <got>. <fix>``."""
        self.name = name
        super().__init__(f"Expected `{name}` {expected}, got {got}.{' ' + fix if fix else ''}")


class EmptyDrawError(InputError):
    """A random graph came out without edges, so there is no mean over them."""


class MissingExtraError(ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, project: str) -> None:
        """Name the project that brings ``package``; not our extra, whose name pip knows only where it found us."""
        super().__init__(f"This needs `{package}`. Install it with: pip install {project}")


def require(package: str, project: str) -> ModuleType:
    """Import and return an optional ``package``, or raise an error that names the project to install for it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, project) from error


# Control characters, marks that reverse the direction of text, and bytes of file names that are not UTF-8.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return ``text`` as terminals, pages and figures may show it: one line that cannot steer them.

    Example:
        >>> printable("team\x1b[2J\n.npz")
        'team\ufffd[2J\ufffd.npz'
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def shape_of(tensor: torch.Tensor) -> str:
    """Return the shape as it reads in a message: ``shape (4096, 16, 2)``."""
    return f"shape {tuple(tensor.shape)}"


def as_tensor(value: Any) -> Any:
    """Return an array of numbers from another library as a tensor that shares its memory; anything else as it is.

    Arrays are what has ``__dlpack__`` (JAX, CuPy) or ``__array__`` (NumPy, pandas). What torch cannot share is copied:
    negative strides and foreign byte orders.

    Example:
        >>> import numpy as np
        >>> as_tensor(np.zeros((2, 3), dtype=np.float32)).shape, as_tensor([0.0])
        (torch.Size([2, 3]), [0.0])
    """
    import numpy as np
    import torch
    from torch.utils.dlpack import from_dlpack

    if isinstance(value, torch.Tensor):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return from_dlpack(value)
    array = np.asarray(value) if hasattr(value, "__array__") else None
    if array is None or array.dtype.kind not in "biufc":
        return value
    if any(stride < 0 for stride in array.strides) or not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="), order="C")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of arrays that are not writable: no argument is written to
        return torch.from_numpy(array)


def check_rank(name: str, tensor: Any, rank: int, symbolic: str, *, fix: str = "") -> torch.Tensor:
    """Return a tensor or array as a tensor, or raise when it has fewer dimensions than ``rank``.

    Args:
        name: Argument name for the message.
        tensor: What was given.
        rank: The least number of dimensions.
        symbolic: The expected shape, for the message.
        fix: For the message, when there are fewer.
    """
    import torch

    given = as_tensor(tensor)
    if not isinstance(given, torch.Tensor):
        fix = f"Convert with torch.as_tensor({name})."
        raise InputError(name, f"to be a torch.Tensor or an array with shape {symbolic}", type(tensor).__name__, fix)
    if given.dim() < rank:
        raise InputError(name, f"with shape {symbolic}", shape_of(given), fix)
    return given


def check_finite(name: str, tensor: torch.Tensor) -> None:
    """Raise when ``tensor`` holds NaN or infinite values; the message has their number and the first index."""
    import torch

    # One reduction and one host read on the happy path; the search for the culprit only runs when there is one.
    if bool(torch.isfinite(tensor.detach().sum())) or bool(torch.isfinite(tensor.detach()).all()):
        return
    bad = ~torch.isfinite(tensor.detach())
    first = tuple(bad.nonzero()[0].tolist())
    raise InputError(
        name,
        "to be finite everywhere",
        f"{int(bad.sum())} NaN or infinite values, the first at index {first}",
        "Look for a diverged policy or an unmasked padding step.",
    )


def number(value: Any) -> float:
    """Return ``value`` as a float, or NaN when it is not a real number: NaN fails every comparison with a range."""
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan


def check_integer(name: str, value: Any, expected: str, *, low: int, high: int | None = None, fix: str = "") -> int:
    """Return ``value`` as an int, or raise unless it is an integer in ``low .. high``; a bool is none."""
    try:
        integer = operator.index(value)
    except (TypeError, ValueError):
        raise InputError(name, expected, f"{value!r} of type {type(value).__name__}", fix) from None
    if isinstance(value, bool) or integer < low or (high is not None and integer > high):
        raise InputError(name, expected, repr(value), fix)
    return integer


def check_agents(n: Any) -> int:
    """Return the number of agents, or raise when there is no pair."""
    return check_integer("n", n, "to be an integer, at least 2 agents", low=2)


def check_positive(name: str, value: Any, fix: str = "") -> None:
    """Raise unless ``value`` is a finite number above 0."""
    if not 0 < number(value) < math.inf:
        raise InputError(name, "to be a finite number above 0", repr(value), fix)


def check_degree(n: int, degree: Any) -> int:
    """Return the degree, or raise unless some graph on ``n`` agents has it at every agent."""
    degree = check_integer("degree", degree, f"to be an integer in 1 .. n-1 = {n - 1}", low=1, high=n - 1)
    if n * degree % 2:
        fix = f"Use degree {degree + 1}, or one agent more."
        raise InputError("degree", "such that n * degree is even", f"n = {n} and degree = {degree}", fix)
    return degree


def check_inclusion(name: str, value: Any) -> float:
    """Return a probability, or raise unless it is in (0, 1]."""
    if not 0.0 < number(value) <= 1.0:
        fix = "A pair that can never be drawn has no estimate."
        raise InputError(name, "to be a probability in (0, 1]", repr(value), fix)
    return number(value)


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise InputError(name, f"to be one of {', '.join(choices)}", repr(value))
