"""The graph over agents, one or one per observation: which pairs count, how much, and how they were drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from graphsnd.behavior.behavior import check_names
from graphsnd.errors import (
    MOST_EDGES,
    InputError,
    check_agents,
    check_device,
    check_integer,
    check_number,
    check_tensor,
    plural,
    shape_of,
)
from graphsnd.graphs.edges import EDGE_INDEX_HINT, check_indices, sort_edges
from graphsnd.kept import place
from graphsnd.sums import total

if TYPE_CHECKING:
    import networkx

T = TypeVar("T", bound="Edges")


class Sampling(Enum):
    """How the edges were drawn; intervals for the other pairs depend on it.

    Example:
        >>> import graphsnd as gs
        >>> gs.graphs.circulant(9, 2).sampling.value, gs.graphs.bernoulli(9, 0.5, seed=0).sampling.value
        ('fixed', 'independent')
    """

    FIXED = "fixed"  # not drawn: the graph defines a measure of its own
    INDEPENDENT = "independent"  # every pair for itself, with the same probability
    UNIFORM = "uniform"  # pairs without replacement, their number given
    RELABELLED = "relabelled"  # one graph whose agents were numbered at random, as in random regular graphs


class Edges:
    """Base of :class:`Graph` and :class:`MovingGraph`: a tensor of edges, and optional tensors beside it."""

    edges: Tensor

    @property
    def m(self) -> int:
        """The number of edges, those of all observations together."""
        return self.edges.shape[0]

    @property
    def device(self) -> torch.device:
        """Device of the edges."""
        return self.edges.device

    def to(self: T, device: torch.device | str | int) -> T:
        """Return a copy on another device, or itself if it is there already."""
        device = check_device(device)
        moved = {name: place(value, device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return self if moved["edges"] is self.edges else copy_with(self, **moved)


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Edges):
    """An undirected simple graph over agents 0 .. n-1.

    Construction validates, and brings the edges to one form: i < j in every row, rows sorted, weights carried along.
    Two graphs with the same edges therefore hold equal tensors. Comparison and hash are by identity.

    Args:
        n: The number of agents, at least 2.
        edges: Integers ``[m, 2]``, pairs of agents in any order; m may be 0.
        weights: ``[m]``, finite and not negative, or None for unit weights.
        inclusion: The probability that the sampling design draws a given pair; None for a fixed graph.
        family: Name of the way the graph was built, for people to read.
        sampling: Law of the draw; when None, fixed without an inclusion probability, uniform with one.
        names: Names of the agents in order, or None. A behaviour with other names is then refused.

    Raises:
        InputError: For indices out of range, self-loops, duplicates, bad weights, wrong shapes, dtypes or names.

    Example:
        >>> graph = Graph(4, torch.tensor([[3, 0], [0, 1]]))
        >>> graph.edges.tolist(), graph.m, graph.pairs
        ([[0, 1], [0, 3]], 2, 6)
    """

    n: int  # agents
    edges: Tensor  # int64 [m, 2], i < j, unique, sorted
    weights: Tensor | None = None  # floating [m]; None is one each
    inclusion: float | None = None  # probability of a pair under the design
    family: str = "custom"
    sampling: Sampling | None = None  # never None once constructed
    names: tuple[str, ...] | None = None  # agents' names in order

    def __post_init__(self) -> None:
        n = check_agents(self.n)
        edges = check_indices("edges", self.edges, n)
        fix = f"List a pair in one direction only. {EDGE_INDEX_HINT}"
        edges, weights = sort_edges(edges, self.weights, n, fix=fix)
        inclusion = None if self.inclusion is None else check_number("inclusion", self.inclusion, above=0, high=1)
        sampling = self.sampling or (Sampling.FIXED if inclusion is None else Sampling.UNIFORM)
        if (sampling is Sampling.FIXED) != (inclusion is None):
            drawn = "with an inclusion probability where it is drawn, and without where it is fixed"
            raise InputError("sampling", drawn, f"{sampling}, inclusion {inclusion}")
        names = _check_names(self.names, n)
        vars(self).update(n=n, edges=edges, weights=weights, inclusion=inclusion, sampling=sampling, names=names)

    @classmethod
    def _trusted(cls, n: int, edges: Tensor, *, sampling: Sampling = Sampling.FIXED, **rest: Any) -> Graph:
        """Return a graph from edges that the caller guarantees to be canonical: neither checked nor sorted."""
        graph = object.__new__(cls)
        vars(graph).update(rest, n=n, edges=edges, sampling=sampling)
        return graph

    def __repr__(self) -> str:
        inclusion = "" if self.inclusion is None else f", inclusion={self.inclusion:.6g}"
        weighted = "" if self.weights is None else ", weighted"
        named = "" if self.names is None else ", named"
        return f"Graph({self.family}, n={self.n}, m={self.m}{inclusion}{weighted}{named})"

    def _repr_html_(self) -> str:
        from graphsnd.plots.notebook import graph_html

        return graph_html(self)

    @property
    def pairs(self) -> int:
        """The number of pairs of agents, n(n-1)/2."""
        return math.comb(self.n, 2)

    @property
    def is_complete(self) -> bool:
        """Whether every pair is an edge."""
        return self.m == self.pairs

    @property
    def estimates_snd(self) -> bool:
        """Whether the edges are a random sample of the pairs, all with weight 1, so that their mean estimates SND."""
        return self.inclusion is not None and self.weights is None

    def with_names(self, names: Sequence[str]) -> Graph:
        """Return the same graph, its agents named in order, for example ``graph.with_names(behavior.names)``.

        Raises:
            InputError: Unless there is one name for each agent, no two alike.
        """
        return copy_with(self, names=_check_names(names, self.n))

    def named_edges(self) -> list[tuple[str, str]]:
        """Return the names of both agents of every edge, "0", "1", ... where they have none.

        Example:
            >>> Graph(3, torch.tensor([[0, 1], [0, 2]]), names=("scout", "guard", "medic")).named_edges()
            [('scout', 'guard'), ('scout', 'medic')]
        """
        names = self.names or range(self.n)
        return [(str(names[i]), str(names[j])) for i, j in self.edges.tolist()]

    def degrees(self) -> Tensor:
        """Return the number of edges at every agent, int64 ``[n]``; weights do not enter.

        Example:
            >>> Graph(3, torch.tensor([[0, 1], [0, 2]])).degrees()
            tensor([2, 1, 1])
        """
        ends = self.edges.reshape(-1)
        # bincount would read the largest index back from the device; here its range is known.
        counts = torch.zeros(self.n, dtype=torch.int64, device=self.device)
        return counts.index_add_(0, ends, torch.ones_like(ends))

    def to_networkx(self) -> networkx.Graph:
        """Return a ``networkx.Graph`` on the names or 0 .. n-1, with ``weight`` on the edges of a weighted graph."""
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.names or range(self.n))
        ends = self.edges.tolist() if self.names is None else self.named_edges()
        weights = [{}] * self.m if self.weights is None else [{"weight": weight} for weight in self.weights.tolist()]
        graph.add_edges_from((i, j, weight) for (i, j), weight in zip(ends, weights, strict=True))
        return graph


@dataclass(frozen=True, eq=False, repr=False)
class MovingGraph(Edges):
    """One undirected simple graph per observation, all over the agents 0 .. n-1; memory follows the edges.

    ``graphs.knn``, ``graphs.radius`` and ``graphs.from_adjacency`` build it from ``[observations, n, ...]``,
    :meth:`stack` from a list of graphs. The constructor validates, and sorts the edges of each observation.

    Args:
        n: The number of agents, at least 2.
        edges: Integers ``[m, 2]``, grouped by observation.
        starts: Integers ``[observations + 1]``: observation o has the edges ``starts[o]`` to ``starts[o + 1]``.
        weights: ``[m]``, finite and not negative, or None for unit weights.
        family: Name of the way the graphs were built, for people to read.
        names: Names of the agents in order, or None.

    Raises:
        InputError: For what :class:`~graphsnd.Graph` refuses at one observation, or other ``starts``.

    Example:
        >>> moving = MovingGraph(3, torch.tensor([[0, 1], [2, 0], [1, 0]]), torch.tensor([0, 1, 1, 3]))
        >>> moving, moving[2].edges.tolist()
        (MovingGraph(custom, n=3, observations=3, m=3), [[0, 1], [0, 2]])
    """

    n: int  # agents
    edges: Tensor  # int64 [m, 2], i < j, unique and sorted within each observation
    starts: Tensor  # int64 [observations + 1], from 0 to m
    weights: Tensor | None = None  # floating [m]; None is one each
    family: str = "custom"
    names: tuple[str, ...] | None = None  # agents' names in order

    def __post_init__(self) -> None:
        n = check_agents(self.n)
        edges = check_indices("edges", self.edges, n)
        given = check_tensor("starts", self.starts, 1, "(observations + 1,)")
        starts = given.to(edges.device, torch.int64)
        ends = (starts.dim() == 1 and len(starts) > 1) and (int(starts[0]), int(starts[-1])) == (0, len(edges))
        if not ends or given.is_floating_point() or bool((starts.diff() < 0).any()):
            expected = f"to be integers with shape (observations + 1,) that never fall, from 0 to {len(edges)}"
            raise InputError("starts", expected, shape_of(given) if given.dim() != 1 else given.tolist()[:8])
        owners = torch.repeat_interleave(starts.diff())
        edges, weights = sort_edges(edges, self.weights, n, owners, fix="List a pair once for each observation.")
        vars(self).update(n=n, edges=edges, starts=starts, weights=weights, names=_check_names(self.names, n))

    @classmethod
    def _trusted(cls, n: int, edges: Tensor, starts: Tensor, **rest: Any) -> MovingGraph:
        """Return graphs from edges that the caller guarantees to be canonical: neither checked nor sorted."""
        graph = object.__new__(cls)
        vars(graph).update(n=n, edges=edges, starts=starts, **rest)
        return graph

    @classmethod
    def stack(cls, graphs: Sequence[Graph]) -> MovingGraph:
        """Return one object of the graphs of all observations in order, on the same agents.

        Weights are 1 where some graphs have weights and others have none.

        Example:
            >>> from graphsnd.graphs import complete
            >>> MovingGraph.stack([complete(3), complete(3)]).m
            6
        """
        if not graphs or len({(graph.n, graph.names, graph.device) for graph in graphs}) != 1:
            raise InputError("graphs", "at least one, all on the same agents and device", list(graphs[:3]) or "none")
        first, device = graphs[0], graphs[0].device
        weights = [torch.ones(g.m, device=device) if g.weights is None else g.weights for g in graphs]
        given = torch.cat([part.double() for part in weights]) if any(g.weights is not None for g in graphs) else None
        counts = torch.tensor([0, *(graph.m for graph in graphs)], device=device)
        rest = {"weights": given, "family": first.family, "names": first.names}
        return cls._trusted(first.n, torch.cat([graph.edges for graph in graphs]), counts.cumsum(0), **rest)

    def __repr__(self) -> str:
        weighted = "" if self.weights is None else ", weighted"
        named = "" if self.names is None else ", named"
        return f"MovingGraph({self.family}, n={self.n}, observations={len(self)}, m={self.m}{weighted}{named})"

    def __len__(self) -> int:
        """Return the number of observations."""
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Graph]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, observation: int) -> Graph:
        """Return the graph of one observation."""
        at = check_integer("observation", observation, f"in 0 .. {len(self) - 1}", low=0, high=len(self) - 1)
        one = self.slice(at, at + 1)
        return Graph._trusted(self.n, one.edges, weights=one.weights, family=self.family, names=self.names)

    def owners(self) -> Tensor:
        """Return the observation of every edge, int64 ``[m]``."""
        return torch.repeat_interleave(self.starts.diff(), output_size=self.m)

    def slice(self, start: int, stop: int) -> MovingGraph:
        """Return the graphs of observations ``start`` to ``stop``, at least one; edges are not copied."""
        starts = self.starts[start : stop + 1]
        first, last = int(starts[0]), int(starts[-1])
        weights = None if self.weights is None else self.weights[first:last]
        return copy_with(self, edges=self.edges[first:last], starts=starts - first, weights=weights)


def _check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...] | None:
    """Return the agents' names; raise unless there is one for each, no two alike, or none at all."""
    if names is not None:
        check_names(names, n)
    return None if names is None else tuple(names)


