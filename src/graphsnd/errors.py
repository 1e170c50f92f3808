"""What goes wrong at the public boundary, said so that it can be mended.

Every message names the argument, what was expected, what came, and the fix. The command line turns
:class:`InputError` and :class:`MissingExtraError` into one line and exit code 2; anything else is a bug.
"""

from __future__ import annotations

import importlib
from types import ModuleType

import torch


class InputError(ValueError):
    """An argument that graphsnd cannot accept."""

    def __init__(self, name: str, expected: str, got: object, fix: str = "") -> None:
        """Compose ``Expected `name` <expected>, got <got>. <fix>``."""
        self.name = name
        super().__init__(f"Expected `{name}` {expected}, got {got}.{' ' + fix if fix else ''}")


class EmptyDrawError(InputError):
    """A random graph without edges, of which there is no mean."""


class MissingExtraError(ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        """Name the extra that brings ``package``."""
        super().__init__(f"This needs `{package}`. Install it with: pip install 'graphsnd[{extra}]'")


def require(package: str, extra: str) -> ModuleType:
    """Import an optional ``package`` or say which extra brings it."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra) from error


def shape_of(tensor: torch.Tensor) -> str:
    """The shape as people write it: ``(4096, 16, 2)``."""
    return f"shape {tuple(tensor.shape)}"


def check_rank(name: str, tensor: torch.Tensor, rank: int, symbolic: str) -> None:
    """Raise unless ``tensor`` has at least ``rank`` dimensions."""
    if not isinstance(tensor, torch.Tensor):
        raise InputError(name, f"to be a torch.Tensor with shape {symbolic}", type(tensor).__name__)
    if tensor.dim() < rank:
        raise InputError(name, f"with shape {symbolic}", shape_of(tensor))


def check_finite(name: str, tensor: torch.Tensor) -> None:
    """Raise when ``tensor`` holds NaN or infinite values, saying how many and where the first one is."""
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
