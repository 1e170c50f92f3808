"""Fewer edges of a given graph."""

from __future__ import annotations

from torch import Tensor

from graphsnd.errors import InputError, check_finite, check_integer, shape_of
from graphsnd.graphs.graph import Graph


def trim(graph: Graph, edges: int, *, lengths: Tensor | None = None, positions: Tensor | None = None) -> Graph:
    """Keep the shortest edges of a graph, so that graphs of different families can be compared at equal cost.

    The k-nearest-neighbour graph has more than nk/2 edges wherever nearness is not mutual, and how many depends on
    where the agents stand; trimming brings it to a chosen budget.

    Args:
        graph: The graph; weights stay with their edges.
        edges: How many edges to keep, 0 .. m. Ties go to the pair that comes first.
        lengths: ``[m]`` in the order of ``graph.edges``, or
        positions: ``[n, f]``, for Euclidean lengths.

    Returns:
        A fixed graph: which pairs it has depends on the lengths, so it is no random sample whatever ``graph`` was.

    Raises:
        InputError: For more edges than there are, or unless exactly one of lengths and positions is given.

    Example:
        >>> import torch
        >>> path = Graph(4, torch.tensor([[0, 1], [1, 2], [2, 3]]))
        >>> trim(path, 2, positions=torch.tensor([[0.0], [1.0], [5.0], [7.0]])).edges.tolist()
        [[0, 1], [2, 3]]
    """
    edges = check_integer("edges", edges, f"to be an integer in 0 .. m = {graph.m}", low=0, high=graph.m)
    if (lengths is None) == (positions is None):
        raise InputError("lengths", "or `positions`, exactly one of them", "both" if lengths is not None else "neither")
    measured = _given(graph, lengths) if lengths is not None else _between(graph, positions)
    kept = measured.argsort(stable=True)[:edges].sort().values
    weights = None if graph.weights is None else graph.weights[kept]
    return Graph._trusted(graph.n, graph.edges[kept], weights=weights, family=f"{graph.family}, trimmed")


def _given(graph: Graph, lengths: Tensor) -> Tensor:
    if not isinstance(lengths, Tensor) or lengths.shape != (graph.m,):
        got = shape_of(lengths) if isinstance(lengths, Tensor) else type(lengths).__name__
        raise InputError("lengths", f"with shape (m,) = ({graph.m},)", got, "One for each edge, in their order.")
    check_finite("lengths", lengths)
    return lengths.detach().to(graph.device)


def _between(graph: Graph, positions: Tensor | None) -> Tensor:
    if not isinstance(positions, Tensor) or positions.dim() != 2 or len(positions) != graph.n:
        got = shape_of(positions) if isinstance(positions, Tensor) else type(positions).__name__
        raise InputError("positions", f"with shape (n, f), n = {graph.n}", got)
    check_finite("positions", positions)
    i, j = graph.edges.unbind(1)
    points = positions.detach().double().to(graph.device)
    return (points[i] - points[j]).norm(dim=1)
