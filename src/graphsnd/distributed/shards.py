"""A team in shards: each rank has all observations of some agents, or some observations of all agents.

Distances need all agents at an observation, so shards of agents are exchanged: rank r is sent what all agents do on the
r-th part of the observations, and measures there, block by block. Kernels, their speed and their bits are then those of
one process, and each shard is sent once; passed around a ring from rank to rank it would be sent ``ranks / 2`` times.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Points
from graphsnd.errors import InputError, check_choice

T = TypeVar("T")
BLOCK = 1 << 24  # numbers of all agents that a rank is sent at a time
SHARDS = ("agents", "observations")
Part = tuple[int, int]  # observations, from and to


@dataclass(frozen=True, eq=False)
class Ranks:
    """The processes that measure one team together."""

    group: Any  # a ProcessGroup, or None for all processes
    rank: int
    size: int
    wire: torch.device | None  # where the group takes its messages from; None without torch.distributed

    @classmethod
    def of(cls, group: Any) -> Ranks:
        """Return the ranks of a group; one rank where torch.distributed was not started.

        Raises:
            InputError: For a group without this process, and where torchrun started several that have no group yet.
        """
        if not dist.is_available() or not dist.is_initialized():
            if int(os.environ.get("WORLD_SIZE", "1")) > 1:
                fix = "Call torch.distributed.init_process_group first."
                raise InputError("group", "of processes that know each other", "none", fix)
            return cls(None, 0, 1, None)
        rank = dist.get_rank(group)
        if rank < 0:
            raise InputError("group", "that this process belongs to", "another", "Call it on the group's ranks only.")
        wire = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend(group) == "nccl" else "cpu"
        return cls(group, rank, dist.get_world_size(group), torch.device(wire))

    def share(self, own: T) -> list[T]:
        """Return a small object of each rank, in their order."""
        if self.wire is None:
            return [own]
        every: list[Any] = [None] * self.size
        dist.all_gather_object(every, own, group=self.group)
        return every

    def exchange(self, parts: Sequence[Tensor], shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Give each rank its part, and return what each rank gave, whose shapes are known; all of one dtype."""
        if self.wire is None:
            return [parts[0]]
        sent = torch.cat([part.reshape(-1) for part in parts]).to(self.wire)
        sizes = [torch.Size(shape).numel() for shape in shapes]
        got = sent.new_empty(sum(sizes))
        dist.all_to_all_single(got, sent, sizes, [part.numel() for part in parts], group=self.group)
        back = got.to(parts[0].device).split(sizes)
        return [part.view(tuple(shape)) for part, shape in zip(back, shapes, strict=True)]

    def add(self, sums: Tensor) -> Tensor:
        """Return the sum over ranks, the same bits on all."""
        if self.wire is None:
            return sums
        summed = sums.to(self.wire, copy=True)
        dist.all_reduce(summed, group=self.group)
        return summed.to(sums.device)


