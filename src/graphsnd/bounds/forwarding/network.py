"""The graph as the routing loops read it: arcs by vertex, edges by number, a capacity on each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsnd.errors import InputError
from graphsnd.graphs import Graph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arcs = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, eq=False)
class Network:
    """A connected undirected graph whose edges carry capacities."""

    n: int  # vertices
    edges: Ints  # [m, 2], i < j
    capacity: Floats  # [m], positive; a load counts relative to it
    arcs: Arcs  # indptr [n + 1], heads [2m], edge numbers [2m]

    @property
    def m(self) -> int:
        """The number of edges."""
        return len(self.edges)

    @property
    def unit(self) -> bool:
        """Whether every capacity is one, so that loads of integral routings are whole numbers."""
        return bool((self.capacity == 1).all())


def build_network(graph: Graph, capacity: Floats | None = None) -> Network:
    """Return the network of a connected graph.

    Args:
        graph: Any graph; its weights do not enter.
        capacity: ``[m]``, not negative; one each when None. Edges without capacity are left out.

    Raises:
        InputError: When the edges do not join all agents.
    """
    edges = graph.edges.detach().cpu().numpy().astype(np.int64, copy=False)
    capacity = np.ones(len(edges)) if capacity is None else np.asarray(capacity, np.float64)
    edges, capacity = edges[capacity > 0], capacity[capacity > 0]
    _check_connected(graph.n, edges)
    return Network(graph.n, edges, capacity, _list_arcs(graph.n, edges))


def _list_arcs(n: int, edges: Ints) -> Arcs:
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    order = np.lexsort((heads, tails))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=n), out=indptr[1:])
    return indptr, heads[order].copy(), np.tile(np.arange(len(edges)), 2)[order]


def _check_connected(n: int, edges: Ints) -> None:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    matrix = coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    count, label = connected_components(matrix, directed=False)
    if count == 1:
        return
    sizes = np.bincount(label)
    largest = np.argsort(-sizes, kind="stable")[:4]
    parts = [f"{sizes[c]} ({', '.join(_name_few(np.flatnonzero(label == c)))})" for c in largest]
    more = f", and {count - 4} more" if count > 4 else ""
    got = f"{count} components with agents {', '.join(parts)}{more}"
    fix = "Add edges between them, or measure each component by itself."
    raise InputError("graph", "to be connected, so that every pair has a path", got, fix)


def _name_few(members: Ints) -> list[str]:
    return [str(v) for v in members[:3]] + (["..."] if len(members) > 3 else [])
