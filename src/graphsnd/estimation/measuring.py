"""``measure``: the SND of a team, exactly, on a graph, or within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from graphsnd import designs
from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import stack_agents
from graphsnd.designs import (
    Agents,
    Complete,
    Design,
    GraphDesign,
    RelabelledDesign,
    SpatialDesign,
)
from graphsnd.designs.subsets import integer_seed
from graphsnd.errors import InputError, check_clusters
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import check_confidence
from graphsnd.estimation.on_graph import measure_all_pairs, measure_moving, measure_on_graph
from graphsnd.estimation.sampling import CHEAP, REDRAWN, Task, Tolerance, complete_price, sample_once, sample_until
from graphsnd.estimation.source import Source, as_source
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.metric.pair_distances import check_graph
from graphsnd.teams import Policy, Team

DesignOrGraph = Design | Graph | MovingGraph  # what to measure


@checked(own="team observations design distance clusters confidence")
def measure(
    team: Behavior | Team | Policy | Mapping[str, Any] | Sequence[Policy],
    observations: Tensor | Mapping[str, Any] | None = None,
    *,
    design: Design | Graph | MovingGraph | str | None = None,
    tol: float | None = None,
    rel_tol: float | None = None,
    confidence: float = 0.95,
    distance: Distance | None = None,
    positions: Tensor | Mapping[str, Tensor] | None = None,
    clusters: Tensor | Sequence[int] | None = None,
    d_max: float | None = None,
    seed: int | torch.Generator = 0,
    backend: str = "auto",
) -> Estimate:
    """Measure the SND of a team, or its Graph-SND, and say how sure the number is.

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
        team: A behaviour; or policies (see :func:`~graphsnd.teams.as_team`), of which only those that the design
            asks for are evaluated (recurrent and communicating ones answer everything).
        observations: For policies: ``[..., features]``, or a dict of what each agent observed, which is pooled.
        design: Which pairs to measure: a design, what :func:`graphsnd.designs.parse` reads (``"bernoulli:0.1"``), or a
            graph. Without one, all pairs, or ``agents:8`` for a tolerance where all pairs take long.
        tol: Half-width of the interval that is good enough.
        rel_tol: The same relative to SND.
        confidence: Coverage of the interval.
        distance: Distance object; the family's default when None.
        positions: Where the agents are, ``[agents, d]`` or a dict of one ``[d]`` per agent, for ``knn`` and ``radius``;
            with ``[..., agents, d]``, pooled as the observations are, each observation has its own graph.
        clusters: Episode or environment of each observation, integers of the observations' leading shape or flat, for
            the error over observations; contiguous blocks when None.
        d_max: An upper bound on every distance, where you know one.
        seed: An int, or a generator to advance.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The estimate.

    Raises:
        InputError: For arguments out of range or of another shape, a behaviour with observations or policies without,
            and a random graph without edges.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 shared observation)
        >>> team = gs.Gaussian(torch.randn(4000, 300, 2), torch.ones(2))
        >>> estimate = gs.measure(team, design="matching", rel_tol=0.02)
        >>> estimate.met, abs(float(estimate) / float(gs.snd(team)) - 1) < 0.02
        (True, True)
    """
    began = perf_counter()
    _check_arguments(observations, d_max)
    confidence = check_confidence(confidence)
    tolerance = Tolerance(tol, rel_tol) if tol is not None or rel_tol is not None else None
    asked, number = _read_design(design), integer_seed(seed)
    source = as_source(team, observations, distance, backend)
    groups = check_clusters(clusters, source.batch_shape)
    chosen, why = _choose(source, asked, tolerance)
    with torch.no_grad():
        if isinstance(chosen, RelabelledDesign):
            bound = min((known for known in (d_max, source.bound()) if known is not None), default=None)
            task = Task(source, chosen, confidence, bound, groups, number, 1.0 if asked else REDRAWN)
            estimate = sample_once(task) if tolerance is None else sample_until(task, tolerance)
            if estimate is not None:
                seconds = perf_counter() - began
                return replace(estimate, why=why, noise_floor=source.noise_floor, seconds=seconds)
            chosen, why = Complete(), f"{why}; but the tolerance takes as much work as all pairs"
        if isinstance(chosen, Complete):
            estimate = measure_all_pairs(source, confidence, groups)
        elif isinstance(graph := _build_graph(source, chosen, positions, number), MovingGraph):
            estimate = measure_moving(source, graph, _name(chosen), confidence, groups)
        else:
            estimate = measure_on_graph(source, graph, _name(chosen), confidence, groups)
    met = None if tolerance is None else tolerance.met(estimate) or estimate.exact
    return replace(estimate, why=why, met=met, noise_floor=source.noise_floor, seconds=perf_counter() - began)


def _check_arguments(observations: Any, d_max: float | None) -> None:
    if isinstance(observations, Graph | MovingGraph | Design | str):
        text = type(observations) in (str, *designs.FORMS.values())
        fix = f"Write design={str(observations)!r}." if text else "Give it as design=."
        raise InputError("observations", "to be a tensor", f"{observations}, which says which pairs", fix)
    if d_max is not None and not 0 <= d_max < math.inf:
        raise InputError("d_max", "to be finite and not negative", d_max)


def _read_design(design: Any) -> DesignOrGraph | None:
    if isinstance(design, str):
        return designs.parse(design)
    if design is not None and not isinstance(design, DesignOrGraph):
        fix = "For example 'agents:8', gs.designs.Bernoulli(0.1) or gs.graphs.cliques(roles)."
        raise InputError("design", "to be a design, its name, or a graph", repr(design), fix)
    return design


def _choose(source: Source, asked: DesignOrGraph | None, tolerance: Tolerance | None) -> tuple[DesignOrGraph, str]:
    if isinstance(asked, Graph | MovingGraph):
        check_graph(asked, source.agents, source.names, observations=source.observations, argument="design")
    if isinstance(asked, Graph) and asked.is_complete and asked.weights is None:
        asked = Complete()
    if asked is not None:
        return asked, "as asked"
    if tolerance is None:
        return Complete(), "all pairs, as no tolerance was given"
    if complete_price(source) <= CHEAP:
        return Complete(), "all pairs at all observations take about a second or less, so nothing is sampled"
    return Agents(min(8, source.agents)), "all pairs take long, so a few random agents are measured at each observation"


def _build_graph(source: Source, design: DesignOrGraph, positions: Any, seed: int) -> Graph | MovingGraph:
    """Return the graph of a design, or that was given in place of one."""
    if not isinstance(design, GraphDesign):
        assert isinstance(design, Graph | MovingGraph)  # all other designs are measured without one
        return design
    places = stack_agents("positions", positions, source.names)
    if isinstance(design, SpatialDesign) and places is not None and places.dim() > 2:
        return design._join_each(places, source.batch_shape, source.observations, source.agents)
    return design.draw(source.agents, torch.Generator().manual_seed(seed), places)


def _name(design: DesignOrGraph) -> str:
    return str(design) if isinstance(design, Design) else design.family