def find_common(notes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what ranks say alike, by name; None counts as nothing said.

    Raises:
        InputError: Where two ranks say different things, on all ranks that have the notes.
    """
    common: dict[str, Any] = {}
    for rank, note in enumerate(notes):
        for name, value in note.items():
            if value is not None and common.setdefault(name, value) != value:
                raise InputError(name, "alike on all ranks", f"{common[name]} and, on rank {rank}, {value}")
    return common


class Held(NamedTuple):
    """What one rank holds."""

    agents: int = 0
    observations: int = 0
    batch_shape: tuple[int, ...] = ()  # layout of its observations
    gradient: bool = False  # whether it asks for one


@dataclass(frozen=True, eq=False)
class Shards:
    """What a rank holds of a team, and what all ranks know of it; agents are numbered in the order of the ranks."""

    ranks: Ranks
    local: Points | None  # of this rank, None where it has nothing
    like: Points  # [0, 0, features]: norm, dtypes and device of the points
    shard: str  # "agents" or "observations"
    shares: list[Held]  # of all ranks
    common: dict[str, Any]  # what all ranks say alike, such as the distance
    agents: int  # of the team
    observations: int  # of the team

    @property
    def gradient(self) -> bool:
        """Whether any rank asks for a gradient: all of them may then call backward."""
        return any(share.gradient for share in self.shares)

    def given(self) -> Tensor:
        """Return the points of this rank, to differentiate at."""
        if self.local is not None:
            values = self.local.values
            return values if values.requires_grad else values.detach().requires_grad_()
        shape = (self.observations, 0) if self.shard == "agents" else (0, self.agents)
        return self.like.values.new_empty(*shape, self.like.features).requires_grad_()

    def rounds(self) -> list[list[Part]]:
        """Return the observations that each rank measures, round by round: contiguous and in order for each rank."""
        if self.shard == "observations":
            return [[(0, share.observations) for share in self.shares]]
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
                none = self.like.replace(self.like.values.new_empty(0, self.agents, self.like.features))
                yield parts, none if self.local is None else self.local.detach()

    def _exchange_agents(self, parts: Sequence[Part]) -> Points:
        """Send each rank this one's agents on its part of the observations; return all agents on this rank's."""
        none = self.like.values.new_empty(self.observations, 0, self.like.features)
        values = none if self.local is None else self.local.values.detach()
        start, stop = parts[self.ranks.rank]
        shapes = [(stop - start, share.agents, self.like.features) for share in self.shares]
        return self.like.replace(torch.cat(self.ranks.exchange([values[a:b] for a, b in parts], shapes), dim=1))

    def return_gradients(self, slopes: Tensor, parts: Sequence[Part]) -> list[Tensor]:
        """Send gradients at all agents on this rank's part to their owners; return this rank's, part by part."""
        mine = self.shares[self.ranks.rank].agents
        shapes = [(b - a, mine, self.like.features) for a, b in parts]
        return self.ranks.exchange(slopes.split([share.agents for share in self.shares], dim=1), shapes)


def make_shards(
    call: str, behavior: Behavior | None, distance: Distance | str | None, shard: str, group: Any, **alike: Any
) -> Shards:
    """Check the arguments of this rank, compare them with those of others, and return what they are about to measure.

    Args:
        call: Name of the function, the same on all ranks.
        behavior: This rank's shard, which may be one agent; None for none.
        distance: A distance or its name; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group, or None for all processes.
        **alike: What else must be the same on all ranks where it is not None.

    Raises:
        InputError: On this rank for wrong arguments; on all ranks where they differ, and for fewer than two agents.
    """
    check_choice("shard", shard, SHARDS)
    ranks, points, share = Ranks.of(group), None, Held()
    note = {"call": call, "shard": shard, "family": None, **alike, "distance": distance}
    if behavior is not None:
        points = embed(behavior, distance, fewest=1)
        asked = torch.is_grad_enabled() and any(part.requires_grad for part in points.parts)
        share = Held(points.agents, points.observations, tuple(behavior.batch_shape), asked)
        kind = (points.norm, points.values.dtype, points.dtype, points.blocks, points.features)
        note |= {"family": type(behavior).__name__, "distance": as_distance(behavior, distance), "points": kind}
        note |= {"observations": share.observations} if shard == "agents" else {"agents": share.agents}
    shares, notes = zip(*ranks.share((share, note)), strict=True)
    common = find_common(notes)
    if "points" not in common:
        raise InputError("behavior", "on at least one rank", "None on all")
    norm, dtype, result, blocks, features = common["points"]
    device = ranks.wire if points is None else points.values.device
    like = Points(torch.empty(0, 0, features, dtype=dtype, device=device), norm, result, blocks)
    agents, observations = ((sum if shard == name else max)([getattr(s, name) for s in shares]) for name in SHARDS)
    if agents < 2:
        raise InputError("behavior", "of at least 2 agents over all ranks", agents, "Diversity needs a pair.")
    return Shards(ranks, points, like, shard, list(shares), common, agents, observations)
