r"""Other measures of a team's diversity from the same distances, to report beside SND.

Each takes the matrix of :func:`graphsnd.pairwise`, or any other distances of ``n`` agents, and returns a scalar in its
precision, computed in float64 and differentiable. Two need the distances alone: :func:`social_entropy` and
:func:`nearest`. Three count kinds of behaviour and need to know at what distance two agents are of different kinds:
:func:`vendi`, :func:`effective_number` and :func:`log_determinant` call agents similar by
:math:`\exp(-d(i,j) / \text{width})`. That kernel is positive definite for every mean of Euclidean, total variation,
Hellinger or square-root Jensen-Shannon distances (Schoenberg, 1938); the squared exponential is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.errors import (
    InputError,
    check_choice,
    check_finite,
    check_integer,
    check_number,
    check_positive,
    describe,
)
from graphsnd.sums import mean, total

__all__ = ["effective_number", "log_determinant", "nearest", "side_by_side", "social_entropy", "vendi"]

Reduce = Callable[[Tensor], Tensor]
LINKAGES: dict[str, Reduce] = {"complete": Tensor.amax, "single": Tensor.amin, "average": Tensor.mean}


@checked
def social_entropy(distances: Tensor, *, linkage: str = "complete") -> Tensor:
    r"""Hierarchic Social Entropy: the entropy of the clusters of diameter ``h``, integrated over ``h``.

    .. math:: S = \int_0^\infty H(h)\, dh, \qquad H(h) = -\sum_c p_c(h) \log_2 p_c(h)

    Balch, Autonomous Robots 8(3), 2000. H only falls where two clusters merge, so S is the sum over merges of height
    times fall, linear in the distances where these change nothing in the tree. O(n^2) after scipy's O(n^2) linkage.

    Args:
        distances: ``[n, n]``, symmetric.
        linkage: ``complete``: all agents of a cluster are within h, as Balch asks, but clusters do not overlap;
            ``single`` or ``average``.

    Returns:
        Scalar in units of distance times bits; 0 for identical agents.

    Example:
        >>> two_camps = torch.tensor([[0.0, 0.0, 3.0, 3.0]])
        >>> social_entropy((two_camps - two_camps.T).abs())
        tensor(3.)
    """
    from scipy.cluster.hierarchy import linkage as link
    from scipy.spatial.distance import squareform

    check_choice("linkage", linkage, LINKAGES)
    matrix = _check(distances)
    tree = link(squareform(matrix.detach().cpu().numpy(), checks=False), linkage)
    n, clusters = len(matrix), [[agent] for agent in range(len(matrix))]
    parts = []
    for left, right in tree[:, :2].astype(int):
        one, two = clusters[left], clusters[right]
        clusters.append(one + two)
        falls = sum(sign * len(c) * math.log2(len(c)) for sign, c in ((1, one + two), (-1, one), (-1, two))) / n
        # Every pair of agents stands in one merge only, so all of them together read the matrix once.
        parts.append(falls * LINKAGES[linkage](matrix[one][:, two]))
    return total(torch.stack(parts)).to(distances.dtype)


@checked
def vendi(distances: Tensor, *, width: float = 1.0, order: float = 1.0) -> Tensor:
    r"""Vendi score: the effective number of different agents, from the spectrum of their similarities.

    .. math:: \mathrm{VS} = \exp\Big(-\sum_i \lambda_i \log \lambda_i\Big), \qquad \lambda = \mathrm{eig}(K / n)

    Friedman and Dieng, TMLR 2023; other orders: Pasarkar and Dieng, AISTATS 2024. O(n^3).

    Args:
        distances: ``[n, n]``, symmetric.
        width: Distance at which the similarity of two agents is 1/e.
        order: Of the entropy; the larger, the more do common kinds count.

    Returns:
        Scalar from 1, all alike, to n, all different.

    Example:
        >>> vendi(torch.tensor([[0.0, 99.0, 99.0], [99.0, 0.0, 0.0], [99.0, 0.0, 0.0]]))
        tensor(1.8899)
    """
    similar = _similarities(distances, width)
    shares = torch.linalg.eigvalsh(similar / len(similar))
    # Eigenvalues of copies are 0 up to rounding, where the logarithm has no derivative; a copy is no kind of its own.
    shares = shares[shares > len(similar) * torch.finfo(shares.dtype).eps]
    return _hill(shares, shares, order).to(distances.dtype)


@checked
def effective_number(distances: Tensor, *, width: float = 1.0, order: float = 2.0) -> Tensor:
    r"""Effective number of behaviours: how many agents, all different, are as diverse as these.

    .. math:: D = \Big(\frac1n \sum_i (Kp)_i^{q-1}\Big)^{1/(1-q)}, \qquad (Kp)_i = \frac1n \sum_j K_{ij}

    Leinster and Cobbold, Ecology 93(3), 2012. At order q = 2 it is one over the mean similarity, so that for distances
    far below ``width`` it is a function of SND. O(n^2).

    Args:
        distances: ``[n, n]``, symmetric.
        width: Distance at which the similarity of two agents is 1/e.
        order: q; the larger, the more do common kinds count.

    Returns:
        Scalar from 1, all alike, to n, all different.

    Example:
        >>> effective_number(torch.tensor([[0.0, 99.0, 99.0], [99.0, 0.0, 0.0], [99.0, 0.0, 0.0]]))
        tensor(1.8000)
    """
    similar = _similarities(distances, width)
    return _hill(torch.full_like(similar[0], 1 / len(similar)), similar.mean(dim=1), order).to(distances.dtype)


@checked
def log_determinant(distances: Tensor, *, width: float = 1.0) -> Tensor:
    r"""Determinant diversity of determinantal point processes: the logarithm of the determinant of the similarities.

    .. math:: \log \det K, \qquad K_{ij} = \exp(-d(i,j) / \text{width})

    Kulesza and Taskar, 2012; as an objective for populations of policies (DvD): Parker-Holder et al., NeurIPS 2020.
    O(n^3). The determinant, ``.exp()``, is the squared volume that the agents span; it underflows for many agents.

    Args:
        distances: ``[n, n]``, symmetric.
        width: Distance at which the similarity of two agents is 1/e.

    Returns:
        Scalar, at most 0, all different; ``-inf``, without gradient, as soon as two agents are identical.

    Example:
        >>> log_determinant(torch.tensor([[0.0, 1.0], [1.0, 0.0]])).exp()  # 1 - exp(-2)
        tensor(0.8647)
    """
    similar = _similarities(distances, width)
    identity = torch.eye(len(similar), dtype=similar.dtype, device=similar.device)
    copies = ((similar.detach() >= 1) & (identity == 0)).any()
    value = torch.linalg.slogdet(torch.where(copies, identity, similar)).logabsdet
    return torch.where(copies, -math.inf, value).to(distances.dtype)


@checked
def nearest(distances: Tensor, *, neighbours: int = 1) -> Tensor:
    r"""Mean distance to the nearest other agent, or to the ``neighbours`` nearest.

    .. math:: \frac1n \sum_i \min_{j \ne i} d(i,j)

    Clark and Evans, Ecology 35(4), 1954; with several neighbours, the novelty of Lehman and Stanley, 2011. O(n^2).

    Args:
        distances: ``[n, n]``, symmetric.
        neighbours: Number of nearest others.

    Returns:
        Scalar in units of distance, at most SND; 0 where every agent has a copy.

    Example:
        >>> nearest(torch.tensor([[0.0, 1.0, 5.0], [1.0, 0.0, 4.0], [5.0, 4.0, 0.0]]))
        tensor(2.)
    """
    matrix = _check(distances)
    n = len(matrix)
    check_integer("neighbours", neighbours, f"in 1 .. {n - 1}", low=1, high=n - 1)
    others = matrix + torch.full_like(matrix[0], math.inf).diag()
    return mean(others.topk(neighbours, dim=1, largest=False).values).to(distances.dtype)


@checked
def side_by_side(distances: Tensor, *, width: float = 1.0) -> dict[str, float]:
    """SND and all measures of this module, for a table.

    Args:
        distances: ``[n, n]``, symmetric.
        width: Distance at which the similarity of two agents is 1/e.

    Example:
        >>> side_by_side(torch.ones(3, 3) - torch.eye(3))["snd"]
        1.0
    """
    n, given = len(_check(distances)), distances.detach()
    return {
        "snd": float(total(given.double())) / (n * (n - 1)),
        "social_entropy": float(social_entropy(given)),
        "nearest": float(nearest(given)),
        "vendi": float(vendi(given, width=width)),
        "effective_number": float(effective_number(given, width=width)),
        "log_determinant": float(log_determinant(given, width=width)),
    }


def _check(distances: Tensor) -> Tensor:
    """Return the matrix in float64, or raise unless it holds distances of at least 2 agents."""
    n = distances.shape[0] if distances.dim() == 2 else 0
    if n < 2 or distances.shape != (n, n) or not distances.is_floating_point():
        expected = "to be floating with shape (agents, agents), at least 2 agents"
        raise InputError("distances", expected, describe(distances), "Use gs.pairwise.")
    check_finite("distances", distances)
    given = distances.detach()
    if bool((given < 0).any() | (given.diagonal() != 0).any()) or not torch.allclose(given, given.T, rtol=1e-4):
        raise InputError("distances", "to be symmetric, not negative, and 0 on the diagonal", "others")
    return distances.double()


def _similarities(distances: Tensor, width: float) -> Tensor:
    matrix = _check(distances)
    check_positive("width", width, "It is a distance, from which on agents are of different kinds.")
    return (-matrix / width).exp()


def _hill(shares: Tensor, values: Tensor, order: float) -> Tensor:
    """Return the effective number of kinds with these shares and abundances."""
    check_number("order", order, 0, math.inf)
    if abs(order - 1) < 1e-8:  # nearer to 1, rounding is more than the difference from the limit
        return (-total(shares * values.log())).exp()
    return ((shares.log() + (order - 1) * values.log()).logsumexp(0) / (1 - order)).exp()
