"""The one verb: SND of a team, exactly, on a graph, at a tolerance or within a budget."""

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
from graphsnd.behavior.distances import check_unpooled
from graphsnd.designs import Adaptive, Complete, Design, GraphDesign, Projections, RelabelledDesign, SpatialDesign
from graphsnd.designs.subsets import integer_seed
from graphsnd.errors import InputError, check_choice, check_clusters, check_integer, check_layout, warn_caller
from graphsnd.estimation.adapted import measure_adapted
from graphsnd.estimation.advising import advise_typical
from graphsnd.estimation.costs import Budget, DesignOrGraph, choose, complete_seconds, policy_cost_of, to_seconds
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.forecast import Tolerance
from graphsnd.estimation.groups import by_group
from graphsnd.estimation.intervals import check_confidence
from graphsnd.estimation.on_graph import WEIGHTINGS, measure_all_pairs, measure_moving, measure_on_graph
from graphsnd.estimation.projections import measure_by_projections
from graphsnd.estimation.sampling import Callback, Task, sample_once, sample_until
from graphsnd.estimation.source import Source, TeamSource, as_source
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.metric.pair_distances import check_graph
from graphsnd.teams import Policy, Team

SLOW = 10.0  # seconds from which an exact measurement says what a tolerance would cost


class SlowMeasurementWarning(UserWarning):
    """All pairs take long, and a tolerance of 1% was forecast to take less.

    A warning, because only what comes before the wait can save it: the fields of the estimate come after.

    Example:
        >>> import torch, warnings, graphsnd as gs
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", SlowMeasurementWarning)  # all pairs are meant
        ...     gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))).value
        4.0
    """


