"""A certified upper bound on every behavioural distance, in O(n)."""

from __future__ import annotations

import torch

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance, Norm, Points, default_distance, embed


def diameter(behavior: Behavior, distance: Distance | None = None) -> float:
    """D_max that holds for certain: the sum of the two largest distances to the mean agent.

    By the triangle inequality d(i, j) <= d(i, c) + d(c, j) for any point c; at most twice the true largest
    distance. Where the distance has a maximum of its own (total variation: 1), the smaller of the two. Where the
    distance is no norm of a difference (Jensen-Shannon, Bures), the mean may be far from everybody, so the agent
    nearest to it is tried as c too.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        distance: Distance object; the family's default when None.

    Returns:
        The bound.

    Example:
        >>> import graphsnd as gs
        >>> round(diameter(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))), 3)
        6.0
    """
    bound = points_diameter(embed(behavior, distance))
    maximum = (distance or default_distance(behavior)).maximum
    return bound if maximum is None else min(bound, maximum)


def points_diameter(points: Points) -> float:
    """The same for points that are already embedded."""
    with_center = Points(torch.cat([points.values, points.center().values], dim=1).detach(), points.norm)
    radii = _radii(with_center, points.agents)
    bound = float(radii.topk(2).values.sum())
    if points.norm in (Norm.SQRT_JS, Norm.BURES):
        bound = min(bound, float(_radii(with_center, int(radii.argmin())).topk(2).values.sum()))
    # Rounded up by more than the rounding of the distances, so that "certified" survives float32.
    slack = 1 + 16 * torch.finfo(points.result_dtype).eps
    return bound * slack


def _radii(points: Points, center: int) -> torch.Tensor:
    """Distances of all but the last agent to agent ``center``."""
    others = torch.arange(points.agents - 1, device=points.values.device)
    return kernels.edge_sums(points, torch.stack([others, torch.full_like(others, center)], dim=1))
