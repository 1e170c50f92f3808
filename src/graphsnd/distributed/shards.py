"""A team in shards: each rank has all observations of some agents, or some observations of all agents.

Distances need all agents at an observation, so shards of agents are exchanged: rank r is sent what all agents do on the
r-th part of the observations, and measures there, block by block. Kernels, their speed and their bits are then those of
one process, and each shard is sent once; passed around a ring from rank to rank it would be sent ``ranks / 2`` times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Points
from graphsnd.distributed.ranks import Ranks, find_common
from graphsnd.errors import InputError, check_choice

BLOCK = 1 << 24  # numbers of all agents that a rank is sent at a time
SHARDS = ("agents", "observations")
Part = tuple[int, int]  # observations, from and to


class Share(NamedTuple):
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
    shares: list[Share]  # of all ranks
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
    call: str, behavior: Behavior | None, distance: Distance | None, shard: str, group: Any, **alike: Any
) -> Shards:
    """Check the arguments of this rank, compare them with those of others, and return what they are about to measure.

    Args:
        call: Name of the function, the same on all ranks.
        behavior: This rank's shard, which may be one agent; None for none.
        distance: Distance object; the family's default when None.
        shard: ``agents`` or ``observations``.
        group: A process group, or None for all processes.
        **alike: What else must be the same on all ranks where it is not None.

    Raises:
        InputError: On this rank for wrong arguments; on all ranks where they differ, and for fewer than two agents.
    """
    check_choice("shard", shard, SHARDS)
    ranks, points, share = Ranks.of(group), None, Share()
    note = {"call": call, "shard": shard, "family": None, **alike, "distance": distance}
    if behavior is not None:
        points = embed(behavior, distance, fewest=1)
        asked = torch.is_grad_enabled() and any(part.requires_grad for part in points.parts)
        share = Share(points.agents, points.observations, tuple(behavior.batch_shape), asked)
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
