"""Exact sums over observations that ranks hold, or whose agents they hold: the same bits as in one process."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.distributed.ranks import Note, Ranks, brief
from graphsnd.distributed.shards import read_distance, start
from graphsnd.errors import InputError
from graphsnd.estimation import SndAccumulator
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.estimation.exactsum import LIMBS
from graphsnd.estimation.intervals import check_clusters


def accumulate(
    accumulator: SndAccumulator, behavior: Behavior | None, clusters: Tensor | None = None, *, group: Any = None
) -> None:
    """Add a batch of observations whose agents are spread over ranks; :func:`merge` has the result.

    A collective call. Each rank's accumulator takes the rank's share of the observations. With observations spread
    over the ranks, each calls :meth:`~graphsnd.SndAccumulator.update` on its own.

    Args:
        accumulator: Of this rank, for the agents of the whole team; is changed.
        behavior: What this rank's agents would do on observations that all ranks share; None for no agents.
        clusters: One integer for each observation, the same on every rank, where the accumulator was made with
            ``clusters=True``.
        group: A process group; all processes when None.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments; nothing was added then.
    """

    @checked
    def describe(
        accumulator: SndAccumulator, behavior: Behavior | None, clusters: Tensor | None
    ) -> tuple[Note, Behavior | None, Distance | None]:
        if (clusters is not None) != accumulator.clusters:
            raise InputError("clusters", "given" if accumulator.clusters else "to be None", clusters)
        known = accumulator.family
        family = known if behavior is None else type(behavior).__name__
        if known not in (None, family):
            raise InputError("behavior", f"to be {known}, as before", family)
        if behavior is not None and clusters is not None:
            check_clusters(clusters, behavior.observations)
        note = _describe(accumulator, "accumulate") | {"family": family, "clusters": brief(clusters)}
        return note, behavior, accumulator.distance

    call, notes = start(lambda: describe(accumulator, behavior, clusters), "agents", group)
    shards, rank = call.shards, call.ranks.rank
    assert shards is not None
    if call.agents != accumulator.agents:
        raise InputError("behavior", f"of {accumulator.agents} agents over all ranks", call.agents)
    accumulator.family = _first(notes, "family")
    accumulator.distance = accumulator.distance or getattr(behavior, "distance", None) or read_distance(notes)
    groups = None if clusters is None else check_clusters(clusters, call.observations)
    for parts in shards.rounds():
        points = shards.turn([call.points.values.detach()[a:b] for a, b in parts])
        accumulator._take(points, None if groups is None else groups[slice(*parts[rank])])


def merge(accumulator: SndAccumulator, *, group: Any = None) -> SndAccumulator:
    """Return what the accumulators of all ranks have collected, the same on every rank; none is changed.

    A collective call. Sums are exact, so on CPUs the result has the bits that one accumulator would have.

    Args:
        accumulator: Of this rank.
        group: A process group; all processes when None.

    Raises:
        InputError: On all ranks, where they measure different things.

    Example:
        >>> import graphsnd as gs
        >>> accumulator = gs.SndAccumulator(3)
        >>> accumulator.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> print(gs.distributed.merge(accumulator).compute())
        SND 4 (exact over 3 pairs, 1 shared observations)
    """
    ranks = Ranks.of(group)

    @checked
    def describe(accumulator: SndAccumulator) -> tuple[Note, dict[str, Any]]:
        state = accumulator.state()
        note = _describe(accumulator, "merge") | {"family": state["family"], "distance": brief(accumulator.distance)}
        own = {"groups": len(state["ids"]), **{name: state[name] for name in ("observations", "top", "own_top")}}
        return note | {"clusters": state["clusters"], "own": own}, state

    notes, state = ranks.agree(lambda: describe(accumulator))
    distance, names = accumulator.distance or read_distance(notes), ("sums", "ids", "sizes", "own")
    state |= {"family": _first(notes, "family"), "distance": distance and repr(distance)}
    flat = torch.cat([state[name].flatten() for name in names])
    shapes = [(LIMBS, -1), (-1,), (-1,), (LIMBS, -1)]
    sizes = [
        [state["sums"].numel(), count, count, LIMBS * count] for count in (note["own"]["groups"] for note in notes)
    ]
    merged = []
    for note, size, sent in zip(
        notes, sizes, ranks.exchange([flat] * ranks.size, [(sum(s),) for s in sizes]), strict=True
    ):
        tensors = (part.reshape(shape) for part, shape in zip(sent.split(size), shapes, strict=True))
        theirs = state | note["own"] | dict(zip(names, tensors, strict=True))
        merged.append(SndAccumulator.from_state(theirs, graph=accumulator.graph, distance=distance))
    return reduce(SndAccumulator.merge, merged)


def _describe(accumulator: SndAccumulator, call: str) -> Note:
    return {"call": call, "team": accumulator.agents, "graph": fingerprint(accumulator.graph)}


def _first(notes: list[Note], name: str) -> Any:
    return next((note[name] for note in notes if note[name] is not None), None)
