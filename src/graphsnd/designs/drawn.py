"""Designs that are one graph for each call, at random or from where the agents are."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.arguments import checked
from graphsnd.designs.design import Call, Design, Selection, require_generator, require_positions
from graphsnd.errors import InputError, check_inclusion
from graphsnd.graphs import Graph


@checked
class GraphDesign(Design):
    """One graph that is used at all observations of a call."""

    @abstractmethod
    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:
        """Build the graph of one call.

        Args:
            n: Number of agents.
            generator: Is advanced; only read by random families.
            positions: ``[n, d]``; only read by designs that need positions.

        Raises:
            InputError: For a parameter that ``n`` agents do not allow, and when a generator or positions are missing.
        """

    def _select(self, call: Call) -> Selection:
        graph = self.draw(call.agents, call.generator)
        # The paper's rule. Given that it is not empty a Bernoulli graph's mean is unbiased for SND, so the whole is.
        return Selection(graph.edges) if graph.m else Selection(None, empty=True)


@checked
@dataclass(frozen=True)
class Bernoulli(GraphDesign):
    """Each pair with probability ``p``, the paper's own choice.

    Example:
        >>> str(Bernoulli(0.1)), Bernoulli(0.1).pairs(100)
        ('bernoulli:0.1', 495.0)
    """

    p: float

    family, example, number = "bernoulli", "bernoulli:0.1", float

    def __post_init__(self) -> None:
        check_inclusion("p", self.p)

    def pairs(self, n: int) -> float:  # noqa: D102
        return self.p * math.comb(n, 2)

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.bernoulli(n, self.p, seed=require_generator(generator, self))


@checked
@dataclass(frozen=True)
class Uniform(GraphDesign):
    """``m`` different pairs, every set of ``m`` equally likely.

    Example:
        >>> Uniform(30).draw(100, torch.Generator().manual_seed(0)).m
        30
    """

    m: int

    family, example, number = "uniform", "uniform:500", int

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.m

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.uniform(n, self.m, seed=require_generator(generator, self))


@checked
@dataclass(frozen=True)
class Regular(GraphDesign):
    """A random graph in which each agent has ``degree`` neighbours, so that effects of single agents cancel.

    Example:
        >>> Regular(9).pairs(100)
        450.0
    """

    degree: int

    family, example, number = "regular", "regular:8", int

    def pairs(self, n: int) -> float:  # noqa: D102
        return n * self.degree / 2

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.random_regular(n, self.degree, seed=require_generator(generator, self))


@checked
@dataclass(frozen=True)
class Nearest(GraphDesign):
    """Each agent and its ``k`` nearest neighbours: a local measure, not SND.

    A mutual pair counts once. A controller is told the positions at each observation, which then has its own graph.

    Args:
        k: Neighbours of each agent. Of equally near ones those with the lower index are taken.

    Example:
        >>> Nearest(1).draw(3, None, torch.tensor([[0.0], [1.0], [3.0]])).edges.tolist()
        [[0, 1], [1, 2]]
    """

    k: int

    family, example, number = "knn", "knn:5", int
    unbiased, needs_positions = False, True

    def pairs(self, n: int) -> int:  # noqa: D102
        return min(n * self.k, math.comb(n, 2))

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.knn(require_positions(positions, (n,), self), self.k)

    def _select(self, call: Call) -> Selection:
        apart, _ = _squared_distances(call, self)
        if self.k >= call.agents:
            raise InputError("k", f"below the {call.agents} agents", self.k)
        apart.diagonal(dim1=1, dim2=2).fill_(torch.inf)
        # A stable sort, because agents may stand in one place.
        near = apart.sort(dim=2, stable=True).indices[..., : self.k]
        mine = torch.arange(call.agents, device=near.device).repeat_interleave(self.k).expand(call.observations, -1)
        return Selection(torch.stack([mine, near.flatten(1)], -1), weights=_count_mutual_pairs_once(near))


@checked
@dataclass(frozen=True)
class Radius(GraphDesign):
    """All pairs at most ``r`` apart: a local measure, not SND.

    Example:
        >>> Radius(1.0).draw(3, None, torch.tensor([[0.0], [1.0], [2.5]])).edges.tolist()
        [[0, 1]]
    """

    r: float

    family, example, number = "radius", "radius:0.5", float
    unbiased, needs_positions = False, True

    def __post_init__(self) -> None:
        if not 0 < self.r < math.inf:
            raise InputError("r", "to be finite and above 0", self.r, "It is a distance in the units of positions.")

    def pairs(self, n: int) -> int:
        """Return the number of all pairs: no more is known without the positions."""
        return math.comb(n, 2)

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.radius(require_positions(positions, (n,), self), self.r)

    def _select(self, call: Call) -> Selection:
        apart, unit = _squared_distances(call, self)
        edges = torch.combinations(torch.arange(call.agents, device=apart.device))
        # Observations differ in their number of neighbours; pairs out of range stay, with weight 0.
        within = apart[:, edges[:, 0], edges[:, 1]] <= (self.r / unit).square()
        return Selection(edges.expand(call.observations, -1, -1), weights=within.to(apart.dtype))


def _squared_distances(call: Call, design: Design) -> tuple[Tensor, Tensor]:
    """Return squared distances of all agents at each observation, ``[O, n, n]``, and their unit.

    The unit is a power of two near the largest position, so that squares of 1e200 are numbers and no bit changes.
    """
    positions = require_positions(call.positions, (call.observations, call.agents), design).double()
    exponent = torch.frexp(positions.abs().max()).exponent if positions.numel() else torch.zeros((), dtype=torch.int32)
    unit = torch.exp2(exponent.clamp(-1000, 1000).double())
    positions = positions / unit
    return (positions.unsqueeze(1) - positions.unsqueeze(2)).square().sum(-1), unit


def _count_mutual_pairs_once(near: Tensor) -> Tensor:
    """Return one half for each direction of a mutual pair, 1 for a single one, ``[O, n * k]``."""
    agents = near.shape[1]
    chosen = torch.zeros(len(near), agents, agents, dtype=torch.bool, device=near.device).scatter_(2, near, True)
    back = chosen.transpose(1, 2).gather(2, near)
    return torch.where(back, 0.5, 1.0).flatten(1)