@by_group
@checked(own="team observations design budget distance clusters confidence")
def measure(
    team: Behavior | Team | Policy | Mapping[str, Any] | Sequence[Policy],
    observations: Tensor | Mapping[str, Any] | None = None,
    *,
    design: Design | Graph | MovingGraph | str | None = None,
    tol: float | None = None,
    rel_tol: float | None = None,
    budget: Budget | str | None = None,
    confidence: float = 0.95,
    distance: Distance | None = None,
    positions: Tensor | Mapping[str, Tensor] | None = None,
    weighting: str = "normalised",
    pooled: bool = False,
    max_observations: int | None = None,
    d_max: float | None = None,
    clusters: Tensor | Sequence[int] | None = None,
    sources: Tensor | Sequence[Any] | None = None,
    seed: int | torch.Generator = 0,
    callback: Callback | None = None,
    backend: str = "auto",
) -> Estimate:
    """Measure the SND of a team, or its Graph-SND, and say how sure the number is.

    Without design, tolerance and budget all pairs are measured and the number is SND itself; where that is forecast to
    take more than ten seconds, a :class:`~graphsnd.estimation.SlowMeasurementWarning` says what ``rel_tol=0.01`` would
    cost. With a tolerance, observations and agents are drawn until the interval is narrow enough; it is valid although
    the data decided when to stop. With a budget, the budget is spent. With both, whichever comes first ends it, and
    ``met`` says whether the tolerance was reached; ``why`` says which design was chosen, and why.

    A random graph (Bernoulli, uniform, regular) estimates SND, with an interval that holds for every team: the narrower
    of Serfling's and the empirical Bernstein-Serfling one, each at half the failure probability, or that from the exact
    second moments of random regular graphs. The pairs left out lie between 0 and the certified diameter, so those
    measured bound SND for certain; the interval is clipped to that range. A graph of neighbours, or your own, *defines*
    the measure, and the value is exact. So does a graph for each observation, of positions there or your own: the value
    is the mean over observations, and ``empty_share`` of them had no edge and count as 0.

    The interval of pairs that are redrawn for each observation holds for every team where a bound on the distances is
    known: from the behaviour, from the networks of a stacked team, from the distance (total variation is at most 1), or
    from ``d_max``. Where none is known it is asymptotic, and ``method`` says so.

    Agents with different action spaces have no distance. A dict of groups, each a behaviour or policies of one space,
    is measured group by group, each with a seed of its own. The estimate is then of the mean over all pairs within
    groups (a group of one agent has none), and ``estimate["prey"]`` is that of one group. The intervals of all groups
    and of the total hold together with the given confidence. Tolerance and budget are those of each group.

    Args:
        team: A behaviour; or policies (see :func:`~graphsnd.teams.as_team`), of which only those that the design
            asks for are evaluated (recurrent and communicating ones answer everything); or a dict of groups of either.
        observations: For policies: ``[..., features]``, or a dict of what each agent observed, which is pooled. For
            groups, ``observations``, ``design``, ``positions`` and ``clusters`` may be dicts by group.
        design: Which pairs to measure: a design, what :func:`graphsnd.designs.parse` reads (``"bernoulli:0.1"``), or a
            graph. Without one, all pairs, or what suits the tolerance and the budget.
        tol: Half-width of the interval that is good enough.
        rel_tol: The same relative to SND.
        budget: The most that may be spent, a :class:`~graphsnd.Budget` or ``"5s"``, ``"1e6"`` distances, ``"1e6e"``
            policy evaluations.
        confidence: Coverage of the interval.
        distance: Distance object; the family's default when None.
        positions: Where the agents are, ``[agents, d]`` or a dict of one ``[d]`` per agent, for ``knn`` and ``radius``;
            with ``[..., agents, d]``, pooled as the observations are, each observation has its own graph.
        weighting: Of the edges of a random graph: their mean (``"normalised"``), or their sum over its expected count
            (``"horvitz-thompson"``).
        pooled: Of a graph for each observation: pool the edges of all instead of the mean over observations.
        max_observations: Draw at most this many of the observations at random, at least 2; all when None.
        d_max: An upper bound on every distance, where you know one.
        clusters: Episode or environment of each observation, integers of the observations' leading shape or flat, for
            the error over observations; contiguous blocks when None.
        sources: Whose observations: for each, as for clusters, the agent, policy or phase that it came from, a number
            or a name. SND depends on where it is measured, and ``estimate.sources`` has it by source, where all pairs
            are measured. Known without this from a dict of what each agent observed.
        seed: An int, or a generator to advance.
        callback: Called with the estimate each time the data are inspected.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The estimate.

    Raises:
        InputError: For arguments out of range or of another shape, a behaviour with observations or policies without, a
            random graph without edges, and a budget too small for two observations.

    Example:
        >>> import torch, graphsnd as gs
        >>> print(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        SND 4 (exact over 3 pairs, 1 shared observation)
        >>> team = gs.Gaussian(torch.randn(4000, 300, 2), torch.ones(2))
        >>> estimate = gs.measure(team, design="matching", rel_tol=0.02)
        >>> estimate.met, abs(float(estimate) / float(gs.snd(team)) - 1) < 0.02
        (True, True)
        >>> hunt = {"predators": gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])), "prey": team}
        >>> gs.measure(hunt)["predators"].value
        4.0
    """
    began = perf_counter()
    _check_arguments(observations, weighting, max_observations, d_max)
    confidence = check_confidence(confidence)
    tolerance = Tolerance(tol, rel_tol) if tol is not None or rel_tol is not None else None
    asked, limit, number = _read_design(design), _read_budget(budget), integer_seed(seed)
    source = as_source(team, observations, distance, backend)
    if limit is not None and source.team and source.team.whole and limit.evaluations is not None:
        fix = "Recurrent and communicating policies answer everything at once. Give distances or seconds."
        raise InputError("budget", "without policy evaluations for such a team", budget, fix)
    if limit is not None and limit.seconds is not None and isinstance(source, TeamSource) and not source.team.cost:
        slow = policy_cost_of(source.time_policy(limit.seconds / 20), source)
        source.policy_cost = max(source.policy_cost, slow)  # or all pairs would seem to take no time
    if clusters is not None or sources is not None:
        check_unpooled(source.distance, "clusters and sources tell apart")
    groups = check_clusters(clusters, source.batch_shape)
    origins = _read_sources(sources, observations, source)
    chosen, why = _choose(source, asked, limit, tolerance, max_observations)
    _check_combination(chosen, limit, weighting, max_observations)
    if sources is not None and not isinstance(chosen, Complete):
        raise InputError("sources", "beside all pairs", str(chosen), "Leave out design, tolerance and budget.")
    with torch.no_grad():
        sampled = _as_sampled(chosen, source, limit, max_observations)
        bound = None
        if sampled is not None or isinstance(chosen, Adaptive):
            bound = min((known for known in (d_max, source.bound()) if known is not None), default=None)
        if sampled is not None:
            task = Task(
                source, sampled, confidence, bound, groups, number, limit, callback, why, began,
                most=max_observations, resize=asked is None,
            )  # fmt: skip
            estimate = sample_once(task) if tolerance is None else sample_until(task, tolerance)
            if estimate is not None:
                estimate = replace(estimate, noise_floor=source.noise_floor)
                return estimate if sampled == chosen else replace(estimate, design=str(chosen))
            chosen, why = Complete(), f"{why}; but the tolerance takes as much work as all pairs"
        if isinstance(chosen, Complete):
            estimate = measure_all_pairs(source, confidence, groups, origins)
        elif isinstance(chosen, Adaptive):
            estimate = measure_adapted(source, chosen, confidence, groups, bound, seed=number)
        elif isinstance(chosen, Projections):
            estimate = measure_by_projections(source, chosen, confidence, groups, seed=number)
        elif isinstance(graph := _build_graph(source, chosen, positions, number), MovingGraph):
            if weighting != WEIGHTINGS[0]:
                raise InputError("weighting", f"{WEIGHTINGS[0]} where the graph defines the measure", weighting)
            estimate = measure_moving(source, graph, _name(chosen), pooled, confidence, groups)
        else:
            estimate = measure_on_graph(source, graph, _name(chosen), weighting, confidence, groups)
    met = None if tolerance is None else tolerance.met(estimate) or estimate.exact
    estimate = replace(estimate, why=why, met=met, noise_floor=source.noise_floor, seconds=perf_counter() - began)
    if callback is not None:
        callback(estimate)
    return estimate


