"""Graphs from other libraries: adjacency matrices, PyTorch Geometric, networkx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphsnd.behavior.behavior import check_names
from graphsnd.errors import InputError, check_agents, check_finite, check_shape, check_tensor, number, shape_of
from graphsnd.graphs import pairs
from graphsnd.graphs.edges import check_distinct, check_indices, check_weights
from graphsnd.graphs.graph import Graph, MovingGraph

if TYPE_CHECKING:
    import networkx


def from_adjacency(A: Tensor) -> Graph | MovingGraph:
    """Return the graph of a symmetric matrix; its non-zero entries are the weights.

    Args:
        A: ``[n, n]``, symmetric, zero diagonal, nothing negative. If it is boolean, or every non-zero entry is 1, the
            graph has unit weights (``weights`` is None). With ``[..., n, n]`` each observation has its own graph.

    Returns:
        A graph; of ``[..., n, n]`` a :class:`~graphsnd.graphs.MovingGraph`, leading dimensions pooled.

    Raises:
        InputError: For a matrix that is not square, not symmetric, or has self-loops or bad weights.

    Example:
        >>> graph = from_adjacency(torch.tensor([[0.0, 2.0], [2.0, 0.0]]))
        >>> graph.edges.tolist(), graph.weights
        ([[0, 1]], tensor([2.]))
    """
    A = check_tensor("A", A, 2, "(n, n)")
    A = A.flatten(0, -3) if A.dim() > 3 else A
    n = A.shape[-1]
    if n < 2 or A.shape[-2] != n or not A.numel():
        raise InputError("A", "with shape (n, n) or (observations, n, n), at least (2, 2)", shape_of(A))
    check_finite("A", A)
    if bool((A.mT != A).any()):
        fix = "Distances have no direction: average A with A.T, or choose one."
        raise InputError("A", "to be symmetric", "an asymmetric matrix", fix)
    if bool(A.diagonal(dim1=-2, dim2=-1).any()):
        raise InputError("A", "to have a zero diagonal", "self-loops", "Clear it: an agent is no pair.")
    if bool((A < 0).any()):
        got = f"a minimum of {float(A.min()):g}"
        raise InputError("A", "without negative entries", got, "A weight of 0 ignores a pair.")
    places = A.detach().triu(1).nonzero()
    edges, values = places[:, -2:], A[tuple(places.T)]
    weights = None if bool((values == 1).all()) else check_weights(values, edges)
    if A.dim() == 2:
        return Graph._trusted(n, edges, weights=weights, family="adjacency")
    starts = torch.searchsorted(places[:, 0].contiguous(), torch.arange(len(A) + 1, device=A.device))
    return MovingGraph._trusted(n, edges, starts, weights=weights, family="adjacency")


def from_edge_index(edge_index: Tensor, n: int, weights: Tensor | None = None) -> Graph:
    """Return the graph of a PyTorch Geometric ``edge_index``; the two directions of an edge become one.

    Args:
        edge_index: Integers ``[2, m]``. An edge may be listed in one direction or in both.
        n: The number of agents.
        weights: ``[m]``; the two directions of an edge must carry the same weight.

    Raises:
        InputError: For the same direction listed twice, self-loops, and directions that disagree on the weight.

    Example:
        >>> from_edge_index(torch.tensor([[0, 1, 2], [1, 0, 0]]), 3).edges.tolist()
        [[0, 1], [0, 2]]
    """
    n = check_agents(n)
    edge_index = check_tensor("edge_index", edge_index, 2, "(2, edges)")
    check_shape("edge_index", edge_index, (2, "edges"))
    edges = check_indices("edge_index", edge_index.T, n)
    i, j = edges.unbind(1)
    check_distinct("edge_index", edges, i * n + j, "Merge parallel edges first, for example by adding their weights.")
    keys, order = pairs.keys(i, j, n).sort(stable=True)
    again = pairs.repeats(keys)
    if weights is not None:
        weights = check_weights(weights, keys)[order]
        differ = again[1:] & (weights[1:] != weights[:-1])
        if bool(differ.any()):
            got = f"{int(differ.sum())} that differ"
            raise InputError("weights", "to be equal in both directions of an edge", got, "Average them first.")
        weights = weights[~again]
    return Graph._trusted(n, pairs.from_keys(keys[~again], n), weights=weights, family="edge_index")


def from_networkx(G: networkx.Graph, names: Sequence[Any] | None = None) -> Graph:
    """Return the graph of a ``networkx.Graph``.

    Nodes that are the integers 0 .. n-1 keep their numbers; any others are numbered in the order of ``names`` or,
    without them, of ``G.nodes``. Nodes that are strings name the agents.

    Args:
        G: Undirected, at least two nodes, no self-loops. If any edge has a ``weight``, edges without one weigh 1, which
            is the convention of networkx.
        names: All nodes of ``G`` in the order of the agents, such as ``behavior.names``.

    Raises:
        InputError: For a directed or multi-graph, self-loops, other names, or weights that are no non-negative numbers.

    Example:
        >>> import networkx
        >>> from_networkx(networkx.path_graph(3)).edges.tolist()
        [[0, 1], [1, 2]]
    """
    import networkx

    if not isinstance(G, networkx.Graph) or G.is_directed() or G.is_multigraph():
        fix = "Use networkx.Graph(G) to drop directions and parallel edges."
        raise InputError("G", "to be an undirected networkx.Graph", type(G).__name__, fix)
    n = G.number_of_nodes()
    nodes = sorted(G.nodes) if set(G.nodes) == set(range(n)) else list(G.nodes)
    if names is not None:
        check_names([str(name) for name in names] if isinstance(names, list | tuple) else names, n)
        nodes = list(names)
    if not all(node in G for node in nodes) or len(set(nodes)) < n:
        raise InputError("names", f"to be the nodes of G: {', '.join(map(str, G.nodes))}", ", ".join(map(str, nodes)))
    place = {node: position for position, node in enumerate(nodes)}
    edges = torch.tensor([(place[i], place[j]) for i, j in G.edges], dtype=torch.int64).reshape(-1, 2)
    named = tuple(nodes) if all(isinstance(node, str) for node in nodes) else None
    given = [weight for *_, weight in G.edges.data("weight")]
    # NaN for what is no number, which a graph refuses; in double precision, since 1e-300 is 0 in single.
    weights = torch.tensor([1.0 if weight is None else number(weight) for weight in given], dtype=torch.float64)
    weighted = any(weight is not None for weight in given)
    return Graph(n, edges, weights if weighted else None, family="networkx", names=named)
