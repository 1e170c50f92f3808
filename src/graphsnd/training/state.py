"""Going back to where tensors by name were taken; both trainers do."""

from __future__ import annotations

from torch import Tensor

from graphsnd.errors import InputError


def copy_into(mine: dict[str, Tensor], tensors: dict[str, Tensor]) -> None:
    """Copy every tensor over the one of the same name.

    Raises:
        InputError: When names or shapes differ.
    """
    for name in sorted(mine.keys() | tensors.keys()):
        if name not in mine or name not in tensors or mine[name].shape != tensors[name].shape:
            got = f"shape {tuple(tensors[name].shape)}" if name in tensors else "nothing"
            expected = f"with {name} of shape {tuple(mine[name].shape)}" if name in mine else f"without {name}"
            raise InputError("checkpoint", expected, got)
        mine[name].copy_(tensors[name])


def below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those whose names begin with ``prefix``, without it.

    Example:
        >>> below("a.", {"a.b": 1, "c": 2})
        {'b': 1}
    """
    return {name.removeprefix(prefix): part for name, part in tensors.items() if name.startswith(prefix)}
