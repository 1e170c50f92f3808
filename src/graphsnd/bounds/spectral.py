r"""The eigenvalues of a graph, and how far Graph-SND on it can be from SND because of them.

Let P project away from the all-ones vector. The centred matrix PDP always has trace -(n-1) SND. When the distance is of
*negative type*, PDP has no positive eigenvalue, so that trace is all there is to it, and eigenvalues of the graph alone
bound Graph-SND / SND (:func:`spectral_ratio`). Euclidean distances are of negative type, and so are sums of absolute
differences, distances in a Hilbert space, and averages of distances of negative type: every distance in this package
but that between full-covariance Gaussians, after averaging over observations too. For a matrix of any kind
:func:`spectral_bound` uses the eigenvalues of PDP as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.errors import InputError, check_finite, check_tensor, check_type, shape_of
from graphsnd.graphs import Graph
from graphsnd.sums import total

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


@dataclass(frozen=True)
class SpectralRatio:
    """Graph-SND / SND lies between these for every team, if the distance is of negative type.

    Example:
        >>> import graphsnd as gs
        >>> ratio = spectral_ratio(gs.graphs.circulant(6, 4))
        >>> round(ratio.low, 4), round(ratio.high, 4)
        (0.8333, 1.25)
    """

    low: float  # Graph-SND / SND is at least this ...
    high: float  # ... and at most this


@dataclass(frozen=True)
class SpectralBound:
    """The bounds that eigenvalues give for one graph and one matrix of distances.

    Example:
        >>> import torch, graphsnd as gs
        >>> line = torch.arange(8.0)
        >>> bound = spectral_bound(gs.graphs.random_regular(8, 4, seed=0), (line[:, None] - line).abs())
        >>> bound.low < 1 < bound.high, bound.rho >= 2 * 7 / 8
        (True, True)
    """

    absolute: float  # the paper's bound on |Graph-SND - SND|
    relative: float  # the paper's bound on |Graph-SND / SND - 1|; 0 when all distances are
    rho: float  # normalised nuclear norm |D|_* / (n SND), never below 2 (n-1)/n
    low: float  # Graph-SND / SND is at least this ...
    high: float  # ... and at most this, from the centred matrix: never worse than 1 +- relative
    spectrum: Spectrum  # the graph's eigenvalues


def spectral_bound(graph: Graph, distances: Tensor) -> SpectralBound:
    r"""Return the spectral bound of Proposition 17 for a regular graph, and a sharper one from the same proof.

    .. math:: \left| \frac{\mathrm{SND}_G}{\mathrm{SND}} - 1 \right| \le \frac{\lambda_2 + d/(n-1)}{d} \rho_*,
        \qquad \rho_* = \frac{\|D\|_*}{n\, \mathrm{SND}}

    The proof pairs D with M = A - d/(n-1) (J - I). It needs no connectedness, but it gives away much: D has trace 0
    and an eigenvalue of at least (n-1) SND, so rho is at least 2(n-1)/n and the bound above 1 for small degrees.
    Since M sends the all-ones vector to 0, D may be replaced by PDP, whose eigenvalues sum to -(n-1) SND. With s the
    sum of its positive ones, and the eigenvalues of M between mu_min <= 0 <= mu_max,

    .. math:: -\mu_{\max} ((n-1) \mathrm{SND} + s) + \mu_{\min} s \;\le\; nd\, (\mathrm{SND}_G - \mathrm{SND})
        \;\le\; -\mu_{\min} ((n-1) \mathrm{SND} + s) + \mu_{\max} s.

    s is 0 for a distance of negative type, up to rounding.

    Args:
        graph: Regular, without weights.
        distances: ``[n, n]``, symmetric, from :func:`graphsnd.pairwise`. The time grows with n cubed, a few seconds
            for 2000 agents; :func:`spectral_ratio` needs the graph alone and takes larger ones.

    Raises:
        InputError: For a graph that is not regular or has weights, or distances of another size.

    Example:
        >>> import torch, graphsnd as gs
        >>> line = torch.arange(8.0)
        >>> bound = spectral_bound(gs.graphs.random_regular(8, 4, seed=0), (line[:, None] - line).abs())
        >>> bound.low < 1 < bound.high, bound.high - 1 < bound.relative
        (True, True)
    """
    values = spectrum(graph)
    if not values.regular or values.degree == 0 or graph.weights is not None:
        fix = "spectral_ratio takes any graph."
        raise InputError("graph", "to be regular, without weights", repr(graph), fix)
    matrix, n = check_symmetric(distances), graph.n
    if len(matrix) != n:
        raise InputError("distances", f"with shape (n, n) = ({n}, {n})", shape_of(matrix))
    snd = float(total(matrix)) / (n * (n - 1))
    if snd == 0:
        return SpectralBound(0.0, 0.0, 0.0, 1.0, 1.0, values)
    rho = nuclear_norm(matrix) / (n * snd)
    relative = (values.second + values.degree / (n - 1)) / values.degree * rho
    low, high = _centred_bounds(matrix, snd, values)
    return SpectralBound(relative * snd, relative, rho, max(low, 1 - relative), min(high, 1 + relative), values)


def spectral_ratio(graph: Graph) -> SpectralRatio:
    r"""Return bounds on Graph-SND / SND for every team whose distance is of negative type, from the graph alone.

    .. math:: \frac{n-1}{2W} \ell_2 \;\le\; \frac{\mathrm{SND}_G}{\mathrm{SND}} \;\le\; \frac{n-1}{2W} \ell_n

    with W the total weight and :math:`\ell_2, \ell_n` the second smallest and the largest eigenvalue of the Laplacian
    L. For a d-regular graph the bounds are (1 - 1/n)(1 - lambda/d) at the second and at the last eigenvalue of A. Since
    L sends the all-ones vector to 0, the sum over the edges is <L, K>/2 with K = -PDP, which is positive semidefinite
    with trace (n-1) SND. A constant factor from every expander, where the forwarding index gives log n. Squared
    differences of the entries of an eigenvector reach the bounds; they are of negative type, though seldom a metric.

    Args:
        graph: Any graph with an edge; weights enter.

    Raises:
        InputError: For a graph of total weight 0, or when Lanczos does not converge.

    Example:
        >>> import graphsnd as gs
        >>> bounds = spectral_ratio(gs.graphs.complete(6))
        >>> round(bounds.low, 9), round(bounds.high, 9)
        (1.0, 1.0)
    """
    matrix = adjacency(graph)
    weight = float(matrix.sum())
    if weight == 0:
        raise InputError("graph", "with an edge of positive weight", repr(graph))
    second, last = _laplacian_ends(matrix)
    return SpectralRatio(max(0.0, (graph.n - 1) / weight * second), (graph.n - 1) / weight * last)


def _centred_bounds(matrix: Tensor, snd: float, values: Spectrum) -> tuple[float, float]:
    """Return the sharper bounds on Graph-SND / SND."""
    n = len(matrix)
    means = matrix.mean(0)
    centred = matrix - means - means[:, None] + means.mean()
    trace = (n - 1) * snd
    positive = max(0.0, (nuclear_norm(centred) - trace) / 2)
    shift = values.degree / (n - 1)
    top, bottom = values.signed_second + shift, values.smallest + shift
    scale = n * values.degree * snd
    low = 1 + (-top * (trace + positive) + bottom * positive) / scale
    return low, 1 + (-bottom * (trace + positive) + top * positive) / scale


def _laplacian_ends(matrix: Any) -> tuple[float, float]:
    """Return the second smallest and the largest eigenvalue of the Laplacian, moved outwards by Lanczos' tolerance."""
    from scipy.sparse import csgraph, identity

    laplacian = csgraph.laplacian(matrix).tocsr()
    if matrix.shape[0] <= DENSE:
        values = np.linalg.eigvalsh(laplacian.toarray())
        return float(values[1]), float(values[-1])
    largest = float(lanczos(laplacian, 1, "LA")[0]) * (1 + TOLERANCE)
    if csgraph.connected_components(matrix, directed=False, return_labels=False) > 1:
        return 0.0, largest
    # Turned over, because the tolerance is relative and the smallest eigenvalue is 0.
    turned = largest * identity(matrix.shape[0], format="csr") - laplacian
    return max(0.0, largest - float(lanczos(turned, 2, "LA")[0]) - TOLERANCE * largest), largest


