"""SND at a tolerance, at a budget, or exactly: whatever is asked for, with the interval that belongs to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError
from graphsnd.estimation.designs import (
    AgentSubset,
    AllPairs,
    Design,
    FixedGraph,
    FreshDesign,
    ObservationSubset,
    SortedProjections,
)
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.fixed import exact, on_graph
from graphsnd.estimation.measure import check_clusters, check_confidence
from graphsnd.estimation.plan import DEFAULT_REL_TOL, Budget, Plan, affords_all, choose
from graphsnd.estimation.projections.projected import projected
from graphsnd.estimation.sampling.draws import integer_seed
from graphsnd.estimation.sampling.forecast import Tolerance
from graphsnd.estimation.sampling.fresh import once, until
from graphsnd.estimation.sampling.source import Source, as_source
from graphsnd.estimation.sampling.stream import Callback, Task
from graphsnd.teams import Policy, Team


def estimate(
    team: Behavior | Team | Policy | Sequence[Policy],
    observations: Tensor | None = None,
    *,
    design: Design | None = None,
    distance: Distance | None = None,
    tol: float | None = None,
    rel_tol: float | None = None,
    confidence: float = 0.95,
    budget: Budget | None = None,
    d_max: float | None = None,
    clusters: Tensor | None = None,
    seed: int | torch.Generator = 0,
    callback: Callback | None = None,
    backend: str = "auto",
) -> Estimate:
    """SND of a team, as precisely as asked and no more expensively than needed.

    With a tolerance, draws observations and agents until the interval is narrow enough, and stops; the interval is
    valid although the data decided when to stop. With a budget, spends it. With both, stops at whichever comes first,
    and says in ``met`` whether the tolerance was reached. With neither, measures all pairs when that takes about a
    second, and aims at a relative tolerance of 1% otherwise; ``why`` says which and why.

    The interval holds for every team where a bound on the distances is known: from the behaviour, from the networks
    of a stacked team, from the distance (total variation is at most 1), or from ``d_max``. Where none is known it is
    asymptotic, and ``method`` says so.

    Args:
        team: A behaviour; or policies (see :func:`~graphsnd.teams.as_team`), of which only those that the design
            asks for are evaluated.
        observations: For policies: ``[..., features]``.
        design: Which pairs to measure; chosen from the team's size and the cost of its policies when None.
        distance: Distance object; the family's default when None.
        tol: Half-width of the interval that is good enough.
        rel_tol: The same relative to SND.
        confidence: Coverage of the interval.
        budget: The most that may be spent.
        d_max: An upper bound on every distance, where you know one.
        clusters: Episode or environment of every observation, for the error over observations.
        seed: An int, or a generator to advance.
        callback: Called with the estimate at every look.
        backend: ``auto`` or the name of a kernel backend.

    Raises:
        InputError: For a tolerance, confidence, budget or bound out of range, a behaviour with observations or
            policies without, and a budget too small for two observations.

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Gaussian(torch.randn(4000, 300, 2), torch.ones(2))
        >>> found = gs.estimate(team, design=gs.FreshMatching(), rel_tol=0.02)
        >>> found.met, abs(found.value / float(gs.snd(team)) - 1) < 0.02
        (True, True)
    """
    began = perf_counter()
    check_confidence(confidence)
    if d_max is not None and not 0 <= d_max < math.inf:
        raise InputError("d_max", "to be finite and not negative", d_max)
    tolerance = Tolerance(tol, rel_tol) if tol is not None or rel_tol is not None else None
    source = as_source(team, observations, distance, backend)
    groups = check_clusters(clusters, source.observations)
    _check_kinds(design, budget)
    plan = Plan(design, "as asked") if design is not None else choose(source, budget, tolerance=tolerance is not None)
    if tolerance is None and budget is None and design is None:
        tolerance = Tolerance(relative=DEFAULT_REL_TOL)
    inner, most = _unwrap(plan.design, source.observations)
    if budget is not None and isinstance(inner, FixedGraph | SortedProjections):
        fix = "Choose the number of edges or directions instead, or a design that redraws its pairs."
        raise InputError("budget", "beside a design that can stop early", plan.design.name, fix)
    if isinstance(inner, AllPairs) and (most is not None or not affords_all(source, budget)):
        inner = AgentSubset(source.agents)
    with torch.no_grad():
        if isinstance(inner, FreshDesign):
            known = [bound for bound in (d_max, source.bound()) if bound is not None]
            bound = min(known) if known else None
            task = Task(
                source,
                inner,
                confidence,
                bound,
                groups,
                integer_seed(seed),
                budget,
                callback,
                plan.why,
                most=most,
                resize=design is None,
                began=began,
            )
            found = once(task) if tolerance is None else until(task, tolerance)
            if found is not None:
                return found if most is None else replace(found, design=plan.design.name)
            plan = Plan(AllPairs(), f"{plan.why}; but the tolerance takes as much work as all pairs")
        found = _whole(source, inner, confidence, groups, integer_seed(seed), backend)
    met = None if tolerance is None else tolerance.met(found) or found.exact
    found = replace(found, why=plan.why, met=met, seconds=perf_counter() - began)
    if callback is not None:
        callback(found)
    return found


def _check_kinds(design: Any, budget: Any) -> None:
    """Words and numbers, which the command line takes, would otherwise be read as all pairs."""
    if design is not None and not isinstance(design, Design):
        fix = "For example gs.AgentSubset(8), gs.FreshMatching() or gs.FixedGraph.bernoulli(0.1)."
        raise InputError("design", "to be a design", repr(design), fix)
    if budget is not None and not isinstance(budget, Budget):
        raise InputError("budget", "to be a Budget", repr(budget), "Write gs.Budget(distances=100_000) or seconds=5.")


def _unwrap(design: Design, observations: int) -> tuple[Design, int | None]:
    if not isinstance(design, ObservationSubset):
        return design, None
    if not isinstance(design.design, FreshDesign | AllPairs):
        fix = "Slice the observations yourself, or use FreshMatching, FreshCirculant or AgentSubset."
        raise InputError("design", "that redraws its pairs inside an ObservationSubset", design.design.name, fix)
    return design.design, min(design.count, observations)


def _whole(
    source: Source, design: Design, confidence: float, clusters: Tensor | None, seed: int, backend: str
) -> Estimate:
    if isinstance(design, SortedProjections):
        return projected(source, design, confidence, clusters=clusters, seed=seed)
    if not isinstance(design, FixedGraph):
        return exact(source, confidence, clusters=clusters, backend=backend)
    graph = design.builder(source.agents, torch.Generator().manual_seed(seed))
    found = on_graph(source, graph, confidence, weighting=design.weighting, clusters=clusters, backend=backend)
    return replace(found, design=design.name)
