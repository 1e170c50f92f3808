"""A team in shards: each rank has all observations of some agents, or some observations of all agents.

Distances need all agents at an observation, so shards of agents are exchanged: rank r is sent what all agents do on the
r-th part of the observations, and measures there, block by block. Kernels, their speed and their bits are then those of
one process, and each shard is sent once; passed around a ring from rank to rank it would be sent ``ranks / 2`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.distances import DISTANCES
from graphsnd.behavior.points import Block, Norm, Points
from graphsnd.distributed.ranks import Note, Ranks, shorten
from graphsnd.errors import InputError, check_choice

BLOCK = 1 << 24  # numbers of all agents that a rank is sent at a time
SHARDS = ("agents", "observations")
NOTHING = {"agents": 0, "observations": 0, "batch_shape": (), "gradient": False}
Part = tuple[int, int]  # observations, from and to


@dataclass(frozen=True, eq=False)
class Shards:
    """What a rank holds of a team, and what all ranks know of it; agents are numbered in the order of the ranks."""

    ranks: Ranks
    local: Points | None  # of this rank, None where it has nothing
    like: Points  # [0, 0, features]: norm, dtypes and device of the points
    shard: str  # "agents" or "observations"
    notes: list[Note]  # of all ranks
    own: list[dict[str, Any]]  # what each rank holds, as NOTHING does
    agents: int  # of the team
    observations: int  # of the team
    gradient: bool  # whether any rank asks for one

    @property
    def batch_shape(self) -> Sequence[int]:
        """How the rank that says most of it lays out the observations that all share; the same on all ranks."""
        return max((each["batch_shape"] for each in self.own), key=len)

    def given(self) -> Tensor:
        """Return the points of this rank, to differentiate at: on all ranks, so that all may call backward."""
        if self.local is not None:
            values = self.local.values
            return values if values.requires_grad else values.detach().requires_grad_()
        shape = (self.observations, 0) if self.shard == "agents" else (0, self.agents)
        return self.like.values.new_empty(*shape, self.like.features).requires_grad_()

    def rounds(self) -> list[list[Part]]:
        """Return the observations that each rank measures, round by round: contiguous and in order for each rank."""
        if self.shard == "observations":
            return [[(0, each["observations"]) for each in self.own]]
        size = self.ranks.size
        ends = [rank * self.observations // size for rank in range(size + 1)]
        rows = max(1, BLOCK // (self.agents * self.like.features))
        count = -(-max(b - a for a, b in pairwise(ends)) // rows)
        cuts = [[a + k * (b - a) // count for k in range(count + 1)] for a, b in pairwise(ends)]
        return [[(cut[k], cut[k + 1]) for cut in cuts] for k in range(count)]

    def blocks(self) -> Iterator[tuple[list[Part], Points]]:
        """Return all agents on this rank's observations, perhaps none, round by round; all ranks do this together."""
        for parts in self.rounds():
            if self.shard == "agents":
                yield parts, self._exchange_agents(parts)
            else:
                none = replace(self.like, values=self.like.values.new_empty(0, self.agents, self.like.features))
                yield parts, none if self.local is None else self.local.detach()

    def _exchange_agents(self, parts: Sequence[Part]) -> Points:
        """Send each rank this one's agents on its part of the observations; return all agents on this rank's."""
        none = self.like.values.new_empty(self.observations, 0, self.like.features)
        values = none if self.local is None else self.local.values.detach()
        start, stop = parts[self.ranks.rank]
        shapes = [(stop - start, each["agents"], self.like.features) for each in self.own]
        return replace(self.like, values=torch.cat(self.ranks.exchange([values[a:b] for a, b in parts], shapes), dim=1))

    def return_gradients(self, slopes: Tensor, parts: Sequence[Part]) -> list[Tensor]:
        """Send gradients at all agents on this rank's part to their owners; return this rank's, part by part."""
        mine = self.own[self.ranks.rank]["agents"]
        shapes = [(b - a, mine, self.like.features) for a, b in parts]
        return self.ranks.exchange(slopes.split([each["agents"] for each in self.own], dim=1), shapes)


def make_shards(
    describe: Callable[[], Note], behavior: Behavior | None, distance: Distance | None, shard: str, group: Any
) -> Shards:
    """Check the arguments on all ranks, and return what they are about to measure.

    Args:
        describe: Checks this rank's arguments; returns what must be alike on all ranks.
        behavior: This rank's shard, which may be one agent; None for none.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group, or None for all processes.

    Raises:
        InputError: On all ranks, where one has wrong or other arguments, and for fewer than two agents.
    """
    ranks = Ranks.of(group)

    def prepare() -> tuple[Note, Points | None]:
        note: Note = {"call": "", "shard": shard, "family": None} | describe()
        check_choice("shard", shard, SHARDS)
        if behavior is None:
            return note | {"distance": shorten(distance), "own": NOTHING}, None
        points = embed(behavior, distance, fewest=1)
        asked = torch.is_grad_enabled() and any(part.requires_grad for part in points.parts)
        own = {"agents": points.agents, "observations": points.observations, "batch_shape": behavior.batch_shape}
        blocks = [(block.norm.value, *astuple(block)[1:]) for block in points.blocks]
        kind = [points.norm.value, str(points.values.dtype)[6:], str(points.dtype)[6:], blocks]
        shared = SHARDS[shard == "agents"]
        chosen = as_distance(behavior, distance)
        note |= {"family": type(behavior).__name__, "distance": shorten(chosen), shared: own[shared]}
        note |= {"features": points.features, "behavior": kind, "device": points.values.device.type}
        return note | {"own": own | {"gradient": asked}}, points

    notes, local = ranks.agree(prepare)
    if find_entry(notes, "behavior") is None:
        raise InputError("behavior", "on at least one rank", "None on all")
    norm, dtype, result, blocks = find_entry(notes, "behavior")
    device = ranks.wire if local is None else local.values.device
    values = torch.empty(0, 0, find_entry(notes, "features"), dtype=getattr(torch, dtype), device=device)
    made = tuple(Block(Norm(name), *rest) for name, *rest in blocks)
    like = Points(values, Norm(norm), getattr(torch, result, None), made)
    own = [note["own"] for note in notes]
    agents, observations = ((sum if shard == name else max)([each[name] for each in own]) for name in SHARDS)
    if agents < 2:
        raise InputError("behavior", "of at least 2 agents over all ranks", agents, "Diversity needs a pair.")
    gradient = any(each["gradient"] for each in own)
    return Shards(ranks, local, like, shard, notes, own, agents, observations, gradient)


def find_entry(notes: Sequence[Note], name: str) -> Any:
    """Return an entry from the notes of the first rank that has it."""
    return next((note[name] for note in notes if note.get(name) is not None), None)


def find_distance(notes: Sequence[Note], own: Distance | None) -> Distance | None:
    """Return the distance of all ranks, also on one that has seen no behaviour.

    Raises:
        InputError: On all ranks, where one does not know it: another than graphsnd's own, as a joint behaviour has.
    """
    text = find_entry(notes, "distance")
    known = {shorten(each): each for each in DISTANCES.values()}.get(text)
    if text is not None and known is None and any(note["distance"] is None for note in notes):
        raise InputError("distance", "also on ranks without agents", None, f"Give them {text}.")
    return own or known
