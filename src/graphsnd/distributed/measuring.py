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
from graphsnd.behavior import Points
from graphsnd.designs import Projections, parse
from graphsnd.designs.subsets import integer_seed
from graphsnd.distributed.ranks import Note, Ranks, brief
from graphsnd.distributed.shards import Part, Shards, note_points, read_distance, read_points
from graphsnd.errors import InputError, as_tensor, describe
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.estimation.costs import Budget
from graphsnd.estimation.source import Source, as_source, largest_distance
from graphsnd.graphs import Graph, MovingGraph


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
        **options: Of :func:`graphsnd.measure`, but no budget in seconds, no projections and no groups of agents.

    Returns:
        The estimate. The bound that a guaranteed interval needs is known from behaviours, from the distance (total
        variation) or from ``d_max``; not from the weights of networks, of which no rank has all.

    Raises:
        InputError: On all ranks, where one of them has other or wrong arguments, or a policy that fails.

    Example:
        >>> import graphsnd as gs
        >>> print(gs.distributed.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 shared observations)
    """
    ranks = Ranks.of(group)
    distance, backend = options.pop("distance", None), options.pop("backend", "auto")

    def prepare() -> tuple[Note, tuple[Source | None, Points | None, int]]:
        bound = signature(estimation.measure).bind(None, **options).arguments
        _check_options(bound)
        empty = team is None or (isinstance(team, Sequence | nn.ModuleList) and not len(team))
        local = None if empty else as_source(team, observations, distance, backend, fewest=1)
        zero = torch.zeros(1, dtype=torch.int64, device=None if local is None else local.device)
        first = None if local is None else local.some(zero, zero.unsqueeze(0))
        seed = integer_seed(bound.pop("seed", 0))
        note: Note = {"call": "measure", "backend": brief(backend), "options": sorted(bound), "seed": seed}
        note |= {name: _describe(value) for name, value in bound.items() if name not in ("team", "callback")}
        note |= {"distance": brief(local.distance if local is not None else distance)}
        note |= note_points(first, "" if local is None else local.family)
        if isinstance(observations, Tensor):
            note["observations"] = brief(observations)
        own = {"agents": 0, "cost": 0.0, "proportional": True}
        if local is not None:
            own = {"agents": local.agents, "cost": local.policy_cost, "proportional": local.proportional}
            note["number of observations"] = local.observations
        return note | {"own": own}, (local, first, seed)

    notes, (local, first, seed) = ranks.agree(prepare)
    like = read_points(notes, first, ranks)
    chosen = distance if local is None else local.distance
    source = ShardedSource(ranks, local, like, chosen or read_distance(notes), notes, backend)
    return estimation.measure(source, **options | {"seed": seed})  # type: ignore[arg-type]


def _check_options(options: Mapping[str, Any]) -> None:
    design, budget = options.get("design"), options.get("budget")
    if isinstance(parse(design) if isinstance(design, str) else design, Projections):
        raise InputError("design", "that chooses pairs", design, "All pairs of agents on several ranks: leave it out.")
    limit = Budget.parse(budget) if isinstance(budget, str) else budget
    if getattr(limit, "seconds", None) is not None:
        fix = "Give distances or policy evaluations: clocks of ranks differ."
        raise InputError("budget", "without seconds", budget, fix)


def _describe(value: Any) -> str:
    """Return an option in a few words that differ where options do."""
    value = vars(value) if isinstance(value, MovingGraph) else value
    if isinstance(value, Mapping):
        value = {key: _describe(one) for key, one in value.items()}
    return fingerprint(value) if isinstance(value, Graph) else brief(as_tensor(value)) or "None"


class ShardedSource(Source):
    """The agents of all ranks; every rank asks for the same, and evaluates its own."""

    names = None

    def __init__(
        self, ranks: Ranks, local: Source | None, like: Points, distance: Any, notes: list[Note], backend: str
    ) -> None:
        own = [note["own"] for note in notes]
        agents = tuple(each["agents"] for each in own)
        observations = next(note["number of observations"] for note in notes if "number of observations" in note)
        if sum(agents) < 2:
            raise InputError("team", "of at least 2 agents over all ranks", sum(agents), "Diversity needs a pair.")
        self.ranks, self.local, self.distance, self.backend = ranks, local, distance, backend
        self.shards, self._block = Shards(ranks, agents, observations, like), like
        cost, proportional = max(each["cost"] for each in own), all(each["proportional"] for each in own)
        super().__init__(sum(agents), observations, like.features, cost, like.values.device, proportional)

    def blocks(self) -> Iterator[Part]:
        """Return this rank's share of the observations, round by round."""
        for parts in self.shards.rounds():
            own = self._ask("block", parts, [b - a for a, b in parts])
            self._block = self.shards.turn(own)
            if self._block.observations:
                yield parts[self.ranks.rank]

    def block(self, start: int, stop: int) -> Points:
        """Return all agents on the observations that :meth:`blocks` has come to."""
        return self._block

    def some(self, index: Tensor, agents: Tensor | None) -> Points:  # noqa: D102
        ranks, mine = self.ranks, self.shards.agents[self.ranks.rank]
        if agents is None:
            (own,) = self._ask("some", [(index, None)], [len(index)])
            return self.shards.turn([own] * ranks.size)
        ends = torch.tensor(self.shards.agents, device=agents.device).cumsum(0)
        owner = torch.bucketize(agents, ends, right=True).flatten()
        order, counts = owner.argsort(stable=True), torch.bincount(owner, minlength=ranks.size).tolist()
        asked = order[sum(counts[: ranks.rank]) :][: counts[ranks.rank]]
        rows, chosen = index[asked // agents.shape[1]], agents.flatten()[asked] - (ends[ranks.rank] - mine)
        (own,) = self._ask("some", [(rows, chosen.unsqueeze(1))], [len(rows)], each=1)
        answers = ranks.gather(own[:, 0], counts)
        values = torch.empty_like(answers).index_copy_(0, order, answers)
        return replace(self.shards.like, values=values.view(*agents.shape, self.features))

    def bound(self) -> float | None:  # noqa: D102
        if self.policy_cost:
            return self.distance.maximum
        own = max((largest_distance(self.block(a, b)) for a, b in self.blocks()), default=0.0)
        most = self.ranks.gather(torch.tensor([own], dtype=torch.float64), [1] * self.ranks.size).max()
        return min(float(most), self.distance.maximum or math.inf)

    def join(self, rows: list[Tensor]) -> Tensor:  # noqa: D102
        shares = [sum(b - a for a, b in parts) for parts in zip(*self.shards.rounds(), strict=True)]
        return self.ranks.gather(torch.cat([torch.empty(0, dtype=torch.float64), *rows]), shares)

    def add(self, sums: Tensor) -> Tensor:  # noqa: D102
        return self.ranks.add(sums)

    def _ask(
        self, method: str, calls: Sequence[tuple[Any, ...]], sizes: Sequence[int], *, each: int | None = None
    ) -> list[Tensor]:
        """Return what calls of the local source answer, ``[size, own or each, features]``.

        Where a policy of any rank fails, all raise. Points that are known cannot fail.
        """
        like, mine = self.shards.like.values, self.shards.agents[self.ranks.rank] if each is None else each

        def answer() -> tuple[Note, list[Tensor]]:
            answers = []
            for call, size in zip(calls, sizes, strict=True):
                shape = (size, mine, self.features)
                known = getattr(self.local, method)(*call).values if self.local is not None and size else None
                if known is not None and (known.shape, known.dtype) != (shape, like.dtype):
                    raise InputError("team", f"to answer with {like.dtype} {shape}, as before", describe(known))
                answers.append(like.new_empty(shape) if known is None else known)
            return {}, answers

        return self.ranks.agree(answer)[1] if self.policy_cost else answer()[1]
