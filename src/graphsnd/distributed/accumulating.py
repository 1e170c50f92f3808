"""Sums over observations that ranks hold, or whose agents they hold."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import Any

from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.distributed.ranks import Ranks
from graphsnd.distributed.shards import make_shards
from graphsnd.errors import InputError, as_tensor, check_clusters
from graphsnd.estimation import SndAccumulator
from graphsnd.estimation.accumulator import fingerprint


def accumulate(
    accumulator: SndAccumulator,
    behavior: Behavior | None,
    clusters: Tensor | Sequence[int] | None = None,
    *,
    group: Any = None,
) -> None:
    """Add a batch of observations whose agents are spread over ranks; :func:`merge` has the result.

    A collective call. Each rank's accumulator takes the rank's share of the observations. With observations spread
    over the ranks, each calls :meth:`~graphsnd.SndAccumulator.update` on its own.

    Args:
        accumulator: This rank's accumulator, for the agents of the whole team; it is changed.
        behavior: What this rank's agents would do on observations that all ranks share; None for no agents.
        clusters: One integer for each observation, the same on every rank, where the accumulator was made with
            ``clusters=True``.
        group: A process group; all processes when None.

    Raises:
        InputError: For wrong arguments; on all ranks, where their arguments differ. Nothing was added then.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))  # of this rank
        >>> gs.distributed.accumulate(accumulator, team)
        >>> gs.distributed.merge(accumulator).compute().value
        4.0
    """
    accumulator._check_batch(behavior, clusters)
    alike = {"team": accumulator.agents, "graph": fingerprint(accumulator.graph), "family": accumulator.family}
    alike["clusters"] = None if clusters is None else hash(tuple(as_tensor(clusters).flatten().tolist()))
    shards = make_shards("accumulate", behavior, accumulator.distance, "agents", group, **alike)
    if shards.agents != accumulator.agents:
        raise InputError("behavior", f"of {accumulator.agents} agents over all ranks", shards.agents)
    layout = max((share.batch_shape for share in shards.shares), key=len)  # of the rank that says most of it
    groups = check_clusters(clusters, layout)
    accumulator.distance, accumulator.family = shards.common["distance"], shards.common["family"]
    for parts, points in shards.blocks():
        if points.observations:
            accumulator._add(points, None if groups is None else groups[slice(*parts[shards.ranks.rank])])


def merge(accumulator: SndAccumulator, *, group: Any = None) -> SndAccumulator:
    """Return what the accumulators of all ranks have collected, the same on every rank; none is changed.

    A collective call. The result is that of one accumulator, to rounding, with the same bits on all ranks.

    Args:
        accumulator: This rank's accumulator.
        group: A process group; all processes when None.

    Raises:
        InputError: On all ranks, where they measure different things.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> print(gs.distributed.merge(accumulator).compute())
        SND 4 ± unknown (2-Wasserstein of actions, all 3 pairs, 1 observation)
    """
    return reduce(SndAccumulator.merge, Ranks.of(group).share(copy(accumulator)))
