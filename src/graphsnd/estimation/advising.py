"""Which design answers a question about a team with the least work, before anything is measured."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from graphsnd import bounds
from graphsnd.arguments import checked
from graphsnd.behavior import DISTANCES, Behavior, Distance
from graphsnd.designs import Complete, Design, GraphDesign, Nearest, Regular
from graphsnd.errors import InputError, check_choice, describe
from graphsnd.estimation import options
from graphsnd.estimation.advice import Advice, Alternative, percent
from graphsnd.estimation.costs import RATES, complete_seconds
from graphsnd.estimation.forecast import Tolerance
from graphsnd.estimation.intervals import check_confidence
from graphsnd.estimation.options import Question, assume_spreads, measure_spreads
from graphsnd.estimation.source import Workload

LARGE = 1e100  # whose square, times any number of pairs, is still a number
GOALS = ("global", "local", "proxy")  # the rows of the paper's table on choosing a graph
OFTEN = 0.01  # seconds that are cheap in every step of a training
SPECTRAL, ROUTED = 3000, 150  # agents up to which a graph's eigenvalues and its routing are computed for advice


@checked(own="device confidence distance")
def advise(
    n: int,
    observations: int,
    goal: str = "global",
    *,
    rel_tol: float = 0.01,
    confidence: float = 0.95,
    same_pairs: bool = False,
    policy_cost: float = 0.0,
    distance_spread: float = 0.5,
    observation_spread: float = 0.3,
    effect_share: float = 0.5,
    d_max_ratio: float | None = 4.0,
    features: int = 4,
    device: str = "cpu",
    pilot: Behavior | None = None,
    distance: Distance | None = None,
) -> Advice:
    """Recommend a design: what to measure, its error and its cost, and why not another. The paper's rule as a function.

    For ``"global"``, SND of the whole team, the tolerance must be guaranteed where a bound on the distances is known.
    For ``"proxy"``, a cheap stand-in inside training, it must hold typically, call after call. Both take the design
    with the least work. For ``"local"``, how different agents are that meet, the graph *is* the question, and only its
    cost can be forecast. The forecasts are those by which :func:`~graphsnd.measure` decides when to stop.

    Args:
        n: Number of agents.
        observations: Number of observations they share.
        goal: What the number is for: ``"global"``, ``"local"`` or ``"proxy"``.
        rel_tol: Tolerated error relative to SND.
        confidence: Probability that the error stays within it.
        same_pairs: For a proxy, whether every call must measure the same pairs.
        policy_cost: Multiply-adds of one policy on one observation; 0 when all have been evaluated anyway.
        distance_spread: Standard deviation of the distances over the pairs of an observation, relative to SND.
        observation_spread: Standard deviation of the diversity over observations, relative to SND.
        effect_share: Share of the squared distance spread that is due to single agents.
        d_max_ratio: The largest distance at any observation relative to SND; None when no bound is known.
        features: Of the embedded actions: twice the action dimensions for Gaussians. A pilot shows its own.
        device: ``cpu`` or ``cuda``.
        pilot: All agents at some observations; the spreads and the bound are then measured, not assumed, and work is
            that of its distances. Without one distances are taken for Euclidean, as those of diagonal Gaussians,
            deterministic actions and quantiles are; total variation costs as much.
        distance: Between the agents of the pilot, as in :func:`~graphsnd.measure`; its default when None.

    Returns:
        The advice.

    Raises:
        InputError: For numbers out of range, ``same_pairs`` for another goal than a proxy, a pilot of another
            number of agents, and a distance that does not fit it or has no pilot.

    Example:
        >>> advise(16, 4096).design, advise(500, 100_000, policy_cost=11_000).design
        (Complete(), Agents(count=3))
    """
    confidence = check_confidence(confidence)
    _check_numbers(policy_cost, distance_spread, observation_spread, effect_share, d_max_ratio)
    check_choice("device", str(device).partition(":")[0], RATES)
    check_choice("goal", goal, GOALS)
    if same_pairs and goal != "proxy":
        raise InputError("same_pairs", "only for the goal proxy", goal, "A single measurement has no later call.")
    source = Workload(n, observations, features, policy_cost, torch.device(str(device).partition(":")[0]))
    if pilot is None and distance is not None:
        fix = "What a distance costs depends on the behaviours: pass some as the pilot."
        raise InputError("distance", "only beside a pilot", describe(distance), fix)
    if pilot is None:
        prospect = assume_spreads(source, distance_spread, observation_spread, effect_share, d_max_ratio)
    elif pilot.agents != n:
        raise InputError("pilot", f"of all {n} agents", repr(pilot))
    else:
        prospect = measure_spreads(source, pilot, distance, bounded=d_max_ratio is not None)
    asked = {"tolerance": Tolerance(relative=rel_tol), "confidence": confidence, "goal": goal}
    question = Question(**vars(prospect), **asked, same_pairs=same_pairs, distance=distance)  # type: ignore[arg-type]
    return _advise_neighbours(question) if goal == "local" else _advise_sample(question)


def advise_typical(source: Workload, rel_tol: float) -> Advice:
    """Return what :func:`advise` says by default, where more than its arguments is known of the costs."""
    prospect, tolerance = assume_spreads(source, 0.5, 0.3, 0.5, 4.0), Tolerance(relative=rel_tol)
    question = Question(**vars(prospect), tolerance=tolerance, confidence=0.95, goal="global", same_pairs=False)
    return _advise_sample(question)


def _check_numbers(cost: float, distance: float, observation: float, share: float, ratio: float | None) -> None:
    checks = {"policy_cost": cost, "distance_spread": distance, "observation_spread": observation}
    for name, value in checks.items():
        if not 0 <= value <= LARGE:
            raise InputError(name, f"to be from 0 to {LARGE:g}", value)
    if not 0 <= share <= 1:
        raise InputError("effect_share", "in [0, 1]", share)
    if ratio is not None and not 1 <= ratio <= LARGE:
        fix = "The largest distance is at least the mean; None where no bound is known."
        raise InputError("d_max_ratio", f"to be from 1 to {LARGE:g}", ratio, fix)


def _advise_sample(question: Question) -> Advice:
    """Recommend the least work that estimates SND within the tolerance."""
    whole, others = options.measure_everything(question), options.list_sampled(question)
    kinds = Regular if question.same_pairs else Design
    useful = [one for one in others if one.met and one.cost.work < whole.cost.work and isinstance(one.design, kinds)]
    proxy = question.goal == "proxy"
    if complete_seconds(question.source) <= (OFTEN if proxy else 1.0):
        often = "a few milliseconds, even in every step" if proxy else "about a second or less"
        chosen, reason = whole, f"all pairs at all observations take {often}, so compute it exactly"
    elif not useful:
        chosen, reason = whole, "no design reaches the tolerance with less work than all pairs"
    else:
        chosen = min(useful, key=lambda one: one.cost.work)
        share = percent(chosen.cost.work / whole.cost.work)
        kind = "among graphs that may be kept, it" if question.same_pairs else "it"
        reason = f"{kind} reaches the tolerance with the least work, {share} of that of all pairs"
    rejected = [replace(one, why=_why_not(one, chosen, question)) for one in [whole, *others] if one is not chosen]
    guarantee = _guarantee(chosen, question)
    return _make_advice(question, replace(chosen, why=reason), guarantee, rejected, question.assumptions)


def _make_advice(
    question: Question, chosen: Alternative, guarantee: str, rejected: list[Alternative], assumptions: tuple[str, ...]
) -> Advice:
    calls = [_call(chosen.design, question, team) for team in ("behavior", "policies, observations")]
    return Advice(question.goal, chosen, guarantee, tuple(rejected), assumptions, *calls)


def _why_not(one: Alternative, chosen: Alternative, question: Question) -> str:
    if question.same_pairs and not isinstance(one.design, Complete | GraphDesign):
        return "draws other pairs at every call"
    ratio = one.cost.work / chosen.cost.work
    digits = ",.0f" if ratio >= 9.95 else ".1f" if ratio >= 0.095 else ".1g"
    much = "as much work" if 0.95 < ratio < 1.05 else f"{ratio:{digits}} times the work"
    error = f"±{percent(one.typical)} typically" + ("" if one.radius is None else f", ±{percent(one.radius)} for sure")
    if not one.met:
        lasting = ", however many observations" if isinstance(one.design, GraphDesign) else " at this cost"
        return f"misses the tolerance: {error}{lasting}"
    return f"{much} and leaves {error}" if isinstance(chosen.design, Complete) else much


def _guarantee(chosen: Alternative, question: Question) -> str:
    sure = f"with {question.confidence:.4g} probability"
    if chosen.radius == 0:
        return "exact: SND itself on the given observations"
    typical = f"±{percent(chosen.typical)} {sure} for large samples"
    if chosen.radius is None:
        return f"{typical}; pass a bound on the distances for more"
    text = f"unbiased for SND; ±{percent(chosen.radius)} {sure} for every team within the bound, {typical}"
    return text + _if_kept(chosen.design, question.n)


def _if_kept(design: Design | None, n: int) -> str:
    """Return what one regular graph promises for teams that were, or have become, arranged against it."""
    if not isinstance(design, Regular) or n > SPECTRAL:
        return ""
    graph = design.draw(n, torch.Generator().manual_seed(0))
    ratio = bounds.spectral_ratio(graph)
    text = f"; if one graph is kept, Graph-SND / SND lies in [{ratio.low:.2f}, {ratio.high:.2f}] for every team"
    text += " whose distance is of negative type"
    if n > ROUTED or not bounds.spectrum(graph).connected:
        return text
    low, high = bounds.distortion(graph, seconds=1.0).interval(1.0)
    routed = f"SND / Graph-SND in [{low:.2f}, {high:.2f}] for every metric (by its routing)"
    return f"{text} (by its eigenvalues) and {routed}"


def _call(design: Design | None, question: Question, team: str) -> str:
    """Return Python; for a graph in a training loop the bare mean, which has a gradient and no interval to pay for."""
    own = f"gs.{question.distance!r}" if question.distance in DISTANCES.values() else "distance"
    end = ")" if question.distance is None else f", distance={own})"
    if isinstance(design, Complete):
        return f"gs.measure({team}{end}"
    if not isinstance(design, GraphDesign):
        return f'gs.measure({team}, design="{design}", rel_tol={question.tolerance.relative:g}{end}'
    if design.needs_positions:
        return f'gs.measure({team}, design="{design}", positions=positions{end}'
    seed = "0" if question.same_pairs or question.goal == "global" else "step"
    if question.goal == "proxy" and team == "behavior":
        graph = f"gs.designs.{design!r}.draw({question.n}, torch.Generator().manual_seed({seed}))"
        return f"gs.graph_snd({team}, {graph}{end}"
    return f'gs.measure({team}, design="{design}", seed={seed}{end}'


def _advise_neighbours(question: Question) -> Advice:
    """Recommend neighbours: the value is exact by definition, and it is not SND."""
    k = max(1, min(question.n - 1, math.ceil(math.log2(question.n))))
    why = (
        "the graph is the definition: take the neighbours that an agent really has, and their number for k; "
        f"k = {k}, about log2 n, keeps most such graphs connected where nothing better is known"
    )
    cost = question.cost(Nearest(k), question.source.observations)
    chosen = Alternative(f"knn:{k}", Nearest(k), 0.0, 0.0, cost, True, why)
    near = "better where a communication range is known; agents out of range of all drop out"
    roles = "better where the question is how alike the agents of a role are"
    snd = "that is SND: pairs that never meet count as much as neighbours"
    rejected = [
        replace(chosen, name="radius:r", design=None, why=near),
        replace(chosen, name="cliques of roles", design=None, why=roles),
        replace(options.measure_everything(question), why=snd),
    ]
    guarantee = "exact on its graph, which defines a local measure: not an estimate of SND"
    assumptions = ("an agent has about k neighbours; costs are at most these",)
    return _make_advice(question, chosen, guarantee, rejected, assumptions)
