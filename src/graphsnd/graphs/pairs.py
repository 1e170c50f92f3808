"""Pairs of agents as one integer each."""

from __future__ import annotations

import torch
from torch import Tensor


def keys(i: Tensor, j: Tensor, n: int) -> Tensor:
    """Return one integer per unordered pair, ordered as the pairs are; cheaper than a rank, defined for i = j."""
    return torch.minimum(i, j) * n + torch.maximum(i, j)


def from_keys(values: Tensor, n: int) -> Tensor:
    """Return the pairs ``[..., 2]`` behind :func:`keys`."""
    return torch.stack([values // n, values % n], dim=-1)


def repeats(values: Tensor) -> Tensor:
    """Mark every entry of a 1-D tensor that equals an earlier one.

    Example:
        >>> repeats(torch.tensor([4, 7, 4, 4])).tolist()
        [False, False, True, True]
    """
    ordered, order = values.sort(stable=True)
    repeated = torch.zeros_like(values, dtype=torch.bool)
    repeated[order[1:]] = ordered[1:] == ordered[:-1]
    return repeated
