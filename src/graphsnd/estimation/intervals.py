r"""Intervals for a mean over some pairs: the edges of a random graph, or pairs redrawn per observation.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd import bounds
from graphsnd.bounds.relabelling import fit_effects, relabelling_factor
from graphsnd.designs.template import Template
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import KEPT, Estimate, Interval
from graphsnd.estimation.moments import Draws
from graphsnd.graphs import Graph
from graphsnd.graphs.graph import Sampling
from graphsnd.sums import add_last, mean

BLOCKS = 32  # contiguous blocks of observations that stand for clusters where none are given
FEWEST = 16  # observations below which their error is not estimated
LARGE = 10**9  # degrees of freedom at which Student's distribution is the normal one
FREEDOM = 30  # degrees of freedom that an asymptotic interval needs


@dataclass(frozen=True)
class PairError:
    """The error of measuring some pairs instead of all, in the fields of an :class:`~graphsnd.Estimate`."""

    standard_error: float
    interval: Interval
    method: str
    guaranteed: bool = True
    freedom: float = math.inf


EXACT = PairError(0.0, (0.0, 0.0), "exact")


@dataclass(frozen=True)
class ObservationError:
    """The error for other observations like these, in the fields of an :class:`~graphsnd.Estimate`."""

    observation_error: float | None = None
    population_interval: Interval | None = None
    clusters: str = "unknown: it takes 16 observations, or 2 clusters"


def random_graph_error(graph: Graph, distances: Tensor, value: float, d_max: float, delta: float) -> PairError:
    """Return the error of the mean over the edges of a random graph."""
    pairs = math.comb(graph.n, 2)
    if graph.m == pairs:
        return PairError(0.0, (value, value), "exact: all pairs")
    unit = float(distances.max()) or 1.0  # squares may overflow
    squares = (distances / unit - mean(distances / unit)).square()
    # A single distance shows no spread; no distances between 0 and d_max spread more than half of it.
    std = unit * math.sqrt(float(add_last(squares)) / (graph.m - 1)) if graph.m > 1 else d_max / 2
    freedom = min(graph.m - 1, degrees_of_freedom(squares))
    if graph.sampling is Sampling.RELABELLED:
        error, freedom, radius, method = _relabelled_error(graph, distances, freedom, std, d_max, delta)
    else:
        error = std * math.sqrt((1 - graph.m / pairs) / graph.m)
        serfling = bounds.serfling(d_max, graph.m, pairs, delta / 2)
        bernstein = bounds.empirical_bernstein(std, d_max, graph.m, pairs, delta / 2)
        radius, method = min((serfling, "Serfling"), (bernstein, "empirical Bernstein-Serfling"))
    share = graph.m / pairs
    # The other pairs lie between 0 and the diameter, so the measured ones alone bound SND for certain.
    certain = share * value, share * value + (1 - share) * d_max
    interval = max(value - radius, certain[0]), min(value + radius, certain[1])
    return PairError(error, interval, f"{method}, certified diameter", freedom=freedom)


def _relabelled_error(
    graph: Graph, distances: Tensor, freedom: float, std: float, d_max: float, delta: float
) -> tuple[float, float, float, str]:
    """Return standard error, degrees of freedom, radius and method for a graph whose agents were numbered at random.

    The factor bounds the variance for every team. Regular graphs do better on teams whose differences are mostly
    effects of single agents, which cancel in them. What is left may lie between the few agents that have such effects,
    and then hardly an edge shows it: the effects need their degrees of freedom too.
    """
    degrees = graph.degrees()
    factor = relabelling_factor(graph.n, degrees)
    # Edges of one draw spread less than all pairs do, by what their mean varies.
    ceiling = Draws.pair_variance_ceiling(Template(graph.n, graph.edges), graph.n)
    error, degree = std * math.sqrt(factor if ceiling is None else ceiling), int(degrees[0])
    if int(degrees.min()) != int(degrees.max()):
        return error, freedom, d_max / 2 * math.sqrt(factor / delta), "second moments of relabelled graphs"
    if degree >= 3:  # the edges of an agent show its effect
        fit = fit_effects(distances, graph)
        error = math.sqrt((1 - graph.m / graph.pairs) / graph.m * fit.residual_variance)
        rest = distances.cpu() - fit.level - fit.effects[graph.edges.cpu()].sum(dim=1)
        freedom = min(fit.freedom, degrees_of_freedom(rest.square()), degrees_of_freedom(fit.effects.square()))
    radius = bounds.random_regular_bound(d_max, graph.n, degree, delta)
    return error, freedom, radius, "second moments of random regular graphs"


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


def standard_errors(
    draws: Draws, template: Template, n: int, observations: int, d_max: float | None = None
) -> tuple[float, float, float]:
    """Return the standard error on the given observations, its part from choosing pairs, and its degrees of freedom.

    With r draws in the pass that is not finished, their choice contributes r (1 - r / observations) / draws^2 of the
    variance between observations. That variance is the variance of a draw less that of its pairs.

    Args:
        draws: Measured draws.
        template: Pairs that were measured at each.
        n: Number of agents.
        observations: Number of observations that were given.
        d_max: Upper bound on every distance where one is known: no variance exceeds a quarter of its square.
    """
    most = math.inf if d_max is None else d_max * d_max / 4
    pairs, rest = min(most, draws.pair_variance(template, n)), draws.count % observations
    between = max(0.0, min(most, draws.total_variance()) - pairs) if draws.count > 1 else 0.0
    freedom = math.inf
    if template.factor(n) > 0 and template.m > 1:
        freedom = min(draws.count - 1, degrees_of_freedom(draws.spreads))
    if rest or template.m == 1:
        freedom = min(freedom, draws.count - 1, degrees_of_freedom((draws.means - mean(draws.means)).square()))
    both = pairs / draws.count + between * rest * (1 - rest / observations) / draws.count**2
    return math.sqrt(both), math.sqrt(pairs / draws.count), freedom


def degrees_of_freedom(terms: Tensor) -> float:
    r"""Return the degrees of freedom of a variance that is the mean of ``terms``: Satterthwaite's, from their spread.

    .. math:: \nu = 2 t \, \bar v^2 / \mathrm{Var}(v)

    That is about t for squares of normal numbers, few where a few terms make the sum, and 0 where all terms are 0.

    Example:
        >>> rare, even = torch.tensor([1.0] * 3 + [0.0] * 117), torch.ones(120)  # diversity at 3 of 120 observations
        >>> round(degrees_of_freedom(rare), 1), degrees_of_freedom(even)
        (6.2, inf)
    """
    unit = float(terms.abs().max()) or 1.0
    center = max(0.0, float(mean(terms / unit)))
    spread = float(mean((terms / unit).square())) - center * center
    return 2 * len(terms) * center * center / spread if spread > 0 else math.inf if center else 0.0


def quantile(delta: float, freedom: float) -> float:
    """Two-sided quantile of Student's distribution."""
    from scipy.special import stdtrit

    # 1 - delta / 2 may round to 1, whose quantile is infinite
    return -float(stdtrit(min(max(1, freedom), LARGE), delta / 2))


