"""How far the mean over the edges of a random graph can be from SND: standard error and interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from graphsnd import bounds
from graphsnd.estimation.estimate import Interval
from graphsnd.graphs import Graph, Sampling
from graphsnd.metric.diversity import known_inclusion
from graphsnd.sums import sample_variance, total


@dataclass(frozen=True)
class PairError:
    """The error of measuring some pairs instead of all, in the fields of an :class:`~graphsnd.Estimate`."""

    standard_error: float
    interval: Interval
    method: str
    guaranteed: bool = True


def normalised_error(graph: Graph, distances: Tensor, value: float, d_max: float, delta: float) -> PairError:
    """Return the error of the mean over the edges of a random graph."""
    if graph.m == graph.pairs:
        return PairError(0.0, (value, value), "exact: all pairs")
    # A single distance shows no spread; no distances between 0 and d_max spread more than half of it.
    std = _deviation(distances) if graph.m > 1 else d_max / 2
    if graph.sampling is Sampling.RELABELLED:
        error, radius, method = _relabelled_error(graph, distances, std, d_max, delta)
    else:
        error = std * math.sqrt((1 - graph.m / graph.pairs) / graph.m)
        serfling = bounds.serfling(d_max, graph.m, graph.pairs, delta / 2)
        bernstein = bounds.empirical_bernstein(std, d_max, graph.m, graph.pairs, delta / 2)
        radius, method = min((serfling, "Serfling"), (bernstein, "empirical Bernstein-Serfling"))
    share = graph.m / graph.pairs
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
    factor = bounds.relabelling_factor(graph.n, degrees)
    error, degree = std * math.sqrt(factor), int(degrees[0])
    if int(degrees.min()) != int(degrees.max()):
        return error, d_max / 2 * math.sqrt(factor / delta), "second moments of relabelled graphs"
    # From degree 3 on, the edges of an agent show its effect.
    error = bounds.regular_standard_error(distances, graph) if degree >= 3 else error
    radius = bounds.random_regular_bound(d_max, graph.n, degree, delta)
    return error, radius, "second moments of random regular graphs"


def horvitz_thompson_error(graph: Graph, distances: Tensor, value: float, d_max: float, delta: float) -> PairError:
    """Return the error of the Horvitz-Thompson estimate.

    Where the number of edges is fixed it is that of the mean; where pairs are drawn independently, the radius is
    Hoeffding's.
    """
    p, pairs = known_inclusion(graph), graph.pairs
    if graph.sampling is not Sampling.INDEPENDENT:
        return normalised_error(graph, distances, value, d_max, delta)
    size = _unit(distances)  # squares of 1e200 would overflow
    error = size * math.sqrt((1 - p) * float(total((distances / size) ** 2))) / (p * pairs)
    radius = d_max / p * math.sqrt(math.log(2 / delta) / (2 * pairs))
    interval = max(0.0, value - radius), min(d_max, value + radius)
    return PairError(error, interval, "Hoeffding over pairs, certified diameter")


def _deviation(distances: Tensor) -> float:
    """Return the sample standard deviation, of distances whose squares may overflow."""
    size = _unit(distances)
    return size * math.sqrt(float(sample_variance(distances / size)))


def _unit(distances: Tensor) -> float:
    """Return a power of two near the largest distance."""
    return math.ldexp(1.0, math.frexp(float(distances.max()) if len(distances) else 0.0)[1] - 1)