def copy_with(graph: T, **fields: Any) -> T:
    """Return a copy with other fields, which the caller guarantees to be canonical."""
    other = object.__new__(type(graph))  # faster than copy.copy, and draws are many
    vars(other).update(vars(graph) | fields)
    return other


def normalised_weights(graph: Graph, device: torch.device) -> tuple[Tensor | None, Tensor]:
    """Weights in units of the largest, or None when all are 1, and their sum; float64.

    Weights may be as small as 1e-300 or as large as 1e300: in these units neither sum of Definition 1 overflows.
    """
    if graph.weights is None or graph.m == 0:
        return None, torch.tensor(float(graph.m), dtype=torch.float64, device=device)
    weights = place(graph.weights, device).double()
    largest = weights.max()
    weights = ratio(weights, largest)
    return weights, total(weights)


def weighted_mean(distances: Tensor, graph: Graph) -> Tensor:
    """Aggregate edge distances ``[m]`` as Definition 1 does, 0 when the graph has no weight."""
    weights, weight_sum = normalised_weights(graph, distances.device)
    sums = total(distances if weights is None else weights * distances)
    return ratio(sums, weight_sum)


def ratio(sums: Tensor, weights: Tensor) -> Tensor:
    """Return sums over weights, 0 where there is no weight, and there without a gradient of 0 / 0."""
    return torch.where(weights > 0, sums / torch.where(weights > 0, weights, 1), 0)