def group_observations(shape: Sequence[int], clusters: Tensor | None, by_agent: bool = False) -> dict[str, Tensor]:
    """Return the ways to part observations into clusters that may be independent, int64 ``[observations]`` by name.

    Observations of one episode resemble each other, so the episodes are what was drawn independently. Which axis
    counts episodes or environments is not known, so each is tried. A single axis may be time: contiguous blocks stand
    in for episodes, because neighbours of a rollout are correlated, long blocks much less.

    Args:
        shape: Leading shape of the observations.
        clusters: The clusters that were given, int64 ``[observations]``, or None.
        by_agent: Whether the last axis counts the agents that made them, at the same moment: no sample of agents.
    """
    if clusters is not None:
        ids, groups = clusters.unique(return_inverse=True)
        return {f"{len(ids):,} cluster{'s' * (len(ids) != 1)}, as given": groups}
    count, axes = math.prod(shape), shape[:-1] if by_agent else shape
    index, ways = torch.arange(count), {}
    for axis, size in enumerate(axes):
        if 1 < size < math.prod(axes):
            ways[f"the {size:,} entries of axis {axis}"] = index // math.prod(shape[axis + 1 :]) % size
    if not ways:
        moments = math.prod(axes)
        blocks, rows = min(BLOCKS, moments), count // min(BLOCKS, moments)
        name = f"assumes blocks of {rows:,} row{'s' * (rows != 1)} are independent; pass clusters="
        ways[name] = index // (count // moments) * blocks // moments
    return ways if count >= FEWEST else {}