def nuclear_norm(matrix: Tensor) -> float:
    """Return the sum of the absolute eigenvalues of a symmetric float64 matrix.

    A distance of negative type has a single positive eigenvalue, so there the norm is twice that one.
    """
    return float(torch.linalg.eigvalsh(matrix).abs().sum())


def check_symmetric(distances: Tensor) -> Tensor:
    """Return the matrix in float64, once it is known to be a symmetric matrix of distances."""
    distances = check_tensor("distances", distances, 2, "(n, n)")
    if distances.dim() != 2 or distances.shape[0] != distances.shape[1] or len(distances) < 2:
        raise InputError("distances", "with shape (n, n), at least (2, 2)", shape_of(distances))
    check_finite("distances", distances)
    matrix = distances.detach().double()
    scale = float(matrix.abs().max())
    off = float((matrix - matrix.T).abs().max())
    if off > 1e-5 * scale:
        raise InputError("distances", "to be symmetric", f"entries that differ by {off:.3g}", "Use graphsnd.pairwise.")
    if bool(matrix.diagonal().any()):
        fix = "An agent is at distance 0 of itself."
        raise InputError("distances", "to have a zero diagonal", f"{float(matrix.diagonal().abs().max()):.3g}", fix)
    return (matrix + matrix.T) / 2
