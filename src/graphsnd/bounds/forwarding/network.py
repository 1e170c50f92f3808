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


def build_network(graph: Graph, capacity: Floats | None = None) -> Network:
    """Return the network of a connected graph.

    Args:
        graph: Any graph; its weights do not enter.
        capacity: ``[m]``, not negative; one each when None. Edges without capacity are left out.

    Raises:
        InputError: When the edges do not join all agents.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    edges = graph.edges.detach().cpu().numpy().astype(np.int64, copy=False)
    capacity = np.ones(len(edges)) if capacity is None else np.asarray(capacity, np.float64)
    edges, capacity = edges[capacity > 0], capacity[capacity > 0]
    tails, heads = np.concatenate([edges, edges[:, ::-1]]).T
    numbers = csr_matrix((np.tile(np.arange(len(edges)), 2), (tails, heads)), shape=(graph.n, graph.n))
    count, label = connected_components(numbers, directed=False)
    if count > 1:
        raise _not_connected(label)
    arcs = numbers.indptr.astype(np.int64), numbers.indices.astype(np.int64), numbers.data
    return Network(graph.n, edges, capacity, arcs)


def _not_connected(label: Ints) -> InputError:
    """Return the error that lists the largest components and the first agents of each."""
    sizes = np.bincount(label)
    parts = []
    for component in np.argsort(-sizes, kind="stable")[:4]:
        members = np.flatnonzero(label == component)
        first = ", ".join(map(str, members[:3])) + ", ..." * (len(members) > 3)
        parts.append(f"{len(members)} ({first})")
    more = f", and {len(sizes) - 4} more" if len(sizes) > 4 else ""
    got = f"{len(sizes)} components with agents {', '.join(parts)}{more}"
    fix = "Add edges between them, or measure each component by itself."
    return InputError("graph", "to be connected, so that every pair has a path", got, fix)
