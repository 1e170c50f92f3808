"""All pairs, or the edges of one graph, at every observation."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior.points import Points
from graphsnd.bounds.concentration import points_diameter
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import PairError, PopulationError, population_error, quantile, random_graph_error
from graphsnd.estimation.source import Source
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.metric.diversity import normalised_weights, weighted_mean
from graphsnd.metric.moving import EdgeSums, edge_sums, ratio
from graphsnd.metric.pair_distances import edge_means
from graphsnd.sums import mean

LARGE = 10**9  # degrees of freedom at which Student's distribution is the normal one


def observation_values(source: Source) -> Tensor:
    """Return the SND at each observation, float64 ``[observations]`` on the CPU."""
    totals = [kernels.pair_totals(source.block(a, b), backend=source.backend).cpu() for a, b in source.blocks()]
    return source.join(totals) / math.comb(source.agents, 2)


def measure_all_pairs(source: Source, confidence: float, clusters: Tensor | None) -> Estimate:
    """Measure SND itself."""
    values = observation_values(source)
    value = float(mean(values))
    error = PairError(0.0, (value, value), "exact: all pairs")
    around = population_error(values, None, clusters, len(values), confidence)
    return make_estimate(source, value, "SND", error, around, confidence, math.comb(source.agents, 2), "complete")


def measure_on_graph(source: Source, graph: Graph, name: str, confidence: float, clusters: Tensor | None) -> Estimate:
    """Measure Graph-SND, with its error where the graph was drawn at random."""
    check_not_empty("design", graph)
    is_drawn = graph.inclusion is not None and graph.weights is None
    distances, values, diameter = _edge_distances(source, graph, bound=is_drawn)
    value = float(weighted_mean(distances, graph))
    error, target = PairError(0.0, (value, value), "exact: every edge"), "Graph-SND"
    if is_drawn:
        error, target = random_graph_error(graph, distances, value, diameter, 1 - confidence), "SND"
    around = population_error(values, None, clusters, source.observations, confidence, error.standard_error)
    return make_estimate(source, value, target, error, around, confidence, graph.m, name)


def measure_moving(
    source: Source, graph: MovingGraph, name: str, confidence: float, clusters: Tensor | None
) -> Estimate:
    """Measure Graph-SND where each observation has its own graph."""
    parts = [edge_sums(source.block(a, b), graph.slice(a, b), backend=source.backend) for a, b in source.blocks()]
    whole = EdgeSums(*(source.join([getattr(p, key).cpu() for p in parts]) for key in ("sums", "weights", "units")))
    value, values, empty = float(whole.mean(pooled=False)), whole.each(), whole.empty_share()
    method = "exact: every edge" + f"; {100 * empty:.3g}% of observations without one count 0" * (empty > 0)
    around = population_error(values, None, clusters, source.observations, confidence)
    error = PairError(0.0, (value, value), method)
    estimate = make_estimate(source, value, "Graph-SND", error, around, confidence, round(graph.m / len(graph)), name)
    return replace(estimate, distances=graph.m, empty_share=empty)


def check_not_empty(name: str, graph: Graph) -> None:
    """Raise for a random graph without edges, which has no mean; ``name`` is the argument that gave it."""
    if graph.m == 0 and graph.inclusion is not None:
        fix = "Draw again with another seed or more edges."
        raise EmptyDrawError(name, "to have at least one edge", "an empty draw", fix)


def make_estimate(
    source: Source,
    value: float,
    target: str,
    error: PairError,
    around: PopulationError,
    confidence: float,
    pairs: int,
    design: str,
) -> Estimate:
    """Return the estimate of a measurement at all observations."""
    n, observations = source.agents, source.observations
    reach = quantile(1 - confidence, LARGE) * error.standard_error
    return Estimate(
        value=value,
        target=target,
        **vars(error),
        asymptotic_interval=(max(0.0, value - reach), value + reach),
        confidence=confidence,
        observation_error=around[0],
        agents=n,
        observations=observations,
        pairs_total=n * (n - 1) // 2,
        pairs_used=pairs,
        policy_evaluations=n * observations,
        distance=source.distance.name,
        design=design,
        pair_error=error.standard_error,
        population_interval=around[1],
        observations_total=observations,
        distances=pairs * observations,
        names=source.names or (),
    )


def _edge_distances(source: Source, graph: Graph, *, bound: bool) -> tuple[Tensor, Tensor, float]:
    """Return the mean distance along every edge, the Graph-SND of each observation, and a bound on mean distances.

    Policies are evaluated once, for all three. The bound is on distances averaged over observations, which is smaller
    than at single ones; infinity unless it is asked for.
    """
    total, diameter = torch.zeros(graph.m, dtype=torch.float64, device=source.device), 0.0
    values = []
    for start, stop in source.blocks():
        points, share = source.block(start, stop), (stop - start) / source.observations
        # The triangle inequality holds for the mean over observations too, so block by block it can only get larger.
        diameter += share * points_diameter(points) if bound else math.inf
        total += share * edge_means(points, graph, backend=source.backend)
        values.append(_each(points, graph, source.backend).cpu())
    distances, joined = source.add(total), source.join(values)
    if bound:
        diameter = float(source.add(torch.tensor(diameter, dtype=torch.float64)))
    return distances, joined, min(diameter, source.distance.maximum or math.inf)


def _each(points: Points, graph: Graph, backend: str) -> Tensor:
    """Return the Graph-SND of each observation."""
    weights, total = normalised_weights(graph, points.values.device)
    sums = kernels.edge_totals(points, graph.edges.to(points.values.device), weights, ordered=True, backend=backend)
    return ratio(sums, total)
