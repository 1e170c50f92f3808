"""Which design answers a question about a team with the least work, before anything is measured."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from graphsnd import bounds
from graphsnd.behavior import Behavior
from graphsnd.errors import InputError, check_integer
from graphsnd.estimation.advice import options
from graphsnd.estimation.advice.options import Question
from graphsnd.estimation.advice.prospect import Outline, imagined, seen
from graphsnd.estimation.advice.verdict import Advice, Alternative, Goal, Recipe, percent, written
from graphsnd.estimation.designs import AllPairs, FixedGraph
from graphsnd.estimation.measure import check_confidence
from graphsnd.estimation.sampling.forecast import Tolerance
from graphsnd.estimation.sampling.work import CHEAP

OFTEN = 0.01  # of the work that is cheap once: what is cheap when it is done again and again
SPECTRAL, ROUTED = 3000, 150  # agents up to which a graph's eigenvalues and its routing are computed for advice


def advise(
    n: int,
    observations: int,
    goal: Goal = Goal.GLOBAL,
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
) -> Advice:
    """The paper's rule for choosing a graph, as an answer: what to measure, its error, its cost, and why not the rest.

    For ``Goal.GLOBAL`` the tolerance must be guaranteed (where a bound on the distances is known), for ``Goal.PROXY``
    it must hold typically, call after call; both take the design with the least work. For ``Goal.LOCAL`` the graph
    *is* the question, and only its cost can be forecast. The forecasts are those by which :func:`~graphsnd.estimate`
    decides when to look.

    Args:
        n: Number of agents.
        observations: Number of observations they share.
        goal: What the number is for.
        rel_tol: Tolerated error relative to SND.
        confidence: Probability that the error stays within it.
        same_pairs: For a proxy, whether every call must look at the same pairs.
        policy_cost: Multiply-adds of one policy on one observation; 0 when all have been evaluated anyway.
        distance_spread: Standard deviation of the distances over the pairs of an observation, relative to SND.
        observation_spread: Standard deviation of the diversity over observations, relative to SND.
        effect_share: Share of the squared distance spread that is due to single agents.
        d_max_ratio: The largest distance at any observation relative to SND; None when no bound is known.
        features: Of the embedded actions: twice the action dimensions for Gaussians.
        device: ``cpu`` or ``cuda``.
        pilot: All agents at some observations; the spreads and the bound are then measured, not assumed.

    Returns:
        The advice.

    Raises:
        InputError: For numbers out of range, ``same_pairs`` for another goal than a proxy, and a pilot of another
            number of agents.

    Example:
        >>> advise(16, 4096).design_name
        'all pairs'
        >>> advise(500, 100_000, policy_cost=11_000).design_name
        '3 random agents'
    """
    check_integer("n", n, "to be an integer, at least 2 agents", low=2)
    check_integer("observations", observations, "to be a positive integer", low=1)
    check_integer("features", features, "to be a positive integer", low=1)
    check_confidence(confidence)
    _check_numbers(policy_cost, distance_spread, observation_spread, effect_share, d_max_ratio)
    if not isinstance(goal, Goal):
        raise InputError("goal", "to be a Goal", repr(goal), "Write Goal.GLOBAL, Goal.LOCAL or Goal.PROXY.")
    if same_pairs and goal is not Goal.PROXY:
        raise InputError("same_pairs", "only for Goal.PROXY", goal, "A single measurement has no later call.")
    source = Outline(n, observations, features, policy_cost, _device(device))
    if pilot is None:
        spreads = {"distance_spread": distance_spread, "observation_spread": observation_spread}
        prospect = imagined(source, **spreads, effect_share=effect_share, d_max_ratio=d_max_ratio)
    else:
        if pilot.agents != n:
            raise InputError("pilot", f"of all {n} agents", repr(pilot))
        prospect = seen(source, pilot, bounded=d_max_ratio is not None)
    sure = goal is Goal.GLOBAL and prospect.d_max is not None
    question = Question(prospect, Tolerance(relative=rel_tol), confidence, sure)
    return _local(question) if goal is Goal.LOCAL else _sampled(question, goal, same_pairs=same_pairs)


def _sampled(question: Question, goal: Goal, *, same_pairs: bool) -> Advice:
    """The least work that estimates SND within the tolerance."""
    whole = options.everything(question)
    others = options.sampled(question)
    cheap = CHEAP.get(question.prospect.source.device.type, CHEAP["cpu"]) * (OFTEN if goal is Goal.PROXY else 1)
    useful = [one for one in others if one.met and one.cost.work < whole.cost.work]
    useful = [one for one in useful if _is_regular(one)] if same_pairs else useful
    if whole.cost.work <= cheap or not useful:
        chosen, reason = whole, _why_all(whole.cost.work <= cheap, goal)
    else:
        chosen = min(useful, key=lambda one: one.cost.work)
        share = chosen.cost.work / whole.cost.work
        kind = "among graphs that may be kept, it" if same_pairs else "it"
        reason = f"{kind} reaches the tolerance with the least work, {percent(share)} of that of all pairs"
    rejected = tuple(
        replace(one, why=_why_not(one, chosen, same_pairs)) for one in [whole, *others] if one is not chosen
    )
    return Advice(
        goal=goal,
        design_name=chosen.name,
        design=chosen.design,
        guarantee=_guarantee(chosen, question),
        radius=chosen.radius,
        typical=chosen.typical,
        cost=chosen.cost,
        reasons=(reason, *_further(chosen, goal, same_pairs)),
        rejected=rejected,
        assumptions=question.prospect.assumptions,
        call=_call(chosen, question, goal, same_pairs),
    )


def _why_all(cheap: bool, goal: Goal) -> str:
    if not cheap:
        return "no design reaches the tolerance with less work than all pairs"
    often = "a few milliseconds, even in every step" if goal is Goal.PROXY else "about a second or less"
    return f"all pairs at all observations take {often}, so compute it exactly"


def _why_not(one: Alternative, chosen: Alternative, same_pairs: bool) -> str:
    if same_pairs and not isinstance(one.design, AllPairs | FixedGraph):
        return "draws other pairs at every call"
    ratio = one.cost.work / chosen.cost.work
    much = "as much work" if 0.95 < ratio < 1.05 else f"{ratio:,.{0 if ratio >= 9.95 else 1}f} times the work"
    if isinstance(one.design, AllPairs):
        return much
    error = f"±{percent(one.typical)} typically" + ("" if one.radius is None else f", ±{percent(one.radius)} for sure")
    if not one.met:
        lasting = ", however many observations" if isinstance(one.design, FixedGraph) else " at this cost"
        return f"misses the tolerance: {error}{lasting}"
    return f"{much} and leaves {error}" if isinstance(chosen.design, AllPairs) else much


def _guarantee(chosen: Alternative, question: Question) -> str:
    sure = f"with {question.confidence:.4g} probability"
    if chosen.radius == 0:
        return "exact: SND itself on the given observations"
    typical = f"±{percent(chosen.typical)} {sure} for large samples"
    if chosen.radius is None:
        return f"{typical}; pass a bound on the distances for more"
    text = f"unbiased for SND; ±{percent(chosen.radius)} {sure} for every team within the bound, {typical}"
    return f"{text}; {kept}" if (kept := _if_kept(chosen, question.n)) else text


def _if_kept(chosen: Alternative, n: int) -> str:
    """What one regular graph promises for teams that were, or have become, arranged against it."""
    if not (_is_regular(chosen) and isinstance(chosen.design, FixedGraph)) or n > SPECTRAL:
        return ""
    graph = chosen.design.builder(n, torch.Generator().manual_seed(0))
    ratio = bounds.spectral_ratio(graph)
    text = f"if one graph is kept, Graph-SND / SND lies in [{ratio.low:.2f}, {ratio.high:.2f}] for every team"
    text += " whose distance is of negative type"
    if n > ROUTED or not bounds.spectrum(graph).connected:
        return text
    low, high = bounds.distortion(graph, seconds=1.0).interval(1.0)
    return (
        f"{text} (by its eigenvalues) and SND / Graph-SND in [{low:.2f}, {high:.2f}] for every metric (by its routing)"
    )


def _is_regular(one: Alternative) -> bool:
    return isinstance(one.design, FixedGraph) and one.design.label.startswith("regular")


def _further(chosen: Alternative, goal: Goal, same_pairs: bool) -> tuple[str, ...]:
    if isinstance(chosen.design, AllPairs):
        return ()
    if same_pairs:
        return ("effects of single agents cancel on a regular graph, and its eigenvalues bound it for every team",)
    if not isinstance(chosen.design, FixedGraph):
        return ("pairs are drawn anew at every observation, so their noise averages away",)
    if goal is Goal.GLOBAL:
        return ("the edges of one graph are visited faster than pairs drawn anew",)
    return (
        "a new seed for every call keeps the errors of different steps independent; a graph that is kept has the same "
        "error in every step, and training can hide behind the pairs that it leaves out",
    )


def _call(chosen: Alternative, question: Question, goal: Goal, same_pairs: bool) -> str:
    """Python; for a graph in a training loop the bare mean, which has a gradient and no interval to pay for."""
    design, policies = chosen.design, bool(question.prospect.source.policy_cost)
    if isinstance(design, AllPairs):
        return "gs.measure(gs.evaluate(team, observations))" if policies else "gs.measure(team)"
    seed = "0" if same_pairs or goal is Goal.GLOBAL else "step"
    if isinstance(design, FixedGraph) and goal is Goal.PROXY and not policies:
        family, _, size = design.label.partition(":")
        builder = "random_regular" if family == "regular" else family
        return f"gs.graph_snd(team, gs.graphs.{builder}({question.n}, {size}, seed={seed}))"
    end = f"seed={seed}" if isinstance(design, FixedGraph) else f"rel_tol={question.tolerance.relative:g}"
    return f"gs.estimate(team{', observations' if policies else ''}, design={written(design)}, {end})"


def _local(question: Question) -> Advice:
    """Neighbours: the value is exact by definition, and it is not SND."""
    n, observations = question.n, question.prospect.source.observations
    k = max(1, min(n - 1, math.ceil(math.log2(n))))
    knn = Recipe(f"knn:{k}", n * k, f"gs.graphs.knn(positions, {k})")
    near = Recipe("radius:r", n * k, "gs.graphs.radius(positions, r)")
    roles = Recipe("cliques of roles", n * k, "gs.graphs.cliques(roles)")

    def option(design: Recipe, why: str) -> Alternative:
        cost = question.expense(design, observations)
        return Alternative(design.name, design, 0.0, 0.0, cost, True, why)

    chosen = option(knn, "neighbours define the measure")
    whole = replace(options.everything(question), why="that is SND: pairs that never meet count as much as neighbours")
    drawn = replace(options.uniform(question), met=False, why="that estimates SND, not what neighbours do")
    reasons = (
        "the graph is the definition: take the neighbours that an agent really has, and their number for k",
        f"k = {k}, about log2 n, keeps most such graphs connected where nothing better is known",
    )
    return Advice(
        goal=Goal.LOCAL,
        design_name=chosen.name,
        design=knn,
        guarantee="exact on its graph, which defines a local measure: not an estimate of SND",
        radius=0.0,
        typical=0.0,
        cost=chosen.cost,
        reasons=reasons,
        rejected=(
            option(near, "better where a communication range is known; agents out of range of all drop out"),
            option(roles, "better where the question is how alike the agents of a role are"),
            drawn,
            whole,
        ),
        assumptions=("an agent has about as many neighbours as the graph says; costs are at most these",),
        call=f"gs.measure(team, {knn.call})",
    )


def _check_numbers(cost: float, distance: float, observation: float, share: float, ratio: float | None) -> None:
    checks = {"policy_cost": cost, "distance_spread": distance, "observation_spread": observation}
    for name, value in checks.items():
        if not 0 <= value < math.inf:
            raise InputError(name, "to be finite and not negative", value)
    if not 0 <= share <= 1:
        raise InputError("effect_share", "in [0, 1]", share)
    if ratio is not None and not 1 <= ratio < math.inf:
        fix = "The largest distance is at least the mean; None where no bound is known."
        raise InputError("d_max_ratio", "to be finite and at least 1", ratio, fix)


def _device(device: str) -> str:
    if str(device).partition(":")[0] not in CHEAP:
        raise InputError("device", f"to be one of {', '.join(CHEAP)}", repr(device))
    return str(device)
