"""Random placement with a minimum distance.

Points are placed one after the other. Each is drawn again until it is far enough from all earlier ones. That is the
same as one stream of proposals in which a proposal is kept if it is far enough from all that were kept before. So a
whole block of the stream can be decided at once, for all environments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.graphs.random import source
from graphsnd.rl.worlds.physics import near_pairs

OPEN, KEPT, DROPPED = 0, 1, 2
Half = tuple[float, float]


def scatter_apart(generator: torch.Generator | int, environments: int, count: int, half: Half, apart: float) -> Tensor:
    """Draw ``count`` points in each environment, uniform given that no two are closer than ``apart``.

    Uniform in the sense of drawing in sequence: each point is uniform on what the earlier ones leave free.

    Args:
        generator: Random generator; an int is a seed.
        environments: Number of independent draws.
        count: Number of points in each environment.
        half: Half sides of the box around the origin.
        apart: The smallest distance between two points.

    Returns:
        float32 ``[environments, count, 2]`` on the CPU.

    Raises:
        InputError: When they do not fit.

    Example:
        >>> points = scatter_apart(0, 2, 5, (1.0, 1.0), 0.3)
        >>> bool((torch.pdist(points[0]) >= 0.3).all())
        True
    """
    rng, _ = source(generator, None, host=True)
    size = torch.tensor(half)
    placed = torch.zeros(environments, count, 2)
    filled = torch.zeros(environments, dtype=torch.long)
    patience = 20_000 + 100 * count
    while patience > 0:
        missing = (filled < count).nonzero()[:, 0]
        if not len(missing):
            return placed
        # Twice the missing number: proposals stay sparse enough that close pairs are few.
        width = max(count, 2 * (count - int(filled.min()))) + 16
        patience -= width
        drawn = torch.rand(len(missing), width, 2, generator=rng, device=rng.device).cpu()
        placed[missing], filled[missing] = _place(placed[missing], filled[missing], (2 * drawn - 1) * size, apart)
    left, (x, y) = count - int(filled.min()), half
    expected = f"to hold {count} agents and goals at least {apart:g} apart"
    got, fix = f"{x:g}, {y:g}, where {left} found no place", "Use a larger world, smaller agents, or fewer."
    raise InputError("world_spawning_x, world_spawning_y", expected, got, fix)


def _place(placed: Tensor, filled: Tensor, proposals: Tensor, apart: float) -> tuple[Tensor, Tensor]:
    """Go through the proposals ``[E, width, 2]`` in order and keep those that fit."""
    count = placed.shape[1]
    points = torch.cat([placed, proposals], 1)
    column = torch.arange(points.shape[1])
    before = column < filled[:, None]
    present = before | (column >= count)
    group = present.nonzero()[:, 0]
    status = _keep_greedily(points[present], group, torch.where(before, KEPT, OPEN)[present], apart)
    kept = torch.zeros_like(present)
    kept[present] = status == KEPT
    place = kept.cumsum(1) - 1
    kept &= place < count
    row = kept.nonzero()[:, 0]
    result = torch.zeros_like(placed)
    result[row, place[kept]] = points[kept]
    return result, kept.sum(1)


def _keep_greedily(points: Tensor, group: Tensor, status: Tensor, apart: float) -> Tensor:
    """Keep each open point that is not too close to an earlier kept point of its group, in the order of indices."""
    low, high = near_pairs(points, group, apart)
    forbids = torch.linalg.vector_norm(points[low] - points[high], dim=1) < apart
    low, high = low[forbids], high[forbids]
    # A point is decided once all earlier ones near it are: the number of rounds is the longest such chain.
    while bool((status == OPEN).any()):
        waiting = torch.zeros_like(status, dtype=torch.bool)
        waiting[high[status[low] == OPEN]] = True
        status[high[(status[low] == KEPT) & (status[high] == OPEN)]] = DROPPED
        status[(status == OPEN) & ~waiting] = KEPT
    return status
