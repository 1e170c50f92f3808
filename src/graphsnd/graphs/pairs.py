"""The unordered pairs of n agents, numbered 0 .. n(n-1)/2 - 1 in lexicographic order.

A random design samples numbers, not pairs; sorted numbers unrank to sorted edges, so nothing has to be sorted twice.
These functions trust their input: they run on whatever device it is on and never synchronise it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LISTED = 512  # agents whose pairs are kept in a table, 2 MB at most


def pair_count(n: int) -> int:
    """Return the number of unordered pairs of ``n`` agents, n(n-1)/2."""
    return n * (n - 1) // 2


def rank(edges: Tensor, n: int) -> Tensor:
    """Return the lexicographic number of each pair ``i < j``.

    Args:
        edges: int64 ``[..., 2]``, each row a pair with i < j.
        n: The number of agents.

    Returns:
        int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.

    Example:
        >>> rank(torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2]]), 4)
        tensor([0, 1, 2, 3])
    """
    i, j = edges.unbind(-1)
    return i * (2 * n - i - 1) // 2 + (j - i - 1)


def unrank(index: Tensor, n: int) -> Tensor:
    """Return the pair with a given lexicographic number, the inverse of :func:`rank`.

    Args:
        index: int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.
        n: The number of agents; exact up to about a billion.

    Returns:
        int64 ``[..., 2]``, each row a pair with i < j.

    Example:
        >>> unrank(torch.tensor([0, 3, 5]), 4).tolist()
        [[0, 1], [1, 2], [2, 3]]
    """
    if index.device.type == "cpu" and n <= LISTED:
        return torch.from_numpy(_listed(n).take(index.numpy(), axis=0))
    return _unrank(index, n)


@lru_cache(maxsize=16)
def _listed(n: int) -> NDArray[np.int64]:
    """Return all pairs of a small team: reading them costs a tenth of computing them."""
    listed: NDArray[np.int64] = _unrank(torch.arange(pair_count(n), device="cpu"), n).numpy()
    return listed


def _unrank(index: Tensor, n: int) -> Tensor:
    from_end = pair_count(n) - 1 - index
    # Counted from the last pair, row k = n - 2 - i begins at the triangular number k(k+1)/2, which a square root finds.
    k = ((torch.sqrt(8.0 * from_end.double() + 1.0) - 1.0) / 2.0).long()
    if n > 2**25:
        # Past 2**53 the argument of the root is rounded, and the floor may land one row off on either side.
        k = torch.where(k * (k + 1) >> 1 > from_end, k - 1, k)
        k = torch.where((k + 1) * (k + 2) >> 1 <= from_end, k + 1, k)
    return torch.stack([n - 2 - k, n - 1 - from_end + (k * (k + 1) >> 1)], -1)


def others(ranks: Tensor, n: int) -> Tensor:
    """Return the ranks of the pairs that ``ranks`` leaves out, in order; n(n-1)/2 bytes of memory.

    Example:
        >>> others(torch.tensor([0, 2, 4]), 4)
        tensor([1, 3, 5])
    """
    absent = torch.ones(pair_count(n), dtype=torch.bool, device=ranks.device)
    absent[ranks] = False
    return absent.nonzero().squeeze(1)


def keys(i: Tensor, j: Tensor, n: int) -> Tensor:
    """Return one integer per unordered pair, ordered as the pairs are; cheaper than :func:`rank`, defined for i = j."""
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
