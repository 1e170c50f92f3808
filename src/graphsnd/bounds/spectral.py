"""The eigenvalues of a graph that decide how well its edges stand for all pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphsnd.errors import InputError, check_type
from graphsnd.graphs import Graph

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Below this all eigenvalues of a component are computed; above it Lanczos finds the few at the ends.
DENSE = 1500
# Relative residual at which Lanczos stops. The error of an eigenvalue is of the order of the residual's square.
TOLERANCE = 1e-6
# Lanczos vectors kept: the default 20 restarts for long where the spectrum is dense at its edge, more cost memory.
BASIS = 40


@dataclass(frozen=True)
class Spectrum:
    """The ends of the spectrum of a graph's (weighted) adjacency matrix, eigenvalues in descending order.

    Example:
        >>> import torch, graphsnd as gs
        >>> round(gs.bounds.spectrum(gs.graphs.complete(6)).gap, 6)
        0.8
    """

    degree: float  # the largest degree (sum of weights at an agent); for a regular graph the first eigenvalue
    regular: bool  # whether all degrees are equal
    signed_second: float  # the second eigenvalue, equal to the first when that is repeated
    smallest: float  # the last eigenvalue
    connected: bool  # whether each agent can reach all others
    bipartite: bool  # whether edges join only agents of two different halves

    @property
    def second(self) -> float:
        """The paper's lambda_2: the largest absolute value after one copy of the first eigenvalue is removed."""
        return max(abs(self.signed_second), abs(self.smallest))

    @property
    def gap(self) -> float:
        """1 - lambda_2 / degree, in [0, 1]: 0 for a disconnected or bipartite regular graph."""
        return 1 - self.second / self.degree if self.degree else 0.0

    @property
    def ramanujan(self) -> bool:
        """Whether lambda_2 <= 2 sqrt(degree - 1), as in Proposition 17, on a regular graph.

        A bipartite graph has the eigenvalue -degree, so it is Ramanujan in this sense only when degree is 2 or less;
        authors who except that eigenvalue ask whether ``signed_second`` is that small.
        """
        return self.regular and self.degree >= 1 and self.second <= 2 * math.sqrt(self.degree - 1) * (1 + 1e-9)


def spectrum(graph: Graph) -> Spectrum:
    """Return the eigenvalues at the ends of a graph's spectrum; weights enter where the graph has them.

    Components of up to 1500 agents are diagonalised; larger ones go through Lanczos from a fixed start vector, so the
    answer is the same every time, with about nine digits. Whether a graph is connected or bipartite is decided by
    walking it, not from eigenvalues. Components of more than 20,000 agents may take minutes.

    Args:
        graph: Any graph; an edge of weight 0 counts as absent.

    Raises:
        InputError: When Lanczos does not converge, which takes a large graph with an almost disconnected part.

    Example:
        >>> import graphsnd as gs
        >>> values = spectrum(gs.graphs.complete(5))
        >>> round(values.second, 9), round(values.gap, 9), values.bipartite
        (1.0, 0.75, False)
    """
    from scipy.sparse.csgraph import connected_components

    matrix = adjacency(graph)
    degrees = np.asarray(matrix.sum(axis=1)).reshape(-1)
    count, labels = connected_components(matrix, directed=False)
    members = np.split(np.argsort(labels, kind="stable"), np.bincount(labels).cumsum()[:-1])
    parts = [matrix] if count == 1 else [matrix[part][:, part] for part in members if len(part) > 1]
    ends = [_ends(part) for part in parts]
    # An agent without edges is a component whose only eigenvalue is 0.
    values = np.sort(np.concatenate([*ends, np.zeros(int((degrees == 0).sum()))]))
    return Spectrum(
        degree=float(degrees.max()),
        regular=bool(np.ptp(degrees) <= 1e-9 * degrees.max()),
        signed_second=float(values[-2]),
        smallest=float(values[0]),
        connected=bool(count == 1),
        bipartite=count_bipartite_components(matrix) == count,
    )


def adjacency(graph: Graph) -> Any:
    """Return the symmetric ``scipy.sparse`` CSR matrix of weights, float64, without stored zeros."""
    from scipy.sparse import csr_matrix

    weights = edge_weights(graph)
    i, j = graph.edges.cpu().numpy().T
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    matrix = csr_matrix((np.concatenate([weights, weights]), ends), shape=(graph.n, graph.n))
    matrix.eliminate_zeros()
    return matrix


def edge_weights(graph: Graph) -> Floats:
    """Return the weights of the edges, ``[m]``; one each where the graph has none."""
    check_type("graph", graph, Graph, "to be a graphsnd.Graph", "See graphsnd.graphs.from_networkx.")
    return np.ones(graph.m) if graph.weights is None else graph.weights.detach().double().cpu().numpy()


def count_bipartite_components(matrix: Any) -> int:
    """Return the number of connected components without odd cycle; an agent without edges is one of them.

    The double cover joins (i, 0) to (j, 1) for every edge ij. Over a component it falls apart into two exactly when
    the component is bipartite.
    """
    from scipy.sparse import bmat
    from scipy.sparse.csgraph import connected_components

    single = connected_components(matrix, directed=False, return_labels=False)
    double = connected_components(bmat([[None, matrix], [matrix.T, None]]), directed=False, return_labels=False)
    return int(double - single)


def lanczos(matrix: Any, count: int, which: str) -> Floats:
    """Return ``count`` eigenvalues at one end of a sparse symmetric matrix: "LA" the largest, "SA" the smallest."""
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    n = matrix.shape[0]
    start = np.random.default_rng(n).standard_normal(n)
    try:
        values = eigsh(matrix, count, which=which, v0=start, ncv=BASIS, tol=TOLERANCE, return_eigenvectors=False)
    except ArpackNoConvergence:
        fix = "A part of it is almost disconnected from the rest; take that part alone."
        raise InputError("graph", "whose extreme eigenvalues Lanczos can separate", f"n = {n}", fix) from None
    return np.sort(values)


def _ends(matrix: Any) -> Floats:
    """Return the last, second and first eigenvalue of a connected graph.

    By Perron and Frobenius its first eigenvalue is simple, so a single Lanczos sequence, which sees one copy of every
    eigenvalue, finds the two largest. That is why components are taken one by one.
    """
    if matrix.shape[0] <= DENSE:
        values = np.linalg.eigvalsh(matrix.toarray())
        return values[[0, -2, -1]] if len(values) > 2 else values
    return np.concatenate([lanczos(matrix, 1, "SA"), lanczos(matrix, 2, "LA")])
