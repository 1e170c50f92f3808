"""Designs that are one graph for each call, at random or from where the agents are."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.arguments import checked
from graphsnd.designs.design import Call, Design, Selection, require_generator, require_positions
from graphsnd.errors import InputError, check_layout, check_number
from graphsnd.graphs import Graph, MovingGraph


@checked
class GraphDesign(Design):
    """One graph that is used at all observations of a call.

    Example:
        >>> import torch, graphsnd as gs
        >>> design = gs.designs.parse("regular:4")
        >>> isinstance(design, GraphDesign), design.draw(10, torch.Generator().manual_seed(0)).degrees().tolist()
        (True, [4, 4, 4, 4, 4, 4, 4, 4, 4, 4])
    """

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
        # Remark 8. Given that it is not empty a Bernoulli graph's mean is unbiased for SND, so the whole is.
        return Selection(graph.edges) if graph.m else Selection(None, empty=True)


@checked
@dataclass(frozen=True)
class Bernoulli(GraphDesign):
    """Each pair with probability ``p``, the paper's own choice.

    Example:
        >>> str(Bernoulli(0.1)), Bernoulli(0.1).pairs(100)
        ('bernoulli:0.1', 495.0)
    """

    p: float  # probability of each pair, in (0, 1]

    family, example, number = "bernoulli", "bernoulli:0.1", float

    def __post_init__(self) -> None:
        check_number("p", self.p, above=0, high=1)

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

    m: int  # pairs

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

    degree: int  # neighbours of each agent

    family, example, number = "regular", "regular:8", int

    def pairs(self, n: int) -> float:  # noqa: D102
        return n * self.degree / 2

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        return graphs.random_regular(n, self.degree, seed=require_generator(generator, self))


@checked
@dataclass(frozen=True)
class Fixed(GraphDesign):
    """One graph of your own at all observations, with its weights: it defines a measure, which is not SND.

    Example:
        >>> Fixed(graphs.complete(4)).pairs(4), str(Fixed(graphs.complete(4)))
        (6, 'complete graph')
    """

    graph: Graph  # on the agents of the team

    family = example = "fixed"
    unbiased = False

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.graph.m

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        if self.graph.n != n:
            raise InputError("design", f"on {n} agents", f"one on {self.graph.n}")
        return self.graph

    def _select(self, call: Call) -> Selection:
        return Selection(self.draw(call.agents, None))

    def __str__(self) -> str:
        """Return how the graph was built: a name, which cannot be parsed."""
        return f"{self.graph.family} graph"


@checked
class SpatialDesign(GraphDesign):
    """Pairs of agents that are close: a local measure, not SND.

    Example:
        >>> import torch, graphsnd as gs
        >>> moving = gs.designs.parse("radius:0.5").join(torch.tensor([[[0.0], [0.4], [0.8]], [[0.0], [1.0], [1.1]]]))
        >>> moving[0].edges.tolist(), moving[1].edges.tolist()
        ([[0, 1], [1, 2]], [[1, 2]])
    """

    unbiased, needs_positions = False, True

    @abstractmethod
    def join(self, positions: Tensor) -> Graph | MovingGraph:
        """Build the graph of positions ``[n, d]``, or those of ``[observations, n, d]``, one for each observation."""

    def draw(self, n: int, generator: torch.Generator | None, positions: Tensor | None = None) -> Graph:  # noqa: D102
        graph = self.join(require_positions(positions, (n,), self))
        assert isinstance(graph, Graph)
        return graph

    def _join_each(
        self, positions: Tensor | None, batch_shape: Sequence[int], observations: int, agents: int
    ) -> MovingGraph:
        """Build the graph of each observation from positions ``[..., agents, d]``, leading dimensions pooled."""
        if positions is not None and positions.dim() > 3:
            check_layout("positions", positions.shape[:-2], batch_shape)
            positions = positions.flatten(0, -3)
        graph = self.join(require_positions(positions, (observations, agents), self))
        assert isinstance(graph, MovingGraph)
        return graph

    def _select(self, call: Call) -> Selection:
        return Selection(self.join(require_positions(call.positions, (call.observations, call.agents), self)))


@checked
@dataclass(frozen=True)
class Nearest(SpatialDesign):
    """Each agent and its ``k`` nearest neighbours: a local measure, not SND.

    A mutual pair counts once. Positions at each observation give each its own graph, as in control.

    Args:
        k: Neighbours of each agent. Of equally near ones those with the lower index are taken.

    Example:
        >>> Nearest(1).draw(3, None, torch.tensor([[0.0], [1.0], [3.0]])).edges.tolist()
        [[0, 1], [1, 2]]
    """

    k: int

    family, example, number = "knn", "knn:5", int

    def pairs(self, n: int) -> int:  # noqa: D102
        return min(n * self.k, math.comb(n, 2))

    def join(self, positions: Tensor) -> Graph | MovingGraph:  # noqa: D102
        return graphs.knn(positions, self.k)


@checked
@dataclass(frozen=True)
class Radius(SpatialDesign):
    """All pairs at most ``r`` apart: a local measure, not SND.

    Example:
        >>> Radius(1.0).draw(3, None, torch.tensor([[0.0], [1.0], [2.5]])).edges.tolist()
        [[0, 1]]
    """

    r: float  # in the units of positions

    family, example, number = "radius", "radius:0.5", float

    def __post_init__(self) -> None:
        check_number("r", self.r, above=0, fix="It is a distance in the units of positions.")

    def join(self, positions: Tensor) -> Graph | MovingGraph:  # noqa: D102
        return graphs.radius(positions, self.r)