def check_graph(
    graph: Any, agents: int, names: Sequence[str] | None = None, *, observations: int | None = None,
    argument: str = "graph",
) -> None:  # fmt: skip
    """Raise unless ``graph`` is a graph on that many agents, with the same names where both have names.

    With a number of ``observations`` it may have a graph for each of them. ``argument`` is what the caller calls it.
    """
    if observations is not None and isinstance(graph, MovingGraph):
        if len(graph) != observations:
            fix = "Build it from positions of shape (observations, agents, d)."
            expected = f"for {observations} {plural('observation', observations)}"
            raise InputError(argument, expected, f"one for {len(graph)}", fix)
    elif not isinstance(graph, Graph):
        raise InputError(argument, "to be a graphsnd.Graph", type(graph).__name__, "See graphsnd.graphs.from_networkx.")
    if graph.n != agents:
        fix = f"Build it with n = {agents}."
        raise InputError(argument, f"on the behaviour's {agents} agents", f"a graph on {graph.n}", fix)
    if names and graph.names and tuple(names) != graph.names:
        at = next(i for i, name in enumerate(names) if name != graph.names[i])
        fix = "Build it in the behaviour's order, e.g. graphs.from_networkx(G, behavior.names)."
        expected = f"with the behaviour's agents in their order, {names[at]!r} at {at}"
        raise InputError(argument, expected, f"{graph.names[at]!r}", fix)


def check_edges(name: str, count: float) -> None:
    """Raise for more pairs than fit in memory, before it is allocated; ``name`` is the argument of their number."""
    if count > MOST_EDGES:
        fix = "Sample fewer pairs; SND over all of them needs no graph."
        raise InputError(name, f"that makes at most {MOST_EDGES} edges", f"{count:.3g}", fix)
