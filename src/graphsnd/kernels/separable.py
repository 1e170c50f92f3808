r"""All-pairs totals without pairs, where the norm is a sum over features of absolute differences.

For sorted values :math:`y_{(1)} \le \dots \le y_{(n)}`,

.. math:: \sum_{i<j} |y_i - y_j| = \sum_k (2k - n - 1)\, y_{(k)},

so half-L1 distances (total variation) of any number of features, and Euclidean distances of one, cost
O(n log n) for each observation instead of O(n^2). A million agents are ordinary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels.threads import run_threads, split_range

CHUNK = 1 << 22  # values sorted at a time


def pair_totals(points: Points) -> torch.Tensor:
    """Sum of the distances over all pairs, for each observation: ``[observations]``, float64, differentiable."""
    totals = _SortedTotals.apply(points.values)
    return totals / 2 if points.norm is Norm.HALF_L1 else totals


class _SortedTotals(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        n = x.shape[1]
        ranks = torch.arange(n, dtype=torch.float64, device=x.device) * 2 - (n - 1)
        return torch.cat([_weighted(_sorted(columns), ranks).sum(dim=1) for columns in _columns(x.detach())])

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        # d/dy_i = (how many are smaller) - (how many are larger): equal agents pull neither way.
        parts = []
        for columns in _columns(x):
            ordered = _sorted(columns)
            smaller = torch.searchsorted(ordered, columns, right=False)
            larger = x.shape[1] - torch.searchsorted(ordered, columns, right=True)
            parts.append((smaller - larger).transpose(1, 2))
        return (torch.cat(parts) * grad.reshape(-1, 1, 1)).to(x.dtype)


def _columns(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Chunks ``[observations, features, agents]``, agents contiguous."""
    step = max(1, CHUNK // (x.shape[1] * x.shape[2]))
    for start in range(0, x.shape[0], step):
        yield x[start : start + step].transpose(1, 2).contiguous()


def _sorted(columns: torch.Tensor) -> torch.Tensor:
    if columns.is_cuda:
        return columns.sort(dim=-1).values
    # NumPy sorts with vector instructions and without the permutation that torch always computes.
    rows = columns.numpy().reshape(-1, columns.shape[-1]).copy()
    if rows.size < 1 << 16:
        rows.sort(axis=-1)
    else:
        run_threads(lambda i, j: rows[i:j].sort(axis=-1), split_range(len(rows)))
    return torch.from_numpy(rows).reshape(columns.shape)


def _weighted(ordered: torch.Tensor, ranks: torch.Tensor) -> torch.Tensor:
    # Measured from the smallest value: equal agents then give an exact 0, and nothing large cancels.
    values = ordered.double()
    return (values - values[..., :1]) @ ranks
