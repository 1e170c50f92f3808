"""``measure`` of a team whose policies, or whose answers, are spread over ranks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd import estimation
from graphsnd.behavior.points import Points
from graphsnd.designs import Fixed
from graphsnd.designs.subsets import integer_seed
from graphsnd.distributed.ranks import Note, shorten
from graphsnd.distributed.shards import Part, Shards, find_distance, make_shards
from graphsnd.errors import as_tensor, plain_tensor
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.estimation.source import Source, as_source, largest_distance
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.kernels.pairfunctions import slowness


def measure(team: Any, observations: Any = None, *, group: Any = None, **options: Any) -> estimation.Estimate:
    """:func:`graphsnd.measure` of a team whose agents are spread over the ranks of a process group.

    A collective call: every rank makes it with its own policies and the same observations, options and seed, and all
    get the same estimate. Each rank evaluates only policies that it holds, and only those that the design asks for. All
    ranks draw the same agents and the same graph from the seed. All pairs and graphs are measured on shares of the
    observations; pairs that are redrawn for each observation are few, and measured on all ranks.

    Args:
        team: This rank's policies (see :func:`~graphsnd.teams.as_team`), or their :class:`~graphsnd.Behavior`; None or
            an empty list for none. Agents are numbered in the order of the ranks.
        observations: For policies: ``[..., features]``, the same on all ranks.
        group: A process group; all processes when None.
        **options: Of :func:`graphsnd.measure`.

    Returns:
        The estimate. The bound that a guaranteed interval needs is known from behaviours, from the distance (total
        variation) or from ``d_max``; not from the weights of networks, of which no rank has all.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments, or a policy that fails.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.distributed.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 shared observation)
    """
    distance, backend = options.pop("distance", None), options.pop("backend", "auto")
    seed = 0  # the same on all ranks, where each may give a generator of its own

    def describe() -> Note:
        nonlocal seed
        given = signature(estimation.measure).bind(None, **options).arguments
        seed = integer_seed(given.pop("seed", 0))
        note: Note = {"call": "measure", "backend": shorten(backend), "options": sorted(given), "seed": seed}
        note |= {name: _describe(value) for name, value in given.items() if name != "team"}
        return note | {"observations (values)": shorten(plain_tensor(observations))}

    def make() -> Source | None:
        empty = team is None or (isinstance(team, Sequence | nn.ModuleList) and not len(team))
        return None if empty else as_source(team, observations, distance, backend, fewest=1)

    shards = make_shards(describe, make, distance, "agents", group)
    chosen = find_distance(shards.notes, getattr(shards.local, "distance", distance))
    source = ShardedSource(shards, chosen, backend)
    return estimation.measure(source, **options | {"seed": seed})  # type: ignore[arg-type]


def _describe(value: Any) -> str:
    """Return a short text that differs where options do."""
    value = vars(value) if isinstance(value, MovingGraph | Fixed) else value
    if isinstance(value, Mapping):
        value = {key: _describe(one) for key, one in value.items()}
    return fingerprint(value) if isinstance(value, Graph) else shorten(as_tensor(value)) or "None"


class ShardedSource(Source):
    """The agents of all ranks; every rank asks for the same, and evaluates its own."""

    names = None

    def __init__(self, shards: Shards, distance: Any, backend: str) -> None:
        self.shards, self.ranks, self.distance, self.backend = shards, shards.ranks, distance, backend
        self._block, self.batch_shape = shards.like, shards.batch_shape
        self.policies = any(each["policies"] for each in shards.own)
        self.proportional = all(each["proportional"] for each in shards.own)
        self.agents, self.observations, self.features = shards.agents, shards.observations, shards.like.features
        self.device, self.slowness = shards.like.values.device, slowness(shards.like)

    def blocks(self) -> Iterator[Part]:
        """Return this rank's share of the observations, round by round."""
        for parts, points in self.shards.blocks():
            self._block = points
            if points.observations:
                yield parts[self.ranks.rank]

    def block(self, start: int, stop: int) -> Points:
        """Return all agents on the observations that :meth:`blocks` has come to."""
        return self._block

    def select(self, index: Tensor, agents: Tensor | None) -> Points:  # noqa: D102
        ranks, like = self.ranks, self.shards.like
        if agents is None:
            return self.shards.exchange_agents(self.shards.ask("select", [(index, None)], [len(index)]) * ranks.size)
        counts = torch.tensor([each["agents"] for each in self.shards.own], device=agents.device)
        ends = counts.cumsum(0)
        owner = torch.bucketize(agents, ends, right=True).flatten()
        order, asked = owner.argsort(stable=True), torch.bincount(owner, minlength=ranks.size).tolist()
        mine = order.split(asked)[ranks.rank]
        chosen = agents.flatten()[mine] - (ends - counts)[ranks.rank]
        call = (index[mine // agents.shape[1]], chosen.unsqueeze(1))
        answers = ranks.gather(self.shards.ask("select", [call], [len(mine)], each=1)[0][:, 0], asked)
        values = torch.empty_like(answers).index_copy_(0, order, answers)
        return replace(like, values=values.view(*agents.shape, self.features))

    def bound(self) -> float | None:  # noqa: D102
        if self.policies:
            return self.distance.maximum
        own = max((largest_distance(self.block(a, b)) for a, b in self.blocks()), default=0.0)
        most = self.ranks.gather(torch.tensor([own], dtype=torch.float64), [1] * self.ranks.size).max()
        return min(float(most), self.distance.maximum or math.inf)

    def join(self, rows: list[Tensor]) -> Tensor:  # noqa: D102
        shares = [sum(b - a for a, b in parts) for parts in zip(*self.shards.rounds(), strict=True)]
        return self.ranks.gather(torch.cat([torch.empty(0, dtype=torch.float64), *rows]), shares)

    def add(self, sums: Tensor) -> Tensor:  # noqa: D102
        return self.ranks.add(sums)