def _check_arguments(observations: Any, weighting: str, max_observations: int | None, d_max: float | None) -> None:
    if isinstance(observations, Graph | MovingGraph | Design | str):
        text = type(observations) in (str, *designs.FORMS.values())
        fix = f"Write design={str(observations)!r}." if text else "Give it as design=."
        raise InputError("observations", "to be a tensor", f"{observations}, which says which pairs", fix)
    check_choice("weighting", weighting, WEIGHTINGS)
    if max_observations is not None:
        fix = "One observation says nothing about others."
        check_integer("max_observations", max_observations, "to be an integer, at least 2", low=2, fix=fix)
    if d_max is not None and not 0 <= d_max < math.inf:
        raise InputError("d_max", "to be finite and not negative", d_max)


def _read_sources(sources: Any, observations: Any, source: Source) -> Sequence[str] | None:
    """Return the source of each observation, as labels; None where nothing is known."""
    observations = source.team.join_parts(observations) if source.team else observations
    if sources is None and source.team and isinstance(observations, Mapping):
        if hasattr(observations, "batch_size"):
            return None  # a TensorDict, of which a team reads what it needs
        # Numbers in place of the observations are pooled in the same order.
        numbers = {key: torch.full(tuple(part.shape), float(at)) for at, (key, part) in enumerate(observations.items())}
        pooled = source.team.read_observations(numbers).flatten(0, -1 - source.team.feature_dims)
        keys = list(map(str, observations))
        return [keys[int(at)] for at in pooled.flatten(1)[:, 0].tolist()]
    if sources is None:
        return None
    shape = sources.shape if isinstance(sources, Tensor) else (len(sources),)
    if math.prod(shape) != source.observations:
        raise InputError("sources", f"to be {source.observations}, one for each observation", math.prod(shape))
    check_layout("sources", shape, source.batch_shape)
    # As text, which names them in the result: 1 and "1" are one source there, and all NaN are.
    return [str(label) for label in (sources.flatten().tolist() if isinstance(sources, Tensor) else sources)]


