"""All pairs, or the edges of one graph or of a graph for each observation, at every observation."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.bounds.concentration import points_diameter
from graphsnd.errors import EmptyDrawError
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import PairError, make_estimate, population_error, random_graph_error
from graphsnd.estimation.source import Source
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.metric.diversity import normalised_weights, weighted_mean
from graphsnd.metric.moving import EdgeSums, edge_sums, ratio
from graphsnd.sums import mean


def observation_values(source: Source) -> Tensor:
    """Return the SND at each observation, float64 ``[observations]`` on the CPU."""
    totals = [kernels.pair_totals(points, backend=source.backend).cpu() for points, _ in source.blocks()]
    return torch.cat(totals) / math.comb(source.agents, 2)


def measure_all_pairs(source: Source, name: str, confidence: float, clusters: Tensor | None) -> Estimate:
    """Measure SND itself."""
    values = observation_values(source)
    value = float(mean(values))
    error = PairError(0.0, (value, value), "exact: all pairs")
    around = population_error(values, None, clusters, len(values), confidence)
    pairs = math.comb(source.agents, 2)
    return make_estimate(value, "SND", error, around, confidence=confidence, pairs=pairs, design=name, **source.about)


def measure_on_graph(
    source: Source, graph: Graph | MovingGraph, name: str, confidence: float, clusters: Tensor | None
) -> Estimate:
    """Measure Graph-SND, with its error where the graph was drawn at random."""
    if isinstance(graph, MovingGraph):
        return _measure_moving(source, graph, name, confidence, clusters)
    check_not_empty("design", graph)
    distances, values, diameter = _measure_edges(source, graph)
    value = float(weighted_mean(distances, graph))
    error, target = PairError(0.0, (value, value), "exact: every edge"), "Graph-SND"
    if graph.estimates_snd:
        error, target = random_graph_error(graph, distances, value, diameter, 1 - confidence), "SND"
    around = population_error(values, None, clusters, source.observations, confidence, error.standard_error)
    return make_estimate(
        value, target, error, around, confidence=confidence, pairs=graph.m, design=name, **source.about
    )


def _measure_moving(
    source: Source, graph: MovingGraph, name: str, confidence: float, clusters: Tensor | None
) -> Estimate:
    """Measure Graph-SND where each observation has its own graph."""
    parts, start = [], 0
    for points, _ in source.blocks():
        parts.append(edge_sums(points, graph.slice(start, start + points.observations), backend=source.backend))
        start += points.observations
    whole = EdgeSums(*(torch.cat([getattr(part, key).cpu() for part in parts]) for key in ("sums", "weights", "units")))
    value, empty = float(whole.mean(pooled=False)), whole.empty_share()
    method = "exact: every edge" + f"; {100 * empty:.3g}% of observations without one count 0" * (empty > 0)
    around = population_error(whole.each(), None, clusters, source.observations, confidence)
    error, about = PairError(0.0, (value, value), method), {"confidence": confidence, "design": name, **source.about}
    estimate = make_estimate(value, "Graph-SND", error, around, pairs=round(graph.m / len(graph)), **about)
    return replace(estimate, distances=graph.m, empty_share=empty)


def check_not_empty(name: str, graph: Graph) -> None:
    """Raise for a random graph without edges, which has no mean; ``name`` is the argument that gave it."""
    if graph.m == 0 and graph.inclusion is not None:
        fix = "Draw again with another seed or more edges."
        raise EmptyDrawError(name, "to have at least one edge", "an empty draw", fix)


def _measure_edges(source: Source, graph: Graph) -> tuple[Tensor, Tensor, float]:
    """Return the mean distance along every edge, the Graph-SND of each observation, and a bound on mean distances.

    Each edge is visited once. The bound is on distances averaged over observations, which is smaller than at single
    ones; infinity for graphs that were not drawn at random.
    """
    edges = graph.edges.to(source.device)
    weights, whole = normalised_weights(graph, source.device)
    distances, values, diameter = torch.zeros(graph.m, dtype=torch.float64, device=source.device), [], 0.0
    for points, share in source.blocks():
        means, totals = kernels.edge_means_and_totals(points, edges, weights, ordered=True, backend=source.backend)
        distances += share * means
        values.append(ratio(totals, whole).cpu())
        # The triangle inequality holds for the mean over observations too, so block by block it can only get larger.
        diameter += share * points_diameter(points) if graph.estimates_snd else math.inf
    return distances, torch.cat(values), min(diameter, source.distance.maximum or math.inf)
