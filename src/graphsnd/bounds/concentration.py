"""How far a mean over sampled edges may be from SND: section 5.2 of the paper, and a certified D_max to go with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.errors import InputError, check_agents, check_integer, check_number, describe


def hoeffding(d_max: float, m: int, delta: float) -> float:
    r"""Return the radius of Theorem 9: how close the mean over ``m`` sampled edges is to SND, except with chance delta.

    .. math:: D_{\max} \sqrt{\log(2/\delta) / (2m)}

    Args:
        d_max: Upper bound on every distance.
        m: Number of sampled edges.
        delta: Failure probability.

    Example:
        >>> round(hoeffding(1.0, 450, 0.05), 4)
        0.064
    """
    d_max, m, delta = check_arguments(d_max, m, delta)
    return d_max * math.sqrt((math.log(2) - math.log(delta)) / (2 * m))


def serfling(d_max: float, m: int, pairs: int, delta: float) -> float:
    r"""Return Serfling's refinement for sampling without replacement from ``pairs`` pairs (Remark 11).

    .. math:: D_{\max} \sqrt{(1 - (m-1)/|P|) \log(2/\delta) / (2m)}

    Args:
        d_max: Upper bound on every distance.
        m: Number of sampled edges.
        pairs: Number of all pairs, n(n-1)/2.
        delta: Failure probability.

    Example:
        >>> serfling(1.0, 450, 4950, 0.05) < hoeffding(1.0, 450, 0.05)
        True
    """
    d_max, m, delta = check_arguments(d_max, m, delta, pairs)
    return d_max * math.sqrt((math.log(2) - math.log(delta)) / (2 * m)) * math.sqrt(1 - (m - 1) / pairs)


def empirical_bernstein(std: float, d_max: float, m: int, pairs: int, delta: float) -> float:
    r"""Return the two-sided empirical Bernstein-Serfling radius (Bardenet and Maillard 2015, Theorem 4.3).

    .. math:: \hat\sigma \sqrt{2 \rho_m L / m} + \kappa D_{\max} L / m, \qquad L = \log(10/\delta)

    with kappa = 7/3 + 3/sqrt(2) and rho the finite-population factor. Narrower than Serfling's when the
    distances vary much less than their bound. Their one-sided statement fails with probability 5 delta';
    both sides together 10 delta' = delta.

    Args:
        std: Standard deviation of the ``m`` sampled distances.
        d_max: Upper bound on every distance.
        m: Number of sampled edges.
        pairs: Number of all pairs, n(n-1)/2.
        delta: Failure probability.

    Example:
        >>> empirical_bernstein(0.01, 1.0, 2000, 4950, 0.05) < serfling(1.0, 2000, 4950, 0.05)
        True
    """
    d_max, m, delta = check_arguments(d_max, m, delta, pairs)
    std = check_number("std", std, low=0)
    rho = 1 - (m - 1) / pairs if m <= pairs / 2 else (1 - m / pairs) * (1 + 1 / m)
    log_term = math.log(10) - math.log(delta)
    kappa = 7 / 3 + 3 / math.sqrt(2)
    return std * math.sqrt(2 * rho * log_term / m) + kappa * d_max * log_term / m


@dataclass(frozen=True)
class BernoulliBound:
    """An unconditional statement about a Bernoulli graph that has not been drawn yet.

    Example:
        >>> bound = bernoulli(1.0, 0.1, 100, 0.05)  # distances of at most 1, p = 0.1, 100 agents
        >>> round(bound.radius, 4), round(bound.failure, 4)
        (0.0863, 0.05)
    """

    radius: float  # |Graph-SND - SND| is at most this, on the event that the graph has an edge ...
    failure: float  # ... except with this probability, delta + exp(-mu/8), at most 1


def bernoulli(d_max: float, p: float, n: int, delta: float) -> BernoulliBound:
    r"""Return the unconditional Bernoulli form (Remark 10), by Theorem 9 and a Chernoff bound on the edge count.

    .. math:: D_{\max} \sqrt{\log(2/\delta) / \mu}, \quad \mu = p \tbinom{n}{2}, \quad
        \text{failure } \delta + e^{-\mu/8}

    Args:
        d_max: Upper bound on every distance.
        p: Edge probability.
        n: Number of agents.
        delta: Failure probability of the concentration part.

    Example:
        >>> bernoulli(1.0, 0.1, 100, 0.05)
        BernoulliBound(radius=0.0863..., failure=0.05)
    """
    d_max, _, delta = check_arguments(d_max, 1, delta)
    p, n = check_number("p", p, above=0, high=1), check_agents(n)
    mu = p * n * (n - 1) / 2
    return BernoulliBound(d_max * math.sqrt((math.log(2) - math.log(delta)) / mu), min(1.0, delta + math.exp(-mu / 8)))


def edges_for(eps: float, d_max: float, delta: float) -> int:
    """Return the edges that suffice for an error of ``eps`` with probability 1 - delta: Theorem 9 solved for m.

    Args:
        eps: Tolerated absolute error.
        d_max: Upper bound on every distance.
        delta: Failure probability.

    Example:
        >>> edges_for(0.05, 1.0, 0.05)
        738
    """
    d_max, _, delta = check_arguments(d_max, 1, delta)
    eps = check_number("eps", eps, above=0)
    needed = (d_max / eps) * (d_max / eps) * (math.log(2) - math.log(delta)) / 2
    m = max(1, math.ceil(needed))
    # The square root rounds: the neighbours decide, so that the answer is the least m by hoeffding's own arithmetic.
    return next(k for k in range(max(1, m - 1), m + 2) if hoeffding(d_max, k, delta) <= eps)


def diameter(behavior: Behavior, distance: Distance | str | None = None) -> float:
    """Return a certain upper bound on all distances, in O(n): the two largest distances to the mean agent, added.

    By the triangle inequality d(i, j) <= d(i, c) + d(c, j) for any point c; at most twice the true largest
    distance. Where the distance has a maximum of its own (total variation: 1), the smaller of the two. Where the
    distance is no norm of a difference (Jensen-Shannon, Bures), the mean may be far from all agents, so the
    agent nearest to it is tried as c too.

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        distance: A distance or its name; the family's default when None.

    Example:
        >>> import torch, graphsnd as gs
        >>> round(diameter(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))), 3)
        6.0
    """
    bound = points_diameter(embed(behavior, distance))
    maximum = as_distance(behavior, distance).maximum
    return bound if maximum is None else min(bound, maximum)


def points_diameter(points: Points) -> float:
    """Return the same for points that are already embedded."""
    none = torch.empty(0, 2, dtype=torch.int64, device=points.values.device)
    return measure_edges(points.metric(), none)[2]


def measure_edges(points: Points, edges: Tensor, *, backend: str = "auto") -> tuple[Tensor, Tensor, float]:
    """Return :func:`graphsnd.kernels.edge_means_and_totals` of a graph's edges, and a bound on all mean distances.

    The distances to the mean agent, which the bound needs, are measured in the same visit.
    """
    check_metric(points)
    means, totals = kernels.edge_means_and_totals(points, edges, ordered=True, radii=True, backend=backend)
    means, radii = means.split([len(edges), points.agents])
    bound = float(radii.topk(2).values.sum())
    if points.norm in (Norm.SQRT_JS, Norm.BURES):
        agents = torch.arange(points.agents, device=radii.device)
        star = torch.stack([torch.full_like(agents, int(radii.argmin())), agents], dim=1)
        nearest = kernels.edge_means(points.detach(), star, backend=backend)
        bound = min(bound, float(nearest.topk(2).values.sum()))
    # Rounded up by more than the rounding of the distances, so that "certified" survives float32.
    return means, totals, bound * (1 + 16 * torch.finfo(points.result_dtype).eps)


def check_metric(points: Points) -> None:
    """Raise for a corrected distance, which may be negative: it bounds no pair that is left out."""
    if Norm.CROSS in (points.norm, *map(attrgetter("norm"), points.blocks)):
        fix = "Measure all pairs, without a design."
        raise InputError("distance", "without debias where pairs are sampled", "a corrected distance", fix)


def check_arguments(d_max: float, m: int, delta: float, pairs: int | None = None) -> tuple[float, int, float]:
    """Return the arguments that bounds share as plain numbers, or raise unless they make sense.

    Bounds have log(c) - log(delta), because c / delta may be too large for a float.
    """
    d_max, delta = check_number("d_max", d_max, low=0), check_number("delta", delta, above=0, high=1)
    if delta == 1:
        raise InputError("delta", "to be below 1", describe(delta))
    m = check_integer("m", m, "to be an integer, at least 1", low=1, fix="A draw without edges bounds nothing.")
    if pairs is not None:
        check_integer("pairs", pairs, f"to be an integer, at least m = {m}", low=m, fix="n agents have n(n-1)/2 pairs.")
    return d_max, m, delta
