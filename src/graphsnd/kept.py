"""A cache of results computed from a tensor, such as the order of a graph's edges, for the next call."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

Made = TypeVar("Made")
_KEPT: Any = WeakTensorKeyDictionary()  # for each tensor its version, and what was made of that


def keep(tensor: Tensor, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return what ``make`` returns, or what it returned before for the same tensor and key.

    It is made again once the tensor has been written to, and each time where that cannot be seen (inference tensors,
    torch.compile) or where it has a gradient. It goes with the tensor, so it must not refer to it.

    Example:
        >>> import torch
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> keep(edges, "sum", lambda: int(edges.sum())), keep(edges, "sum", lambda: 0)
        (4, 4)
    """
    if tensor.is_inference() or tensor.requires_grad or torch.compiler.is_compiling():
        return make()
    version, known = _KEPT.get(tensor, (None, {}))
    if version != tensor._version:
        known = {}
        _KEPT[tensor] = (tensor._version, known)
    if key not in known:
        known[key] = make()
    return known[key]


def place(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a tensor on a device; a copy is kept, so that a graph on the CPU is copied to a GPU once.

    Example:
        >>> import torch
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> place(edges, edges.device) is edges
        True
    """
    return tensor if tensor.device == device else keep(tensor, device, lambda: tensor.to(device))
