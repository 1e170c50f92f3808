r"""Where the seconds of an iteration go, for one run, and what one estimate takes.

Runs are trained together. Rollout, update and audit are timed for all of them at once, an arm's estimates for all runs
of that arm; a run is charged its equal share. A call of the metric is the pairs and distances of one estimate, without
the networks: ``distance_seconds / optimiser steps``, of one run. Medians over iterations, because the first ones
compile and other work disturbs some; then medians over runs, as in the paper.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch

from graphsnd.control import parse_estimator
from graphsnd.control.plan import Plan
from graphsnd.training.dico.task import FREE
from paper.control.logs import History
from paper.experiment import Number

PARTS = ("rollout", "update", "policies", "distances", "audit")
FIELDS = ("rollout_seconds", "update_seconds", "policy_seconds", "distance_seconds", "audit_seconds")


def seconds_of(history: History) -> dict[str, float]:
    """Seconds of an iteration of one run by part, medians over iterations."""
    shares = (history.together, history.together, history.alike, history.alike, history.together)
    return {
        part: statistics.median(getattr(row, field) for row in history.rows) / share
        for part, field, share in zip(PARTS, FIELDS, shares, strict=True)
    }


def call_seconds(history: History) -> float | None:
    """Pairs and distances of one estimate of one run; None where the steps of an iteration are not known."""
    return None if history.steps is None else seconds_of(history)["distances"] / history.steps


def by_arm(histories: Sequence[History]) -> list[dict[str, Any]]:
    """Costs of every arm, ready for JSON: medians over its runs.

    Returns:
        ``parts`` in seconds, their ``total``, ``call_ms`` of the metric, runs that were trained together, and what an
        estimate asks for at one observation: ``pairs``, and ``networks`` that must answer it.
    """
    found = []
    for arm in dict.fromkeys(history.run.arm for history in histories):
        mine = [history for history in histories if history.run.arm == arm]
        each = [seconds_of(history) for history in mine]
        parts = {part: statistics.median(one[part] for one in each) for part in PARTS}
        calls = [call for call in map(call_seconds, mine) if call is not None]
        entry: dict[str, Any] = {"arm": arm, "parts": parts, "total": sum(parts.values()), "runs": len(mine)}
        entry["call_ms"] = 1000 * statistics.median(calls) if calls else None
        entry["together"] = max(history.together for history in mine)
        if mine[0].task is not None and arm not in FREE:
            entry |= asked(arm, mine[0].task.agents)
        found.append(entry)
    return found


def cost_numbers(costs: Sequence[dict[str, Any]]) -> dict[str, Number]:
    """For every arm the time of a call of the metric and of an iteration, and shares of its parts.

    Args:
        costs: From :func:`by_arm`.
    """
    found = {}
    for cost in costs:
        arm, total = cost["arm"].partition(":")[0], cost["total"]
        if cost["call_ms"] is not None:
            found[f"metric_ms_{arm}"] = Number(cost["call_ms"], unit="ms", kind="one estimate of one run, in training")
        kind = f"one run of {cost['together']} trained together"
        found[f"iteration_seconds_{arm}"] = Number(total, unit="s", kind=kind)
        for part in PARTS:
            found[f"{part}_share_{arm}"] = Number(cost["parts"][part] / total, kind="of the time of an iteration")
    return found


def metric_speedups(histories: Sequence[History], arm: str, reference: str) -> dict[str, float]:
    """How many times the metric of another arm takes as long, for every target: ratio of medians over runs.

    Returns:
        By target, as text; targets at which one of the arms is missing, or took no time that was seen, are left out.
    """
    found = {}
    for target in sorted({h.run.target for h in histories if h.run.arm == arm and h.run.target is not None}):
        medians = []
        for name in (reference, arm):
            mine = [h for h in histories if h.run.arm == name and h.run.target == target]
            medians.append(statistics.median([seconds_of(h)["distances"] for h in mine] or [0.0]))
        if min(medians) > 0:
            found[f"{target:g}"] = medians[0] / medians[1]
    return found


def asked(arm: str, agents: int, *, draws: int = 200) -> dict[str, float]:
    """What an estimator asks for at one observation, mean over draws: pairs, and networks that must answer.

    Example:
        >>> asked("matching", 50), asked("agents:4", 50)
        ({'pairs': 25.0, 'networks': 50.0}, {'pairs': 6.0, 'networks': 4.0})
    """
    estimator, generator = parse_estimator(arm), torch.Generator().manual_seed(0)
    plans = []
    for _ in range(draws):
        positions = torch.rand(1, agents, 2, generator=generator)
        plans.append(estimator.plan(1, agents, generator, device=torch.device("cpu"), positions=positions))
    networks = [agents if plan.agents is None else plan.agents.shape[-1] for plan in plans]
    return {"pairs": statistics.fmean(_pairs(plan, agents) for plan in plans), "networks": statistics.fmean(networks)}


def _pairs(plan: Plan, agents: int) -> float:
    """Pairs of a plan; neighbours of each other count once, which is what their weights say."""
    return plan.pairs(agents) if plan.weights is None else float(plan.weights[0].sum())
