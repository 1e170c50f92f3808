"""A team in shards: each rank has all observations of some agents, or some observations of all agents.

Distances need all agents at an observation, so shards of agents are turned: rank r is sent what all agents do on the
r-th part of the observations, and measures there, block by block. Kernels, their speed and their bits are then those of
one process, and each shard is sent once; passed around a ring from rank to rank it would be sent ``ranks / 2`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import DISTANCES, Behavior, Distance, Norm, Points, embed
from graphsnd.behavior.distances import check_distance
from graphsnd.behavior.points import Block
from graphsnd.distributed.ranks import Note, Ranks, brief
from graphsnd.errors import InputError

BLOCK = 1 << 24  # numbers of all agents that a rank is sent at a time
SHARDS = ("agents", "observations")
Part = tuple[int, int]  # observations, from and to


@dataclass(frozen=True, eq=False)
class Shards:
    """What all ranks know of a team whose agents are spread over them, numbered in the order of the ranks."""

    ranks: Ranks
    agents: tuple[int, ...]  # of each rank
    observations: int
    like: Points  # [0, 0, features]: norm, dtypes and device of the points

    def rounds(self) -> list[list[Part]]:
        """Return the observations that each rank is sent, round by round: contiguous and in order for each rank."""
        ends = [rank * self.observations // self.ranks.size for rank in range(self.ranks.size + 1)]
        shares = [(a, b - a) for a, b in pairwise(ends)]
        rows = max(1, BLOCK // (sum(self.agents) * self.like.features))
        count = -(-max(size for _, size in shares) // rows)
        return [[(a + k * size // count, a + (k + 1) * size // count) for a, size in shares] for k in range(count)]

    def turn(self, own: Sequence[Tensor]) -> Points:
        """Send each rank this one's agents on its part ``[part, own, features]``; return all agents on this rank's."""
        shapes = [(len(own[self.ranks.rank]), count, self.like.features) for count in self.agents]
        return replace(self.like, values=torch.cat(self.ranks.exchange(own, shapes), dim=1))

    def turn_back(self, slopes: Tensor, parts: Sequence[Part]) -> list[Tensor]:
        """Send gradients at all agents on this rank's part to their owners; return this rank's, part by part."""
        shapes = [(b - a, self.agents[self.ranks.rank], self.like.features) for a, b in parts]
        return self.ranks.exchange(slopes.split(list(self.agents), dim=1), shapes)


def note_points(points: Points | None, family: str) -> Note:
    """Return what all ranks' points have in common; nothing for a rank without."""
    if points is None:
        return {}
    blocks = [(block.norm.value, *astuple(block)[1:]) for block in points.blocks]
    kind = [points.norm.value, str(points.parts[0].dtype)[6:], str(points.dtype)[6:], blocks, points.samples]
    return {"family": family, "behavior": kind, "features": points.features, "device": points.parts[0].device.type}


def read_points(notes: Sequence[Note], points: Points | None, ranks: Ranks) -> Points:
    """Return points like those of the ranks that have any, but of no agents and observations.

    Raises:
        InputError: Where no rank has any.
    """
    note = next((note for note in notes if "behavior" in note), None)
    if note is None:
        raise InputError("behavior", "on at least one rank", "None on all")
    norm, dtype, result, blocks, samples = note["behavior"]
    device = ranks.wire if points is None else points.parts[0].device
    values = torch.empty(0, 0, note["features"], dtype=getattr(torch, dtype), device=device)
    made = tuple(Block(Norm(name), *rest) for name, *rest in blocks)
    return Points(values, Norm(norm), getattr(torch, result, None), made, samples)


def read_distance(notes: Sequence[Note]) -> Distance | None:
    """Return the distance of the other ranks, on one that has seen no behaviour.

    Raises:
        InputError: For one that is not graphsnd's own, as a joint behaviour has.
    """
    chosen = next((note["distance"] for note in notes if note["distance"] is not None), None)
    distance = {brief(each): each for each in DISTANCES.values()}.get(chosen)
    if chosen is not None and distance is None:
        raise InputError("distance", "on a rank without agents", None, f"Give it {chosen}.")
    return distance


