r"""What came of controlled training: late windows of runs, and means over seeds.

The late window is the last w iterations. For a run with target :math:`d^\ast`, applied signal :math:`a_t` (estimate
times scale) and audit :math:`d_t` (SND over all pairs),

.. math:: \text{tracking} = \tfrac1w \sum_t \frac{|a_t - d^\ast|}{d^\ast}, \qquad
    \text{audit} = \frac{|\bar d - d^\ast|}{d^\ast}, \qquad
    \text{absolute audit} = \tfrac1w \sum_t \frac{|d_t - d^\ast|}{d^\ast}.

The paper takes the absolute value inside the mean for its tracking error at n = 50, outside for its audit error, and
outside for its tracking error at n = 10. Both are here for both. Runs that are not finished take no part: their last
iterations are not those of the others.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphsnd.control import error_of_mean, mean_error
from graphsnd.errors import InputError
from graphsnd.training.dico import ControlRow
from paper.control.costs import seconds_of
from paper.control.logs import History
from paper.control.pairs import sem
from paper.experiment import Number

SETTLED = 0.02  # relative distance from the target that counts as being there
COUNTED = ("saturated", "zero", "empty", "invalid")


def late(history: History, window: int) -> dict[str, Any]:
    """A run in its late window, ready for JSON; errors are None where there is no target.

    Args:
        history: The run.
        window: Iterations that count.
    """
    rows, target = history.rows[-window:], history.run.target
    applied, audits = [row.applied for row in rows], [row.audit for row in rows]
    rewards = [row.reward for row in rows]
    half = len(rows) // 2
    found: dict[str, Any] = {
        "arm": history.run.arm,
        "target": target,
        "seed": history.run.seed,
        "reward": statistics.fmean(rewards),
        # The first half is longer where the window is odd.
        "reward_halves": [statistics.fmean(rewards[: len(rows) - half]), statistics.fmean(rewards[-half or None :])],
        "applied": statistics.fmean(applied),
        "audit": statistics.fmean(audits),
        "audit_minus_applied": statistics.fmean(audits) - statistics.fmean(applied),
        "first_rewards": [row.reward for row in history.rows[:2]],
        "first_audits": [row.audit for row in history.rows[:2]],
        **{name: sum(getattr(row, name) for row in history.rows) for name in COUNTED},
    }
    errors = dict.fromkeys(("tracking_error", "tracking_error_of_mean", "audit_error", "absolute_audit_error"))
    if target is None:
        return found | errors
    return found | {
        "tracking_error": mean_error(applied, target),
        "tracking_error_of_mean": error_of_mean(applied, target),
        "audit_error": error_of_mean(audits, target),
        "absolute_audit_error": mean_error(audits, target),
    }


def over_seeds(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds of what :func:`late` gives, an arm and target each, with standard errors (None for one seed)."""
    cells: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for run in runs:
        cells.setdefault((run["arm"], run["target"]), []).append(run)
    return [_cell(arm, target, mine) for (arm, target), mine in cells.items()]


def _cell(arm: str, target: float | None, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"arm": arm, "target": target, "seeds": [run["seed"] for run in runs]}
    names = ["reward", "applied", "audit", "audit_minus_applied"]
    if target is not None:
        names += ["tracking_error", "tracking_error_of_mean", "audit_error", "absolute_audit_error"]
    for name in names:
        values = [run[name] for run in runs]
        found[name] = statistics.fmean(values)
        found[f"{name}_sem"] = sem(values)
    first, second = (statistics.fmean(run["reward_halves"][half] for run in runs) for half in (0, 1))
    return found | {"reward_growth": second / first - 1 if first else None}


def seeds_of(cells: Sequence[dict[str, Any]], wanted: int) -> str:
    """How many seeds are behind what :func:`over_seeds` gave, in words.

    Example:
        >>> seeds_of([{"seeds": [0, 1]}, {"seeds": [0, 1, 2]}], 3), seeds_of([{"seeds": [0]}], 1)
        ('2 or 3 of 3 seeds', '1 seed')
    """
    counts = sorted({len(cell["seeds"]) for cell in cells})
    found = " or ".join(map(str, counts))
    return f"{found}{'' if counts == [wanted] else f' of {wanted}'} seed{'s' * (wanted > 1)}"


def settling(histories: Sequence[History], within: float = SETTLED) -> int | None:
    """First iteration from which the applied signal, mean over seeds, stays within a share of the target.

    Args:
        histories: Runs of one arm and target.
        within: That share.

    Returns:
        None when it is outside at the end.
    """
    target = histories[0].run.target
    if target is None:
        raise InputError("histories", "with a target", histories[0].run.arm)
    means = [statistics.fmean(row.applied for row in rows) for rows in zip(*(h.rows for h in histories), strict=False)]
    outside = [place for place, value in enumerate(means) if abs(value - target) > within * target]
    if not outside:
        return histories[0].rows[0].iteration
    return histories[0].rows[outside[-1] + 1].iteration if outside[-1] + 1 < len(means) else None


def curves(histories: Sequence[History]) -> list[dict[str, Any]]:
    """Applied signal, audit and reward over iterations, an arm and target each: mean and range over its runs."""
    cells: dict[tuple[str, float | None], list[History]] = {}
    for history in histories:
        cells.setdefault((history.run.arm, history.run.target), []).append(history)
    found = []
    for (arm, target), mine in cells.items():
        common = min(len(history.rows) for history in mine)
        curve: dict[str, Any] = {"arm": arm, "target": target, "seeds": len(mine)}
        curve["iteration"] = [row.iteration for row in mine[0].rows[:common]]
        for name in ("applied", "audit", "reward"):
            values = np.array([[getattr(row, name) for row in history.rows[:common]] for history in mine])
            parts = {"mean": values.mean(0), "low": values.min(0), "high": values.max(0)}
            curve[name] = {key: [float(f"{value:.5g}") for value in part] for key, part in parts.items()}
        found.append(curve)
    return found


def beside(others: Sequence[History], main: Sequence[History], window: int) -> list[dict[str, Any]]:
    """Runs whose estimates saw more or fewer observations, beside those of the study, over the iterations of both."""
    found = []
    for other in others:
        twin = next((history for history in main if history.run == other.run), None)
        if twin is None:
            continue
        common = min(other.iterations, twin.iterations)
        parts = [late(_until(history, common), min(window, common)) for history in (other, twin)]
        names = ("reward", "audit", "audit_error", "absolute_audit_error", "tracking_error")
        entry = {name: [part[name] for part in parts] for name in names}
        about: dict[str, Any] = {**vars(other.run), "iterations": common}
        about |= {"observations": [other.observations, twin.observations], "everything": _everything(other)}
        found.append({**about, "parts": seconds_of(other), **entry})
    return found


def _everything(history: History) -> bool:
    """Whether estimates saw all observations of their minibatches, as in the published runs."""
    task = history.task
    return task is not None and history.observations >= task.agents * min(task.settings.minibatch, task.settings.frames)


def _until(history: History, iteration: int) -> History:
    rows: list[ControlRow] = [row for row in history.rows if row.iteration <= iteration]
    return replace(history, rows=rows)


def of_its_team(number: Number, data: dict[str, Any], agents: int) -> Number:
    """A number of a study that stands in for one with ``agents`` agents says how many it has."""
    found = (data.get("protocol") or {}).get("agents", agents)
    return number if found == agents else replace(number, kind=f"{number.kind}; {found} agents")
