"""``measure``: the SND of a team, exactly, on a graph, or within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.bounds.concentration import check_metric, measure_edges
from graphsnd.designs.design import Agents, Complete, Design, as_design, pool_positions
from graphsnd.designs.template import Template
from graphsnd.errors import EmptyDrawError, InputError, check_clusters, check_number
from graphsnd.estimation.estimate import KEPT, Estimate
from graphsnd.estimation.intervals import (
    PairError,
    group_observations,
    make_estimate,
    population_error,
    random_graph_error,
)
from graphsnd.estimation.redrawn import CHEAP, REDRAWN_PRICE, Redrawn, Tolerance, complete_price
from graphsnd.estimation.source import Source, as_source
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import check_graph, normalised_weights, ratio
from graphsnd.graphs.random import integer_seed
from graphsnd.metric.pair_distances import EdgeSums, edge_sums
from graphsnd.sums import mean
from graphsnd.teams.policies import Policy, TeamOptions
from graphsnd.teams.team import Team

Groups = Mapping[str, Tensor]  # ways to part the observations into clusters, see group_observations


def measure(
    team: Behavior | Team | Policy | Mapping[str, Any] | Sequence[Policy],
    observations: Tensor | Mapping[str, Any] | None = None,
    *,
    design: Design | Graph | MovingGraph | str | None = None,
    tol: float | None = None,
    rel_tol: float | None = None,
    confidence: float = 0.95,
    distance: Distance | str | None = None,
    positions: Tensor | Mapping[str, Tensor] | None = None,
    clusters: Tensor | Sequence[int] | None = None,
    d_max: float | None = None,
    seed: int | torch.Generator = 0,
    backend: str = "auto",
    **options: Unpack[TeamOptions],
) -> Estimate:
    """Measure the SND of a team, or its Graph-SND, with intervals.

    Without a design and a tolerance all pairs are measured, and the number is SND itself. With a tolerance,
    observations and agents are drawn until the interval is narrow enough; it is valid although the data decided when to
    stop, and ``met`` says whether the tolerance was reached. ``why`` says which design was chosen, and why.

    A random graph (Bernoulli, uniform, regular) estimates SND, with an interval that holds for every team: the narrower
    of Serfling's and the empirical Bernstein-Serfling one, each at half the failure probability, or that from the exact
    second moments of random regular graphs. The pairs left out lie between 0 and the certified diameter, so those
    measured bound SND for certain; the interval is clipped to that range. A graph of neighbours, or your own, *defines*
    the measure, and the value is exact. So does a graph for each observation, of positions there or your own: the value
    is the mean over observations, and ``empty_share`` of them had no edge and count as 0.

    The interval of pairs that are redrawn for each observation holds for every team where a bound on the distances is
    known: from the behaviour, from the networks of a stacked team, from the distance (total variation is at most 1), or
    from ``d_max``. Where none is known it is asymptotic, and ``method`` says so.

    Args:
        team: Behaviour; or policies (see :func:`~graphsnd.teams.as_team`), of which only those that the design needs
            are evaluated (recurrent and communicating ones answer everything).
        observations: Observations for policies, ``[..., features]``, or a dict of what each agent observed, which is
            pooled.
        design: Pairs to measure: a design, text that :func:`graphsnd.designs.parse` reads (``"bernoulli:0.1"``), or a
            graph. Without one, all pairs, or ``agents:8`` for a tolerance if all pairs take long.
        tol: Half-width of the interval that is good enough.
        rel_tol: Largest half-width of the interval, relative to SND.
        confidence: Coverage of the interval.
        distance: Distance or its name; the family's default when None.
        positions: Positions of the agents, ``[agents, d]`` or a dict of one ``[d]`` per agent, for ``knn`` and
            ``radius``; with ``[..., agents, d]``, pooled as the observations are, each observation has its own graph.
        clusters: Episode or environment of each observation, integers of the observations' leading shape or flat, for
            the error over observations. When None, each leading axis is tried (time, environments) and the largest
            error counts; a single axis is cut into contiguous blocks. ``estimate.clusters`` says which.
        d_max: Upper bound on every distance, if you know one.
        seed: An int, or a generator to advance.
        backend: ``auto`` or the name of a kernel backend.
        **options: Options of :func:`~graphsnd.teams.as_team`, for policies: ``agents``, ``squashed``, ``whole``,
            ``feature_dims`` and ``outputs``.

    Returns:
        The estimate.

    Raises:
        InputError: For arguments out of range or of another shape, a behaviour with observations or policies without,
            and a random graph without edges.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 ± unknown (2-Wasserstein of actions, all 3 pairs, 1 observation)
        >>> team = gs.Gaussian(torch.randn(4000, 300, 2), torch.ones(2))
        >>> estimate = gs.measure(team, design="matching", rel_tol=0.02)
        >>> estimate.met, abs(float(estimate) / float(gs.snd(team)) - 1) < 0.02
        (True, True)
    """
    began = perf_counter()
    if d_max is not None and not 0 <= d_max < math.inf:
        raise InputError("d_max", "to be finite and not negative", d_max)
    confidence = check_number("confidence", confidence, above=0, below=1)
    generator = torch.Generator().manual_seed(integer_seed(seed) if isinstance(seed, torch.Generator) else seed)
    tolerance = Tolerance(tol, rel_tol) if tol is not None or rel_tol is not None else None
    source = as_source(team, observations, distance, backend, **options)
    given = None if clusters is None else check_clusters(clusters, source.batch_shape)
    groups = group_observations(source.batch_shape, given, source.by_agent)
    chosen, why = _choose(source, tolerance) if design is None else (as_design(design), "as asked")
    with torch.no_grad():
        places = None if positions is None else pool_positions(positions, source.batch_shape, source.names)
        draw = chosen.draw(source.agents, generator, places)
        if not isinstance(draw, Template):
            check_graph(draw, source.agents, source.names, observations=source.observations, argument="design")
        weighted = isinstance(draw, MovingGraph) or (isinstance(draw, Graph) and draw.weights is not None)
        if draw.m == math.comb(source.agents, 2) and not weighted:
            estimate = measure_all_pairs(source, str(chosen), confidence, groups)
        elif isinstance(draw, Template):
            check_metric(source.like)
            bound = min((known for known in (d_max, source.bound()) if known is not None), default=None)
            redrawn = Redrawn(source, draw, str(chosen), confidence, groups, bound, generator)
            if tolerance is None:
                estimate = redrawn.measure_once()
            elif (sampled := redrawn.measure_until(tolerance, 1.0 if design else REDRAWN_PRICE)) is not None:
                estimate = sampled
            else:
                why = f"{why}; but the tolerance takes as much work as all pairs"
                estimate = measure_all_pairs(source, "complete", confidence, groups)
        else:
            estimate = _measure_on_graph(source, draw, str(chosen), confidence, groups)
    met = None if tolerance is None else tolerance.met(estimate) or estimate.exact
    zero = "" if estimate.value else source.explain_zero() if estimate.distances else "no pair was measured."
    return replace(estimate, why=why, zero=zero, met=met, seconds=perf_counter() - began)


def _choose(source: Source, tolerance: Tolerance | None) -> tuple[Design, str]:
    if tolerance is None:
        return Complete(), "all pairs, as no tolerance was given"
    if complete_price(source) <= CHEAP:
        return Complete(), "all pairs at all observations take about a second or less, so nothing is sampled"
    return Agents(min(8, source.agents)), "all pairs take long, so a few random agents are measured at each observation"


def observation_values(source: Source) -> Tensor:
    """Return the SND at each observation, float64 ``[observations]`` on the CPU."""
    totals = [kernels.pair_totals(points, backend=source.backend).cpu() for points, _ in source.blocks()]
    return torch.cat(totals) / math.comb(source.agents, 2)


def measure_all_pairs(source: Source, name: str, confidence: float, groups: Groups) -> Estimate:
    """Measure SND itself."""
    pairs, totals, distances = math.comb(source.agents, 2), [], None
    edges = torch.triu_indices(source.agents, source.agents, 1, device=source.device).T if pairs <= KEPT else None
    for points, share in source.blocks():
        if edges is None:
            block = kernels.pair_totals(points, backend=source.backend)
        else:
            means, block = kernels.edge_means_and_totals(points, edges, ordered=True, backend=source.backend)
            distances = share * means if distances is None else distances + share * means
        totals.append(block.cpu())
    values = torch.cat(totals) / pairs
    value = float(mean(values))
    error = PairError(0.0, (value, value), "exact: all pairs")
    others = population_error(values, None, groups, confidence)
    return make_estimate(value, "SND", error, others, source, distances, confidence=confidence, design=name)


def _measure_on_graph(
    source: Source, graph: Graph | MovingGraph, name: str, confidence: float, groups: Groups
) -> Estimate:
    """Measure Graph-SND, each edge once; of a graph that was drawn at random, SND with its error."""
    if isinstance(graph, MovingGraph):
        return _measure_moving(source, graph, name, confidence, groups)
    if graph.m == 0 and graph.inclusion is not None:
        raise EmptyDrawError("design")
    if not graph.estimates_snd:
        return _measure_fixed(source, graph, name, confidence, groups)
    edges, values, d_max = graph.edges, [], 0.0
    distances = torch.zeros(graph.m, dtype=torch.float64, device=source.device)
    for points, share in source.blocks():
        means, totals, bound = measure_edges(points, edges, backend=source.backend)
        # The triangle inequality holds for the mean over observations too, so block by block it can only get larger.
        distances, d_max = distances + share * means, d_max + share * bound
        values.append((totals / graph.m).cpu())
    value, d_max = float(mean(distances)), min(d_max, source.distance.maximum or math.inf)
    error = random_graph_error(graph, distances, value, d_max, 1 - confidence)
    others = population_error(torch.cat(values), None, groups, confidence, error)
    return make_estimate(value, "SND", error, others, source, distances, graph, confidence=confidence, design=name)


def _measure_fixed(source: Source, graph: Graph, name: str, confidence: float, groups: Groups) -> Estimate:
    """Measure Graph-SND on a graph that defines it."""
    edges = graph.edges
    weights, weight_sum = normalised_weights(graph, source.device)
    totals, distances = [], torch.zeros(graph.m, dtype=torch.float64, device=source.device)
    for points, share in source.blocks():
        if graph.m > KEPT:
            block = kernels.edge_totals(points, edges, weights, ordered=True, backend=source.backend)
        else:
            means, block = kernels.edge_means_and_totals(points, edges, weights, ordered=True, backend=source.backend)
            distances += share * means
        totals.append(block.cpu())
    values = ratio(torch.cat(totals), weight_sum.cpu())
    value = float(mean(values))
    error = PairError(0.0, (value, value), "exact: every edge")
    others = population_error(values, None, groups, confidence)
    return make_estimate(
        value, "Graph-SND", error, others, source, distances, graph, confidence=confidence, design=name
    )


def _measure_moving(source: Source, graph: MovingGraph, name: str, confidence: float, groups: Groups) -> Estimate:
    """Measure Graph-SND where each observation has its own graph."""
    parts, start = [], 0
    for points, _ in source.blocks():
        parts.append(edge_sums(points, graph.slice(start, start + points.observations), backend=source.backend))
        start += points.observations
    sums = EdgeSums(*(torch.cat([getattr(part, key).cpu() for part in parts]) for key in ("sums", "weights")))
    value, empty = float(mean(sums.each())), sums.empty_share()
    method = "exact: every edge" + f"; {100 * empty:.3g}% of observations without one count 0" * (empty > 0)
    others = population_error(sums.each(), None, groups, confidence)
    error = PairError(0.0, (value, value), method)
    estimate = make_estimate(value, "Graph-SND", error, others, source, confidence=confidence, design=name)
    return replace(estimate, pairs_used=round(graph.m / len(graph)), distances=graph.m, empty_share=empty)
