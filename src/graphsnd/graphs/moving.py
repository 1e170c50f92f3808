"""A graph for each observation: agents meet other agents at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior.behavior import check_names
from graphsnd.errors import InputError, check_agents, check_integer, check_tensor, shape_of
from graphsnd.graphs.graph import Edges, Graph, copy_with
from graphsnd.graphs.pairs import check_indices, sort_edges


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
        if self.names is not None:
            check_names(self.names, n)
            vars(self).update(names=tuple(self.names))
        vars(self).update(n=n, edges=edges, starts=starts, weights=weights)

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