@dataclass(frozen=True, eq=False)
class Call:
    """One measurement of shards by all ranks."""

    ranks: Ranks
    shards: Shards | None  # of agents; None for shards of observations
    points: Points  # this rank's shard, perhaps of no agents or no observations
    agents: int  # of the team
    observations: int  # of all ranks
    gradient: bool  # whether any rank asks for one

    def sum(
        self, measure: Callable[[Points], Tensor], shape: Sequence[int], grad: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the sum of a measure over the observations of all ranks, float64; and the gradient at this shard.

        Args:
            measure: Of all agents on some observations, of the given shape, differentiable.
            shape: Of the sum.
            grad: At the sum, the same on all ranks; None for no gradient.
        """
        device = self.points.parts[0].device
        sums = torch.zeros(tuple(shape), dtype=torch.float64, device=device)
        if self.shards is None:
            own, slopes = _measure(self.points, measure, grad)
            return self.ranks.add(sums + own), slopes
        slopes = None if grad is None else torch.empty_like(self.points.values)
        for parts in self.shards.rounds():
            own, there = _measure(self.shards.turn([self.points.values.detach()[a:b] for a, b in parts]), measure, grad)
            sums += own
            if slopes is not None and there is not None:
                for (a, b), back in zip(parts, self.shards.turn_back(there, parts), strict=True):
                    slopes[a:b] = back
        return self.ranks.add(sums), slopes


def _measure(points: Points, measure: Callable[[Points], Tensor], grad: Tensor | None) -> tuple[Any, Tensor | None]:
    if not points.observations:
        return 0.0, None if grad is None else torch.zeros_like(points.values)
    if grad is None:
        with torch.no_grad():
            return measure(points.detach()), None
    with torch.enable_grad():
        values = points.values.detach().requires_grad_()
        sums = measure(replace(points, values=values))
    return sums.detach(), torch.autograd.grad(sums, values, grad.to(sums))[0]


def start(
    describe: Callable[[], tuple[Note, Behavior | None, Distance | None]], shard: str, group: Any
) -> tuple[Call, list[Note]]:
    """Check the arguments on all ranks, and return what they are about to measure with their notes.

    Args:
        describe: Checks this rank's arguments; returns what must be alike on all ranks, the shard and its distance.
        shard: ``agents`` or ``observations``.
        group: A process group, or None for all processes.
    """
    ranks = Ranks.of(group)

    def prepare() -> tuple[Note, Points | None]:
        note, behavior, distance = describe()
        points = None if behavior is None else embed(behavior, distance, fewest=1)
        chosen = distance if behavior is None else check_distance(distance, behavior)
        own = {"agents": 0, "observations": 0, "gradient": False}
        if points is not None and behavior is not None:
            if shard == "observations" and points.observations != behavior.observations:
                raise InputError("distance", "that does not pool observations, which are in shards", distance)
            asked = torch.is_grad_enabled() and any(part.requires_grad for part in points.parts)
            own = {"agents": points.agents, "observations": points.observations, "gradient": asked}
            shared = "observations" if shard == "agents" else "agents"
            note |= {shared: own[shared]}
        note |= {"shard": shard, "distance": brief(chosen), "own": own}
        # In this order, because the first that differs is what users read.
        return {"call": "", "family": None} | note | note_points(points, type(behavior).__name__), points

    notes, points = ranks.agree(prepare)
    like = read_points(notes, points, ranks)
    agents, observations = ([note["own"][name] for note in notes] for name in ("agents", "observations"))
    n, count = (max if shard == "observations" else sum)(agents), (max if shard == "agents" else sum)(observations)
    if n < 2:
        raise InputError("behavior", "of at least 2 agents over all ranks", n, "Diversity needs a pair.")
    if points is None:
        shape = (count, 0) if shard == "agents" else (0, n)
        points = replace(like, values=like.values.new_empty(*shape, like.features))
    shards = Shards(ranks, tuple(agents), count, like) if shard == "agents" else None
    return Call(ranks, shards, points, n, count, any(note["own"]["gradient"] for note in notes)), notes