def population_error(
    values: Tensor,
    index: Tensor | None,
    groups: Mapping[str, Tensor],
    confidence: float,
    shared: PairError = EXACT,
    lowest: float = 0.0,
) -> ObservationError:
    """Return the error of a mean over observations that come in clusters, the largest of all ways to part them.

    Args:
        values: Value of each draw, ``[draws]``.
        index: The observation of each draw, ``[draws]``; each measured once when None.
        groups: Clusters of all observations, of :func:`group_observations`.
        confidence: Coverage of the interval.
        shared: Error that all observations share, as of one draw of pairs for all of them.
        lowest: The least that a mean can be.
    """
    found = ObservationError()
    for name, group in groups.items():
        group = group if index is None else group[index]
        sizes = torch.bincount(group)
        sums = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, group, values)[sizes > 0]
        error, interval = cluster_error(sums, sizes[sizes > 0], float(mean(values)), confidence, shared, lowest)
        if error is not None and error >= (found.observation_error or 0.0):
            found = ObservationError(error, interval, name)
    return found


def cluster_error(
    sums: Tensor, sizes: Tensor, center: float, confidence: float, shared: PairError = EXACT, lowest: float = 0.0
) -> tuple[float | None, Interval | None]:
    """Return the error of a mean, ``center``, and its interval, from the sums of independent clusters and their sizes.

    The mean is a ratio of two sums over clusters, of values and of counts, and its error follows from the spread of
    (sum - center * count). ``shared`` is an independent error of all clusters together; no mean is below ``lowest``.
    Both are None for fewer than 2 clusters.
    """
    count = len(sizes)
    if count < 2:
        return None, None
    residuals = sums - center * sizes.double()  # an integer tensor would become float32
    error = math.sqrt(float(add_last(residuals**2)) * count / (count - 1) / int(sizes.sum()) ** 2)
    error = math.hypot(error, shared.standard_error)
    reach = quantile(1 - confidence, min(count - 1, shared.freedom)) * error
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
    observation_error: ObservationError,
    measured: Any,
    pair_distances: Tensor | None = None,
    graph: Graph | None = None,
    *,
    confidence: float,
    design: str,
    delta: float | None = None,
) -> Estimate:
    """Return the estimate of a measurement at all observations of what was ``measured``, a source or accumulator.

    ``pair_distances`` are the mean distances of all pairs, or of the edges of a ``graph``. They are kept where they are
    few. The asymptotic interval fails with probability ``delta``, 1 - confidence when None.
    """
    agents, observations = measured.agents, measured.observations
    pairs_total = math.comb(agents, 2)
    pairs = pairs_total if graph is None else graph.m
    kept = pair_distances if pairs <= KEPT else None
    reach = quantile(delta or 1 - confidence, error.freedom) * error.standard_error
    return Estimate(
        value=value,
        target=target,
        **vars(error),
        **vars(observation_error),
        asymptotic_interval=(max(min(0.0, value), value - reach), value + reach) if error.freedom >= FREEDOM else None,
        confidence=confidence,
        agents=agents,
        observations=observations,
        pairs_total=pairs_total,
        pairs_used=pairs,
        policy_evaluations=agents * observations,
        distance=measured.distance.name,
        family=measured.family,
        design=design,
        pair_error=error.standard_error,
        observations_total=observations,
        distances=pairs * observations,
        names=measured.names or (),
        pair_distances=None if kept is None else kept.cpu(),
        edges=None if kept is None or graph is None else graph.edges.cpu(),
    )
