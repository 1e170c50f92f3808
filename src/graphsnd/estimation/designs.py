r"""Which distances to measure, so that their mean is unbiased for SND.

A design is an object that knows what it costs and with which probability it measures a pair. Two kinds:

*Fixed*: one graph, drawn once and used for every observation, as in the paper (:class:`FixedGraph`). Its noise is
that of one graph and does not shrink with more observations.

*Fresh*: new pairs for every observation (:class:`FreshMatching`, :class:`FreshCirculant`, :class:`AgentSubset`). A
template graph is laid over randomly drawn agents, independently for each observation o. Every pair of agents is
equally likely to lie under an edge, so the mean distance over the edges has mean :math:`\mathrm{SND}_o`, the diversity
at o; the mean over all observations has mean SND; and over a random subset of observations as well, by the law of
total expectation. The noise of different observations is independent and averages away.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import torch

from graphsnd import graphs
from graphsnd.errors import InputError
from graphsnd.estimation.sampling.template import Template
from graphsnd.graphs import Graph

Builder = Callable[[int, torch.Generator], Graph]


class Design(ABC):
    """How pairs are chosen."""

    @property
    @abstractmethod
    def name(self) -> str:
        """For people to read."""

    @abstractmethod
    def pairs(self, n: int) -> float:
        """Distances for each observation, on average, in a team of ``n``."""

    @abstractmethod
    def evaluations(self, n: int) -> int:
        """Policies evaluated for each observation."""

    def inclusion(self, n: int) -> float:
        """Probability that a given pair is measured at a given observation, the same for every pair."""
        return self.pairs(n) / (n * (n - 1) / 2)


@dataclass(frozen=True)
class AllPairs(Design):
    """Every pair at every observation: SND itself, no sampling error.

    Example:
        >>> AllPairs().pairs(10), AllPairs().inclusion(10)
        (45, 1.0)
    """

    name = "all pairs"

    def pairs(self, n: int) -> int:  # noqa: D102
        return n * (n - 1) // 2

    def evaluations(self, n: int) -> int:  # noqa: D102
        return n


class FreshDesign(Design):
    """A template laid over random agents, afresh for every observation."""

    def template(self, n: int) -> Template:
        """The template for a team of ``n``."""
        return _template(self, n)

    @abstractmethod
    def build(self, n: int) -> Template:
        """Make it."""

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.template(n).m

    def evaluations(self, n: int) -> int:  # noqa: D102
        return self.template(n).size


@lru_cache(maxsize=64)
def _template(design: FreshDesign, n: int) -> Template:
    """Kept, because forecasts ask for it again and again."""
    return design.build(n)


@dataclass(frozen=True)
class FreshMatching(FreshDesign):
    """Agents paired at random, everybody once, anew for every observation; or just ``count`` disjoint pairs.

    Unbiased because every pair of agents is as likely to be matched as any other (see the module). In a full
    matching every agent counts once, so whatever is an effect of single agents cancels.

    Args:
        count: Pairs for each observation; as many as there are when None.

    Example:
        >>> FreshMatching().pairs(100), round(FreshMatching().inclusion(100), 4)
        (50, 0.0101)
    """

    count: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise InputError("count", "to be at least 1", self.count)

    @property
    def name(self) -> str:  # noqa: D102
        return "fresh matching" if self.count is None else f"fresh matching of {self.count} pairs"

    def build(self, n: int) -> Template:  # noqa: D102
        count = min(self.count or n // 2, n // 2)
        return Template(2 * count, torch.arange(2 * count).view(count, 2))


@dataclass(frozen=True)
class FreshCirculant(FreshDesign):
    """A ring on a random order of the agents, each joined to the ``degree`` nearest on it, anew every observation.

    Unbiased because the order is uniformly random (see the module). Every agent has the same degree, so effects of
    single agents cancel, and the edges of an agent show how large the variance is without bias.

    Args:
        degree: Partners of every agent, even; all others when the team is smaller.

    Example:
        >>> FreshCirculant(8).pairs(100), FreshCirculant(8).pairs(5)
        (400, 10)
    """

    degree: int = 8

    def __post_init__(self) -> None:
        if self.degree < 2 or self.degree % 2:
            raise InputError("degree", "to be even and at least 2", self.degree)

    @property
    def name(self) -> str:  # noqa: D102
        return f"fresh circulant of degree {self.degree}"

    def build(self, n: int) -> Template:  # noqa: D102
        if self.degree >= n - 1:
            return Template(n, torch.combinations(torch.arange(n)))
        around = torch.arange(n)
        rings = [torch.stack([around, (around + shift) % n], dim=1) for shift in range(1, self.degree // 2 + 1)]
        return Template(n, torch.cat(rings))


@dataclass(frozen=True)
class AgentSubset(FreshDesign):
    """All pairs among ``size`` random agents, anew for every observation: only they need to be evaluated.

    Unbiased because a pair is among them with the same probability as any other (see the module). This is the
    design whose cost does not grow with the team.

    Args:
        size: Agents for each observation, at least 2; everybody when the team is smaller.

    Example:
        >>> AgentSubset(8).pairs(10_000), AgentSubset(8).evaluations(10_000)
        (28, 8)
    """

    size: int = 8

    def __post_init__(self) -> None:
        if self.size < 2:
            raise InputError("size", "to be at least 2", self.size)

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.size} random agents"

    def build(self, n: int) -> Template:  # noqa: D102
        size = min(self.size, n)
        return Template(size, torch.combinations(torch.arange(size)))


@dataclass(frozen=True)
class SortedProjections(Design):
    """All pairs, by sorting the agents along random directions: O(directions n log n) for each observation.

    Unbiased because the mean length of a vector's projections is a known multiple of its length
    (:func:`~graphsnd.estimation.projections.projected_snd`). For Euclidean distances; exact for one feature.

    Args:
        directions: For each observation.

    Example:
        >>> SortedProjections(4).name, SortedProjections(4).inclusion(100)
        ('4 sorted projections', 1.0)
    """

    directions: int = 8

    def __post_init__(self) -> None:
        if self.directions < 1:
            raise InputError("directions", "to be at least 1", self.directions)

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.directions} sorted projections"

    def pairs(self, n: int) -> int:  # noqa: D102
        return n * (n - 1) // 2

    def evaluations(self, n: int) -> int:  # noqa: D102
        return n


class Weighting(Enum):
    """How the edges of a fixed graph become one number."""

    NORMALISED = "normalised"  # mean over the edges: Graph-SND
    HORVITZ_THOMPSON = "horvitz-thompson"  # sum over the edges, divided by its expected count


@dataclass(frozen=True)
class FixedGraph(Design):
    """One graph for all observations, the paper's way.

    Unbiased for SND where the builder draws every pair with the same probability: the mean over the edges given that
    there are any, and the Horvitz-Thompson sum without that condition. A builder of fixed graphs (k nearest
    neighbours, ...) defines another measure, and its result says so.

    Args:
        builder: From the number of agents and a generator to a graph.
        weighting: Normalised mean or Horvitz-Thompson.
        label: For people to read.

    Example:
        >>> FixedGraph.bernoulli(0.1).name, FixedGraph.regular(9).pairs(100)
        ('fixed bernoulli:0.1', 450.0)
    """

    builder: Builder
    weighting: Weighting = Weighting.NORMALISED
    label: str = "graph"

    @classmethod
    def bernoulli(cls, p: float, weighting: Weighting = Weighting.NORMALISED) -> FixedGraph:
        """Every pair with probability ``p``."""
        return cls(lambda n, g: graphs.bernoulli(n, p, seed=g), weighting, f"bernoulli:{p:g}")

    @classmethod
    def uniform(cls, m: int) -> FixedGraph:
        """``m`` pairs."""
        return cls(lambda n, g: graphs.uniform(n, m, seed=g), label=f"uniform:{m}")

    @classmethod
    def regular(cls, degree: int) -> FixedGraph:
        """A random regular graph."""
        return cls(lambda n, g: graphs.random_regular(n, degree, seed=g), label=f"regular:{degree}")

    @property
    def name(self) -> str:  # noqa: D102
        return f"fixed {self.label}"

    def pairs(self, n: int) -> float:
        """Distances for each observation; known before drawing only for designs with an inclusion probability."""
        graph = self.builder(n, torch.Generator().manual_seed(0))
        return float(graph.m if graph.inclusion is None else graph.inclusion * graph.pairs)

    def evaluations(self, n: int) -> int:  # noqa: D102
        return n


@dataclass(frozen=True)
class ObservationSubset(Design):
    """Another design on a uniformly random subset of the observations.

    Unbiased: the mean over a simple random sample has the mean over all as its expectation, and the other design is
    unbiased at each observation.

    Args:
        count: Observations to use, at least 2; all when there are fewer.
        design: What to measure at each of them.

    Example:
        >>> ObservationSubset(1000, AgentSubset(4)).name
        '4 random agents at 1,000 random observations'
    """

    count: int
    design: Design

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InputError("count", "to be at least 2", self.count, "One observation says nothing about others.")
        if isinstance(self.design, ObservationSubset):
            raise InputError("design", "that is not itself an ObservationSubset", self.design.name, "Nest it once.")

    @property
    def name(self) -> str:  # noqa: D102
        return f"{self.design.name} at {self.count:,} random observations"

    def pairs(self, n: int) -> float:  # noqa: D102
        return self.design.pairs(n)

    def evaluations(self, n: int) -> int:  # noqa: D102
        return self.design.evaluations(n)
