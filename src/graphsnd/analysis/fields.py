"""Where do agents differ? SND at single observations, pooled over two of their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError, check_clusters, check_finite, check_integer, check_layout, shape_of
from graphsnd.estimation.intervals import check_confidence, population_error
from graphsnd.metric import by_observation


@dataclass(frozen=True, eq=False)
class Field:
    """SND in the bins of two features; float64 on the CPU.

    Example:
        >>> import torch, graphsnd as gs
        >>> places = torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0))
        >>> right = (places[:, :1] >= 4).float()  # where two agents differ
        >>> field = gs.bin_field(gs.Deterministic(torch.stack([0 * right, right], 1)), places, bins=2)
        >>> field.counts.tolist(), field.snd, field.apart().tolist()
        ([[16, 16], [16, 16]], 0.5, [[-1, -1], [1, 1]])
    """

    edges: tuple[Tensor, Tensor]  # [bins + 1] of each feature, ascending
    counts: Tensor  # int64 [bins, bins], observations; first feature first
    means: Tensor  # [bins, bins], NaN where there are none
    intervals: Tensor  # [bins, bins, 2], for SND at other observations of the bin; NaN where too few to tell
    snd: float  # over all observations
    confidence: float  # of each interval by itself

    def apart(self) -> Tensor:
        """Return where the team surely differs more (1) or less (-1) than on the whole, int64 ``[bins, bins]``."""
        low, high = self.intervals.unbind(-1)  # comparisons with NaN are false
        return (low > self.snd).long() - (high < self.snd).long()


def bin_field(
    source: Behavior | Tensor,
    features: Tensor,
    *,
    bins: int = 12,
    distance: Distance | None = None,
    clusters: Tensor | Sequence[int] | None = None,
    confidence: float = 0.95,
) -> Field:
    """Pool SND over observations that have similar features, such as positions: in which states do the agents differ?

    Each observation is measured over all pairs, so a bin's only error is that other observations of it would have given
    another mean. As everywhere, observations of one episode resemble each other: pass ``clusters``; without them
    contiguous blocks of the bin's observations stand in, and fewer than 16 have no interval.

    Args:
        source: A behaviour, or SND at each observation, as :func:`graphsnd.by_observation` has it.
        features: ``[..., 2]``, of each observation, in the source's shape or flat.
        bins: Of each feature, equally wide.
        distance: Of a behaviour; the family's default when None.
        clusters: Episode of each observation, integers in that shape or flat.
        confidence: Of each interval by itself: of 100 bins, about 5 miss theirs at 0.95.

    Raises:
        InputError: For features of another shape or that are not finite.

    Example:
        >>> import torch, graphsnd as gs
        >>> places = torch.cartesian_prod(torch.arange(8.0), torch.arange(8.0))
        >>> right = (places[:, :1] >= 4).float()  # where two agents differ
        >>> gs.bin_field(gs.Deterministic(torch.stack([0 * right, right], 1)), places, bins=2).means
        tensor([[0., 0.],
                [1., 1.]], dtype=torch.float64)
    """
    with torch.no_grad():
        given = by_observation(source, distance) if isinstance(source, Behavior) else source
    values, places = given.detach().flatten().double().cpu(), features.detach().double().cpu()
    if places.dim() < 2 or places.shape[-1] != 2 or places[..., 0].numel() != len(values) or not len(values):
        raise InputError("features", f"with shape ({max(1, len(values))}, 2), for each observation", shape_of(features))
    check_layout("features", places.shape[:-1], given.shape)
    check_finite("source", values)
    check_finite("features", places)
    check_integer("bins", bins, "in 1 .. 1000", low=1, high=1000)
    confidence, groups = check_confidence(confidence), check_clusters(clusters, given.shape)
    places = places.reshape(-1, 2)
    steps = torch.linspace(0, 1, bins + 1, dtype=torch.float64).unsqueeze(1)
    low, high = places.amin(0), places.amax(0)
    # A feature that is the same everywhere still needs bins of some width.
    low, high = torch.where(low < high, low, low - 0.5), torch.where(low < high, high, high + 0.5)
    edges = (low * (1 - steps) + high * steps).T.contiguous()
    column, row = (torch.bucketize(places[:, k].contiguous(), edges[k, 1:-1], right=True) for k in (0, 1))
    cell = column * bins + row
    counts = torch.bincount(cell, minlength=bins * bins)
    means = torch.zeros(bins * bins, dtype=torch.float64).index_add_(0, cell, values) / counts
    intervals = torch.full((bins * bins, 2), torch.nan, dtype=torch.float64)
    for at in counts.nonzero().flatten().tolist():
        mine = (cell == at).nonzero().flatten()
        own = None if groups is None else groups[mine]
        _, interval = population_error(values[mine], None, own, len(mine), confidence)
        if interval is not None:
            intervals[at] = torch.tensor(interval)
    shape = (bins, bins)
    return Field(
        (edges[0], edges[1]), counts.view(shape), means.view(shape), intervals.view(*shape, 2), float(values.mean()),
        confidence,
    )  # fmt: skip
