r"""How far a mean over some pairs can be from SND: the edges of a random graph, or pairs redrawn per observation.

Of pairs that are redrawn, let :math:`X_o` be the mean distance that was measured at observation o; it has mean
:math:`\mathrm{SND}_o` and lies in [0, D_max].

*Some observations.* Drawn without replacement, t of them. For any function, :math:`E \prod_o g(X_o)` over such a draw
is at most what it would be for t independent draws of an observation and its agents: given the observations, the
factors are independent, and Hoeffding's comparison of sampling without and with replacement applies to the convex
function exp of :math:`\sum_o \log E[g(X_o) \mid o]`. Every inequality that follows from moment generating functions of
sums therefore holds as for independent draws; Hoeffding's and the empirical Bernstein inequality (Audibert, Munos and
Szepesvari, 2009) do.

*All observations*, once or several times. Nothing is left of the choice of observations. The :math:`X_o` are
independent, with variances at most c S_o^2 (:mod:`graphsnd.bounds.relabelling`), so Bernstein's inequality needs only a
guaranteed upper value of their mean, which the spreads inside each observation give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd import bounds
from graphsnd.bounds.relabelling import relabelling_factor
from graphsnd.designs.template import Template
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate, Interval
from graphsnd.estimation.moments import Draws
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import Sampling
from graphsnd.sums import add_last, mean, sample_variance

BLOCKS = 32  # contiguous blocks of observations that stand for clusters where none are given
FEWEST = 16  # observations below which their error is not estimated
LARGE = 10**9  # degrees of freedom at which Student's distribution is the normal one

# Standard error of having these observations and not others, and its interval; None where there are too few.
PopulationError = tuple[float | None, Interval | None]


@dataclass(frozen=True)
class PairError:
    """The error of measuring some pairs instead of all, in the fields of an :class:`~graphsnd.Estimate`."""

    standard_error: float
    interval: Interval
    method: str
    guaranteed: bool = True


def random_graph_error(graph: Graph, distances: Tensor, value: float, d_max: float, delta: float) -> PairError:
    """Return the error of the mean over the edges of a random graph."""
    pairs = math.comb(graph.n, 2)
    if graph.m == pairs:
        return PairError(0.0, (value, value), "exact: all pairs")
    # A single distance shows no spread; no distances between 0 and d_max spread more than half of it.
    largest = float(distances.max()) or 1.0  # whose square may overflow
    std = largest * math.sqrt(float(sample_variance(distances / largest))) if graph.m > 1 else d_max / 2
    if graph.sampling is Sampling.RELABELLED:
        error, radius, method = _relabelled_error(graph, distances, std, d_max, delta)
    else:
        error = std * math.sqrt((1 - graph.m / pairs) / graph.m)
        serfling = bounds.serfling(d_max, graph.m, pairs, delta / 2)
        bernstein = bounds.empirical_bernstein(std, d_max, graph.m, pairs, delta / 2)
        radius, method = min((serfling, "Serfling"), (bernstein, "empirical Bernstein-Serfling"))
    share = graph.m / pairs
    # The other pairs lie between 0 and the diameter, so the measured ones alone bound SND for certain.
    certain = share * value, share * value + (1 - share) * d_max
    interval = max(value - radius, certain[0]), min(value + radius, certain[1])
    return PairError(error, interval, f"{method}, certified diameter")


def _relabelled_error(
    graph: Graph, distances: Tensor, std: float, d_max: float, delta: float
) -> tuple[float, float, str]:
    """Return the standard error, the radius and its method for a graph whose agents were numbered at random.

    The factor bounds the variance for every team. Regular graphs do better on teams whose differences are mostly
    effects of single agents, which cancel in them.
    """
    degrees = graph.degrees()
    factor = relabelling_factor(graph.n, degrees)
    # Edges of one draw spread less than all pairs do, by what their mean varies.
    ceiling = Draws.pair_variance_ceiling(Template(graph.n, graph.edges), graph.n)
    error, degree = std * math.sqrt(factor if ceiling is None else ceiling), int(degrees[0])
    if int(degrees.min()) != int(degrees.max()):
        return error, d_max / 2 * math.sqrt(factor / delta), "second moments of relabelled graphs"
    # From degree 3 on, the edges of an agent show its effect.
    error = bounds.regular_standard_error(distances, graph) if degree >= 3 else error
    radius = bounds.random_regular_bound(d_max, graph.n, degree, delta)
    return error, radius, "second moments of random regular graphs"


def observation_radius(draws: int, variance: float, d_max: float, delta: float) -> tuple[float, str]:
    """Radius from a random part of the observations: the narrower of two, each at half the failure probability.

    Args:
        draws: Number of observations drawn.
        variance: Variance of their means, with divisor ``draws``.
        d_max: Upper bound on every distance.
        delta: Failure probability.
    """
    log_term = math.log(6 / delta)
    bernstein = math.sqrt(2 * variance * log_term / draws) + 3 * d_max * log_term / draws
    return min((bernstein, "empirical Bernstein"), (bounds.hoeffding(d_max, draws, delta / 2), "Hoeffding"))


def pair_radius(draws: int, spread: float, ceiling: float, most: int, d_max: float, delta: float) -> tuple[float, str]:
    r"""Radius when every observation was used the same number of times.

    Spreads lie in [0, B] with B = D_max^2 m / (4 (m - 1)), and their mean y has, with probability 1 - delta,
    :math:`\sqrt{E y} \le \sqrt{y + h} + \sqrt{h}` with :math:`h = B \log(1/\delta) / 2t`.

    Args:
        draws: Number of draws.
        spread: Mean of the variances inside draws.
        ceiling: Variance of a mean in units of the expected spread, at most.
        most: Distances in a draw.
        d_max: Upper bound on every distance.
        delta: Failure probability; a third goes to the variance.
    """
    if ceiling == 0:
        return 0.0, "exact: all pairs"
    largest = d_max * d_max * most / (4 * (most - 1))
    h = largest * math.log(3 / delta) / (2 * draws)
    root, log_term = math.sqrt(spread + h) + math.sqrt(h), math.log(3 / delta)
    first, variance = d_max * log_term / 3, ceiling * root * root  # not **, which raises where a product is infinite
    return (first + math.sqrt(first * first + 2 * draws * variance * log_term)) / draws, "Bernstein, pairs only"


def guaranteed_radius(
    draws: Draws, template: Template, n: int, observations: int, d_max: float, delta: float
) -> tuple[float, str]:
    """The radius that holds for every team, from whichever of the two arguments applies."""
    biased = draws.total_variance() * (draws.count - 1) / draws.count if draws.count > 1 else d_max * d_max / 4
    ceiling = Draws.pair_variance_ceiling(template, n)
    # A pass that was not finished leaves something of the choice of observations; nor does a single pair tell.
    if draws.count % observations or ceiling is None:
        return observation_radius(draws.count, biased, d_max, delta)
    spread = float(mean(draws.spreads)) if ceiling else 0.0
    return pair_radius(draws.count, spread, ceiling, template.m, d_max, delta)


def errors(
    draws: Draws, template: Template, n: int, observations: int, d_max: float | None = None
) -> tuple[float, float]:
    """Return the standard error on the given observations, and the part of it that comes from choosing pairs.

    With r draws in the pass that is not finished, their choice contributes r (1 - r / observations) / draws^2 of the
    variance between observations, which is what the variance of a draw exceeds that of its pairs by.

    Args:
        draws: What was measured.
        template: What was measured at each.
        n: Number of agents.
        observations: Number of observations that were given.
        d_max: Upper bound on every distance where one is known: no variance exceeds a quarter of its square.
    """
    most = math.inf if d_max is None else d_max * d_max / 4
    pairs = min(most, draws.pair_variance(template, n))
    between = max(0.0, min(most, draws.total_variance()) - pairs) if draws.count > 1 else 0.0
    rest = draws.count % observations
    both = pairs / draws.count + between * rest * (1 - rest / observations) / draws.count**2
    return math.sqrt(both), math.sqrt(pairs / draws.count)


def quantile(delta: float, freedom: int) -> float:
    """Two-sided quantile of Student's distribution."""
    from scipy.special import stdtrit

    return -float(stdtrit(max(1, freedom), delta / 2))  # 1 - delta / 2 may round to 1, whose quantile is infinite


