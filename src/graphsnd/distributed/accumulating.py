"""Sums over observations that ranks hold, or whose agents they hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.behavior.behavior import as_distance
from graphsnd.distributed.ranks import Note, Ranks, shorten
from graphsnd.distributed.shards import find_distance, find_entry, make_shards
from graphsnd.errors import InputError, as_tensor, check_clusters
from graphsnd.estimation import SndAccumulator
from graphsnd.estimation.accumulator import TENSORS, fingerprint


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
        InputError: On all ranks, where one of them has other or wrong arguments; nothing was added then.

    Example:
        >>> import torch, graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))  # of this rank
        >>> gs.distributed.accumulate(accumulator, team)
        >>> gs.distributed.merge(accumulator).compute().value
        4.0
    """

    def describe() -> Note:
        note = _describe(accumulator, "accumulate")
        accumulator._check_batch(behavior, clusters)
        return note | {"cluster ids": shorten(as_tensor(clusters))}

    known = getattr(accumulator, "distance", None)
    shards = make_shards(describe, behavior, known, "agents", group)
    if shards.agents != accumulator.agents:
        raise InputError("behavior", f"of {accumulator.agents} agents over all ranks", shards.agents)
    groups = check_clusters(clusters, shards.batch_shape)
    accumulator.distance = find_distance(shards.notes, as_distance(behavior, known) if behavior else known)
    accumulator.family = find_entry(shards.notes, "family")
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
    ranks = Ranks.of(group)

    def prepare() -> tuple[Note, tuple[dict[str, Any], bytes]]:
        note, state = _describe(accumulator, "merge"), accumulator.state()
        message = save({name: state[name].contiguous() for name in TENSORS})
        own = {"bytes": len(message), "observations": state["observations"]}
        return note | {"own": own}, (state, message)

    notes, (state, message) = ranks.agree(prepare)
    distance = find_distance(notes, accumulator.distance)
    state |= {"family": find_entry(notes, "family"), "distance": distance and repr(distance)}
    sent = torch.frombuffer(bytearray(message), dtype=torch.uint8)
    parts = ranks.exchange([sent] * ranks.size, [(note["own"]["bytes"],) for note in notes])
    states = (state | note["own"] | load(bytes(part.tolist())) for note, part in zip(notes, parts, strict=True))
    made = [SndAccumulator.from_state(each, graph=accumulator.graph, distance=distance) for each in states]
    return reduce(SndAccumulator.merge, made)


def _describe(accumulator: SndAccumulator, call: str) -> Note:
    note = {"call": call, "team": accumulator.agents, "graph": fingerprint(accumulator.graph)}
    note |= {"family": accumulator.family, "distance": shorten(accumulator.distance)}
    return note | {"clusters": accumulator.clusters}
