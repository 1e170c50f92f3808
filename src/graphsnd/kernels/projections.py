r"""Sums over all pairs of :math:`|u \cdot (x_i - x_j)|` for given directions, without visiting pairs.

Along one direction, agents are numbers :math:`y_i`, and a sort gives the sum (see :mod:`graphsnd.kernels.separable`).
For large teams on a CPU there is something faster than sorting. Lay a grid of width w over the line, shifted by a
uniformly random part of w: the number of grid lines between two agents is :math:`|y_i - y_j| / w` on average,
*exactly*, whatever w. With :math:`C_b` agents below line b,

.. math:: \mathbb{E}\Big[ w \sum_b C_b (n - C_b) \Big] = \sum_{i<j} |y_i - y_j|,

so a histogram, O(n), replaces the sort and no bias comes in. The rounding of a single agent is at most w and averages
out over agents: with 2 048 lines and 10 000 agents the sum is off by about 1e-5, far less than by the choice of the
direction. Where outliers would stretch the grid so far that the middle half of the team spans only a few of its
cells, the row is sorted instead; that decision does not depend on the shift, so it does not bias either.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import torch

from graphsnd.behavior import Norm, Points
from graphsnd.kernels import separable
from graphsnd.kernels.dispatch import available
from graphsnd.kernels.threads import run_threads, split_range

COUNTED = 2048  # agents from which a histogram beats a sort
CHUNK = 1 << 24  # projected values held at a time
CACHED = 1 << 17  # the same, for a thread that sorts


def projected_totals(x: torch.Tensor, directions: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Sum over pairs of the distance along each direction, differentiable.

    Args:
        x: ``[observations, agents, features]``.
        directions: ``[observations, k, features]``, float64.
        generator: Shifts the grids; not used where rows are sorted.

    Returns:
        ``[observations, k]``, float64.
    """
    differentiable = x.requires_grad and torch.is_grad_enabled()
    compiled = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and available()["cpu"] is None
    if differentiable or not compiled or x.shape[2] < 2:
        return _torch_totals(x, directions)
    x = x.detach()
    if x.shape[1] < COUNTED:
        return _sort_totals(x, directions)
    shift = torch.rand(directions.shape[:2], generator=generator, dtype=torch.float64, device=generator.device)
    totals = _count_totals(x, directions, shift.to(x.device))
    unresolved = totals.isnan().any(dim=1)
    if bool(unresolved.any()):
        # Whole observations: which of their rows the histogram could resolve says nothing about the shift.
        totals[unresolved] = _sort_totals(x[unresolved], directions[unresolved])
    return totals


def _count_totals(x: torch.Tensor, directions: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    from graphsnd.kernels.cpu import sorting

    a, u, s = (t.contiguous().numpy() for t in (x, directions.to(x.dtype), shift))
    out: Any = np.empty(u.shape[:2])
    run_threads(lambda i, j: sorting.counted_totals(a, u, s, i, j, out), split_range(x.shape[0]))
    return torch.from_numpy(out)


def _sort_totals(x: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    from graphsnd.kernels.cpu import sorting

    a, u = (t.contiguous().numpy() for t in (x, directions.to(x.dtype)))
    out: Any = np.empty(u.shape[:2])
    # Few enough to stay in a second-level cache between the three steps.
    shares = max(2 * torch.get_num_threads(), -(-x.shape[0] * x.shape[1] * u.shape[1] // CACHED))

    def share(first: int, last: int) -> None:
        y = np.empty((last - first, u.shape[1], a.shape[1]), a.dtype)
        sorting.projected(a, u, first, last, y)
        y.sort(axis=-1)  # NumPy's sort uses vector instructions and leaves the interpreter to other threads
        sorting.weighted(y, first, out)

    run_threads(share, split_range(x.shape[0], shares=shares))
    totals = torch.from_numpy(out)
    if x.dtype is not torch.float64 and not bool(torch.isfinite(totals).all()):
        return _sort_totals(x.double(), directions)  # single precision overflowed
    return totals


def _torch_totals(x: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    step = max(1, CHUNK // (x.shape[1] * directions.shape[1]))
    chunks = zip(x.split(step), directions.split(step), strict=True)
    return torch.cat([_torch_chunk(part, along) for part, along in chunks])


def _torch_chunk(x: torch.Tensor, directions: torch.Tensor) -> torch.Tensor:
    o, n, k = x.shape[0], x.shape[1], directions.shape[1]
    u = directions.to(x.dtype)
    # Seen from agent 0, so that a common offset costs no digits; feature by feature, so that equal agents project
    # to equal numbers and no reduced-precision matrix product comes in.
    seen = x - x[:, :1].detach()
    y = reduce(torch.add, (seen[:, None, :, f] * u[:, :, f, None] for f in range(x.shape[2])))
    if not bool(torch.isfinite(y.detach().sum())) and x.dtype is not torch.float64:
        return _torch_chunk(x.double(), directions)
    lines = y.reshape(o * k, n, 1)
    return separable.pair_totals(Points(lines, Norm.EUCLIDEAN)).reshape(o, k)