def population_error(
    values: Tensor,
    index: Tensor | None,
    clusters: Tensor | None,
    observations: int,
    confidence: float,
    shared: float = 0.0,
) -> PopulationError:
    """Return the error of a mean over observations that come in clusters, and its interval.

    Observations of one episode resemble each other, so the clusters are what was drawn independently. Without
    clusters, contiguous blocks stand in for them: neighbours of a rollout are correlated, long blocks much less.

    Args:
        values: One for each draw, ``[draws]``.
        index: The observation of each draw, ``[draws]``; each measured once when None.
        clusters: Cluster of each observation, int64 ``[observations]``, or None.
        observations: Their number.
        confidence: Coverage of the interval.
        shared: Standard error that all observations share, as of one draw of pairs for all of them: in the interval.

    Returns:
        None and None for fewer than 2 clusters, or 16 observations without clusters.
    """
    if clusters is None and observations < FEWEST:
        return None, None
    return cluster_error(*cluster_sums(values, index, clusters, observations), float(mean(values)), confidence, shared)


def cluster_sums(
    values: Tensor, index: Tensor | None, clusters: Tensor | None, observations: int
) -> tuple[Tensor, Tensor]:
    """Return the sum of each cluster's values and its size; arguments as for :func:`population_error`."""
    index = torch.arange(observations) if index is None else index
    group = index * min(BLOCKS, observations) // observations if clusters is None else clusters[index]
    ids, group, sizes = group.unique(return_inverse=True, return_counts=True)
    return torch.zeros(len(ids), dtype=torch.float64).index_add_(0, group, values), sizes


