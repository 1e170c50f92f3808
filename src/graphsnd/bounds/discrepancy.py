r"""How far Graph-SND on a fixed graph can be from SND, from the graph's eigenvalues.

Let P project away from the all-ones vector. The centred matrix PDP always has trace -(n-1) SND. When the distance is of
*negative type*, PDP has no positive eigenvalue, so that trace is all there is to it, and eigenvalues of the graph alone
bound Graph-SND / SND (:func:`spectral_ratio`). Euclidean distances are of negative type, and so are sums of absolute
differences, distances in a Hilbert space, and averages of distances of negative type: every distance in this package
but that between full-covariance Gaussians, after averaging over observations too. For a matrix of any kind
:func:`spectral_bound` uses the eigenvalues of PDP as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.spectral import DENSE, TOLERANCE, Spectrum, adjacency, lanczos, spectrum
from graphsnd.errors import InputError, check_finite, check_tensor, shape_of
from graphsnd.graphs import Graph
from graphsnd.sums import total


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