def _read_design(design: Any) -> DesignOrGraph | None:
    if isinstance(design, str):
        return designs.parse(design)
    if design is not None and not isinstance(design, DesignOrGraph):
        fix = "For example 'agents:8', gs.designs.Bernoulli(0.1) or gs.graphs.cliques(roles)."
        raise InputError("design", "to be a design, its name, or a graph", repr(design), fix)
    return design


def _read_budget(budget: Any) -> Budget | None:
    if isinstance(budget, str):
        return Budget.parse(budget)
    if budget is not None and not isinstance(budget, Budget):
        fix = "Write '5s', gs.Budget(distances=100_000) or gs.Budget(seconds=5)."
        raise InputError("budget", "to be a Budget or its text", repr(budget), fix)
    return budget


def _choose(
    source: Source, asked: DesignOrGraph | None, budget: Budget | None, tolerance: Tolerance | None, most: int | None
) -> tuple[DesignOrGraph, str]:
    if isinstance(asked, Graph | MovingGraph):
        check_graph(asked, source.agents, source.names, observations=source.observations, argument="design")
    if isinstance(asked, Graph) and asked.is_complete and asked.weights is None:
        asked = Complete()
    if asked is not None:
        return asked, "as asked"
    if tolerance is not None or budget is not None:
        return choose(source, budget, tolerance=tolerance is not None)
    if most is None:
        _hint(source)
    return Complete(), "all pairs, as neither a tolerance nor a budget was given"


def _hint(source: Source) -> None:
    """Warn where all pairs take long, with what a tolerance of 1% is forecast to take for a typical team."""
    seconds = complete_seconds(source)
    if seconds <= SLOW:
        return
    less = advise_typical(source, rel_tol=0.01)
    text = f"All pairs take about {seconds:.0f} s; rel_tol=0.01 would take about"
    warn_caller(f"{text} {to_seconds(less.cost.work, source):.2g} s.", SlowMeasurementWarning)


def _check_combination(design: DesignOrGraph, budget: Budget | None, weighting: str, most: int | None) -> None:
    whole = isinstance(design, Graph | MovingGraph | GraphDesign | Projections | Adaptive)
    if whole and budget is not None:
        fix = "Choose the number of edges or directions instead, or a design that redraws its pairs."
        raise InputError("budget", "beside a design that can stop early", _name(design), fix)
    if whole and most is not None:
        fix = "Slice the observations yourself, or use matching, ring:8 or agents:8."
        raise InputError("max_observations", "beside a design that redraws its pairs", _name(design), fix)
    if weighting != WEIGHTINGS[0] and not isinstance(design, Graph | GraphDesign):
        raise InputError("weighting", f"{WEIGHTINGS[0]} for all but random graphs", f"{weighting} for {design}")


def _build_graph(source: Source, design: DesignOrGraph, positions: Any, seed: int) -> Graph | MovingGraph:
    """Return the graph of a design, or that was given in place of one."""
    if not isinstance(design, GraphDesign):
        assert isinstance(design, Graph | MovingGraph)  # all other designs are measured without one
        return design
    places = stack_agents("positions", positions, source.names)
    if isinstance(design, SpatialDesign) and places is not None and places.dim() > 2:
        return design._join_each(places, source.batch_shape, source.observations, source.agents)
    return design.draw(source.agents, torch.Generator().manual_seed(seed), places)


def _as_sampled(
    design: DesignOrGraph, source: Source, budget: Budget | None, most: int | None
) -> RelabelledDesign | None:
    """Return the design to draw with; None where everything is measured at all observations."""
    limited = most is not None or (budget is not None and not budget.affords_all(source))
    if isinstance(design, Complete) and limited:
        return designs.Agents(source.agents)
    return design if isinstance(design, RelabelledDesign) else None


def _name(design: DesignOrGraph) -> str:
    return str(design) if isinstance(design, Design) else design.family