def cluster_error(
    sums: Tensor, sizes: Tensor, center: float, confidence: float, shared: float = 0.0, lowest: float = 0.0
) -> PopulationError:
    """Return the error of a mean, ``center``, and its interval, from the sums of independent clusters and their sizes.

    The mean is a ratio of two sums over clusters, of values and of counts, and its error follows from the spread of
    (sum - center * count). ``shared`` is an independent error of all clusters together, in the interval alone; no mean
    is below ``lowest``.
    """
    count = len(sizes)
    if count < 2:
        return None, None
    residuals = sums - center * sizes.double()  # an integer tensor would become float32
    error = math.sqrt(float(add_last(residuals**2)) * count / (count - 1) / int(sizes.sum()) ** 2)
    reach = quantile(1 - confidence, count - 1) * math.hypot(error, shared)
    return error, (max(lowest, center - reach), max(lowest, center + reach))


def check_bound(means: Tensor, d_max: float | None) -> None:
    """Raise where a mean distance is above a bound on all of them, and so some distance is."""
    if d_max is not None and float(means.max()) > d_max * (1 + 1e-6):
        fix = f"A distance of {float(means.max()):.4g} was measured."
        raise InputError("d_max", "to bound every distance", d_max, fix)


def make_estimate(
    value: float,
    target: str,
    error: PairError,
    around: PopulationError,
    measured: Any,
    *,
    confidence: float,
    pairs: int,
    design: str,
) -> Estimate:
    """Return the estimate of a measurement at all observations of what was ``measured``, a source or accumulator."""
    agents, observations = measured.agents, measured.observations
    reach = quantile(1 - confidence, LARGE) * error.standard_error
    return Estimate(
        value=value,
        target=target,
        **vars(error),
        asymptotic_interval=(max(0.0, value - reach), value + reach),
        confidence=confidence,
        observation_error=around[0],
        agents=agents,
        observations=observations,
        pairs_total=agents * (agents - 1) // 2,
        pairs_used=pairs,
        policy_evaluations=agents * observations,
        distance=measured.distance.name,
        design=design,
        pair_error=error.standard_error,
        population_interval=around[1],
        observations_total=observations,
        distances=pairs * observations,
        names=measured.names or (),
    )
