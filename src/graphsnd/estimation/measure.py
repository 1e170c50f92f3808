"""Measure a behaviour on a graph and say how sure the number is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch

from graphsnd import bounds, kernels
from graphsnd.behavior import Behavior, Distance, Points, default_distance, embed
from graphsnd.bounds.diameter import points_diameter
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate
from graphsnd.graphs import Graph
from graphsnd.metric.pairwise import check_graph, edge_means
from graphsnd.metric.snd import weighted_mean

RANDOM_REGULAR = "random_regular"  # the family whose edges are not a simple random sample
BATCHES = 32  # contiguous blocks of observations for the batch-means error


def measure(
    behavior: Behavior,
    graph: Graph | None = None,
    *,
    distance: Distance | None = None,
    confidence: float = 0.95,
    backend: str = "auto",
) -> Estimate:
    """SND or Graph-SND with its error.

    Without a graph, every pair is used and the number is SND itself. With a sampled graph (Bernoulli, uniform,
    random regular) it estimates SND and the interval covers SND: for every team, not only for large samples. With a
    fixed graph (k nearest neighbours, radius, cliques, your own) the graph *defines* the measure and the value is
    exact.

    The interval of a Bernoulli or uniform graph is the narrower of Serfling's and the empirical
    Bernstein-Serfling interval, each at half the failure probability, with the certified diameter as D_max. That of
    a random regular graph comes from its exact second moments and holds for every n and degree. The unseen pairs lie
    between 0 and the diameter, so the seen ones alone bound SND for certain; the interval is cut to that range.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        graph: Graph on the same agents; None for all pairs.
        distance: Distance object; the family's default when None.
        confidence: Coverage of the interval.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The estimate.

    Raises:
        InputError: For a confidence outside (0, 1), or a sampled graph without edges.

    Example:
        >>> import graphsnd as gs
        >>> print(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 observations)
    """
    if not 0 < confidence < 1:
        raise InputError("confidence", "in (0, 1)", confidence)
    chosen = distance or default_distance(behavior)
    points = embed(behavior, chosen)
    if graph is not None:
        check_graph(graph, points.agents)
    with torch.no_grad():
        if graph is None or (graph.is_complete and graph.weights is None):
            sample = _all_pairs(points, backend)
        else:
            sample = _on_graph(points, graph, chosen, confidence, backend)
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    value, error = sample.value, sample.standard_error
    return Estimate(
        value=value,
        target=sample.target,
        standard_error=error,
        interval=sample.interval,
        asymptotic_interval=(max(0.0, value - quantile * error), value + quantile * error),
        confidence=confidence,
        method=sample.method,
        observation_error=sample.observation_error,
        agents=points.agents,
        observations=points.observations,
        pairs_total=points.agents * (points.agents - 1) // 2,
        pairs_used=sample.pairs,
        policy_evaluations=points.agents * points.observations,
        distance=chosen.name,
        graph="complete" if graph is None else graph.family,
    )


@dataclass(frozen=True)
class _Sample:
    value: float
    target: str
    pairs: int
    method: str
    standard_error: float
    interval: tuple[float, float]
    observation_error: float | None


def _all_pairs(points: Points, backend: str) -> _Sample:
    pairs = points.agents * (points.agents - 1) // 2
    per_observation = kernels.pair_totals(points, backend=backend) / pairs
    means = torch.stack([block.mean() for block in per_observation.tensor_split(BATCHES) if len(block)])
    error = _batch_error(means, points.observations)
    value = float(per_observation.mean())
    return _Sample(value, "SND", pairs, "exact: all pairs", 0.0, (value, value), error)


def _on_graph(points: Points, graph: Graph, distance: Distance, confidence: float, backend: str) -> _Sample:
    if graph.m == 0 and graph.inclusion is not None:
        raise InputError(
            "graph", "to have at least one edge", "an empty draw", "Draw again with another seed or more edges."
        )
    cuts = torch.arange(points.observations).tensor_split(min(BATCHES, points.observations))
    blocks = [(int(c[0]), int(c[-1]) + 1) for c in cuts]
    per_block = torch.stack([edge_means(points.slice(a, b), graph, backend=backend) for a, b in blocks])  # [blocks, m]
    shares = per_block.new_tensor([(b - a) / points.observations for a, b in blocks])
    distances = shares @ per_block
    means = torch.stack([weighted_mean(block, graph) for block in per_block])
    value = float(weighted_mean(distances, graph))
    observation_error = _batch_error(means, points.observations)
    if graph.inclusion is None or graph.weights is not None:
        return _Sample(value, "Graph-SND", graph.m, "exact: every edge", 0.0, (value, value), observation_error)
    d_max = min(points_diameter(points), distance.maximum or math.inf)
    # A single distance shows no spread; no distances between 0 and d_max spread more than half of it.
    std = float(distances.std(correction=1)) if graph.m > 1 else d_max / 2
    error = std * math.sqrt(_variance_factor(graph))
    interval, method = _interval(graph, d_max, value, std, 1 - confidence)
    return _Sample(value, "SND", graph.m, method, error, interval, observation_error)


def _interval(graph: Graph, d_max: float, value: float, std: float, delta: float) -> tuple[tuple[float, float], str]:
    if graph.m == graph.pairs:
        return (value, value), "exact: all pairs"
    radius, method = _radius(graph, d_max, std, delta)
    share = graph.m / graph.pairs
    certain = share * value, share * value + (1 - share) * d_max
    return (max(value - radius, certain[0]), min(value + radius, certain[1])), f"{method}, certified diameter"


def _variance_factor(graph: Graph) -> float:
    """Variance of the mean over the edges, in units of that of the distances over all pairs.

    Exact for simple random sampling without replacement; an upper bound for random regular graphs, which do better
    on teams whose differences are mostly effects of single agents.
    """
    if graph.family == RANDOM_REGULAR:
        return bounds.variance_factor(graph.n, 2 * graph.m // graph.n)
    return (1 - graph.m / graph.pairs) / graph.m


def _radius(graph: Graph, d_max: float, std: float, delta: float) -> tuple[float, str]:
    if graph.family == RANDOM_REGULAR:
        radius = bounds.random_regular_bound(d_max, graph.n, 2 * graph.m // graph.n, delta)
        return radius, "second moments of random regular graphs"
    serfling = bounds.serfling(d_max, graph.m, graph.pairs, delta / 2)
    bernstein = bounds.empirical_bernstein(std, d_max, graph.m, graph.pairs, delta / 2)
    return min((serfling, "Serfling"), (bernstein, "empirical Bernstein-Serfling"))


def _batch_error(means: torch.Tensor, observations: int) -> float | None:
    """Standard error of the mean over observations from contiguous batches.

    Neighbouring observations of a rollout are correlated; means of long blocks are much less so. Below 16
    observations there is nothing to estimate it from.
    """
    if observations < 16:
        return None
    return float(means.std(correction=1)) / math.sqrt(means.shape[0])
