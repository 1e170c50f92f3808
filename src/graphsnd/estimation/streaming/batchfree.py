"""What each observation adds, computed so that on a CPU the bits do not depend on its batch."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Points
from graphsnd.kernels import separable
from graphsnd.kernels.dispatch import obstacle

ROWS = 16  # observations below which the compiled kernel sums in another order


def totals(points: Points) -> Tensor:
    """Sum over all pairs for each observation ``[observations]``, on a CPU the same bits in every batch."""
    if points.values.is_cuda:
        return kernels.pair_totals(points)
    if separable.applies(points) or obstacle("cpu", points):
        # A matrix product may sum in another order for other numbers of rows; a single row has only one.
        return torch.cat([kernels.pair_totals(points.slice(o, o + 1)) for o in range(points.observations)])
    missing = max(0, ROWS - points.observations)
    values = torch.cat([points.values, points.values[-1:].expand(missing, -1, -1)])
    return kernels.pair_totals(Points(values, points.norm, points.dtype), backend="cpu")[: points.observations]


def distances(points: Points, edges: Tensor) -> Tensor:
    """Distance along each edge ``[observations, m]``; every distance is computed for itself."""
    edges = edges.to(points.values.device)
    if edges.shape[0] == 0:
        return points.values.new_zeros((points.observations, 0), dtype=torch.float64)
    if not points.values.is_cuda and obstacle("cpu", points):
        rows = [points.slice(o, o + 1) for o in range(points.observations)]
        return torch.cat([kernels.observation_edges(row, edges[None], backend="reference") for row in rows])
    backend = "auto" if points.values.is_cuda else "cpu"
    return kernels.observation_edges(points, edges.expand(points.observations, -1, -1), backend=backend)


def radii(points: Points) -> Tensor:
    """Distance of each agent to the mean agent, ``[observations, agents]``."""
    centers = torch.cat([points.slice(o, o + 1).center().values for o in range(points.observations)])
    both = Points(torch.cat([points.values, centers], dim=1), points.norm, points.dtype)
    others = torch.arange(points.agents, device=points.values.device)
    return distances(both, torch.stack([others, torch.full_like(others, points.agents)], dim=1))
