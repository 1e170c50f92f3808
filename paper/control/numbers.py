"""The numbers of the head-to-head at n = 50 that claims are held against."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from paper.control.calls import share, speedups
from paper.control.costs import cost_numbers
from paper.control.mistaken import BLIND, DOUBLED
from paper.control.pairs import REFERENCE
from paper.control.study import of_its_team, seeds_of
from paper.experiment import Number, Scale

BERNOULLI, AGENTS = "bernoulli:0.1", 50
BOTH = (BERNOULLI, REFERENCE)  # the paper's arms


def numbers(data: dict[str, Any], scale: Scale) -> dict[str, Number]:
    """From what the experiment wrote down; a number whose runs are missing is left out.

    What is said of all targets and seeds is called ``..._so_far`` while some are missing, and then decides no claim.
    """
    end = "" if _complete(data) else "_so_far"
    grid = {**_errors(data), **_rewards(data), **_pairs(data), **_actions(data)}
    return {
        **{f"{name}{end}": of_its_team(number, data, AGENTS) for name, number in grid.items()},
        **_start(data),
        **_mistaken(data),
        **_costs(data, scale),
        **cost_numbers(data["costs"]),
    }


def word(arm: str) -> str:
    """An arm as it stands in the name of a number.

    Example:
        >>> word("bernoulli:0.1"), word("agents:4"), word("full")
        ('bernoulli', 'agents', 'full')
    """
    return arm.partition(":")[0]


def _errors(data: dict[str, Any]) -> dict[str, Number]:
    cells, found = [cell for cell in data["cells"] if cell["target"] is not None], {}
    for arm in dict.fromkeys(cell["arm"] for cell in cells):
        mine = [cell for cell in cells if cell["arm"] == arm]
        for key in ("tracking_error", "audit_error", "absolute_audit_error"):
            values = [cell[key] for cell in mine]
            kind = f"largest and range of {_targets(data, values)}, {seeds_of(mine, data['wanted_seeds'])}"
            found[f"largest_{key}_{word(arm)}"] = Number(max(values), min(values), max(values), kind=kind)
    gaps = _by_target(cells, lambda sparse, full: sparse["tracking_error"] - full["tracking_error"])
    if gaps:
        found["smallest_tracking_gap"] = Number(
            min(gaps), min(gaps), max(gaps), kind=f"range of {_targets(data, gaps)}"
        )
    apart = [cell["audit_minus_applied"] for cell in cells if cell["arm"] in BOTH]
    if apart:
        sizes = [abs(value) for value in apart]
        kind = f"range of {_cells(data, apart)}"
        found["largest_audit_minus_applied"] = Number(max(sizes), min(sizes), max(sizes), kind=kind)
        found["smallest_audit_minus_applied"] = Number(min(apart), min(apart), max(apart), kind=kind)
    return found | _settling(data)


def _settling(data: dict[str, Any]) -> dict[str, Number]:
    """A cell that is outside at the end counts as one that settles after it."""
    after = data["iterations"] + 1
    settled = [entry["iteration"] or after for entry in data["settling"] if entry["arm"] in BOTH]
    if not settled:
        return {}
    kind = f"slowest and range of {_cells(data, settled)}" + "; not within the run" * (max(settled) == after)
    return {"settling_iteration": Number(max(settled), min(settled), max(settled), kind=kind)}


def _rewards(data: dict[str, Any]) -> dict[str, Number]:
    cells, found = [cell for cell in data["cells"] if cell["target"] is not None], {}
    wanted = data["wanted_seeds"]
    for cell in cells:
        name = f"reward_{word(cell['arm'])}_{cell['target']:.2f}".replace("0.", "0")
        error = cell["reward_sem"]
        low, high = (None, None) if error is None else (cell["reward"] - error, cell["reward"] + error)
        found[name] = Number(
            cell["reward"], low, high, kind=f"one standard error either way, {seeds_of([cell], wanted)}"
        )
    some = [cell for cell in cells if cell["reward"]]
    gaps = _by_target(some, lambda sparse, full: abs(sparse["reward"] / full["reward"] - 1))
    if gaps:
        found["largest_reward_gap"] = Number(max(gaps), min(gaps), max(gaps), kind=f"range of {_targets(data, gaps)}")
    steps = [step for arm in BOTH for step in _increases([cell for cell in cells if cell["arm"] == arm])]
    if steps:
        found["smallest_reward_step"] = Number(min(steps), min(steps), max(steps), kind=f"range of {len(steps)} steps")
    full = [cell for cell in some if cell["arm"] == REFERENCE and cell["reward_growth"] is not None]
    grown = [abs(cell["reward_growth"]) for cell in full]
    if grown:
        kind = f"largest and range of {_targets(data, grown)}"
        found["late_reward_growth"] = Number(max(grown), min(grown), max(grown), kind=kind)
    return found


def _increases(cells: Sequence[dict[str, Any]]) -> list[float]:
    ordered = sorted(cells, key=lambda cell: cell["target"])
    return [after["reward"] - before["reward"] for before, after in itertools.pairwise(ordered)]


def _pairs(data: dict[str, Any]) -> dict[str, Number]:
    """Bernoulli less full has the plain names; further arms have theirs at the end."""
    found = {}
    for pair in data["pairs"]:
        end, count = "" if pair["arm"] == BERNOULLI else f"_{word(pair['arm'])}", len(pair["differences"])
        wanted = data["wanted_targets"] * data["wanted_seeds"]
        cells = f"{count} pairs" if count == wanted else f"{count} of {wanted} pairs"
        if pair["low"] is not None:
            kind = f"95% t interval, {cells}"
            found[f"paired_reward_difference{end}"] = Number(pair["mean"], pair["low"], pair["high"], kind=kind)
        if pair["by_seed"]["low"] is not None:
            mean, low, high = (pair["by_seed"][key] for key in ("mean", "low", "high"))
            kind = f"95% t interval, {len(pair['by_seed']['differences'])} seeds"
            found[f"paired_reward_difference_by_seed{end}"] = Number(mean, low, high, kind=kind)
        if pair["sem"] is not None:
            found[f"paired_reward_sem{end}"] = Number(pair["sem"], kind=cells)
        # Fewer than six pairs could not reject at 5% if they all agreed, so that they say nothing is no finding.
        if pair["sign_p"] is not None and sum(map(bool, pair["differences"])) >= 6:
            found[f"sign_test_p{end}"] = Number(pair["sign_p"], kind=f"exact, two-sided, {cells}")
    spread = _between_seeds([run for run in data["runs"] if run["arm"] in BOTH])
    if spread and "paired_reward_difference" in found:
        difference = abs(found["paired_reward_difference"].value)
        found["difference_over_seed_sd"] = Number(difference / spread, kind="pooled over arms and targets")
    return found


def _between_seeds(runs: Sequence[dict[str, Any]]) -> float | None:
    """Standard deviation of reward between seeds, pooled over arms and targets by degrees of freedom."""
    cells: dict[tuple[str, float], list[float]] = {}
    for run in runs:
        cells.setdefault((run["arm"], run["target"]), []).append(run["reward"])
    freedom = sum(len(values) - 1 for values in cells.values())
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in cells.values() if len(values) > 1)
    return math.sqrt(squares / freedom) if freedom else None


def _start(data: dict[str, Any]) -> dict[str, Number]:
    """Left out where rewards agree though policies do not: then they are too coarse to tell."""
    start = data["start"].get(BERNOULLI)
    if start is None or (start["rewards_2"] == 0 and start["audits_2"] > 0):
        return {}
    return {"rollout_difference": Number(start["rewards_2"], kind="largest of matched runs")}


def _mistaken(data: dict[str, Any]) -> dict[str, Number]:
    arms = {arm["arm"]: arm for arm in data["mistaken"]["arms"]}
    kind = f"reads {data['mistaken']['factor']:g} times what is there, {data['mistaken']['agents']} agents"
    return {
        "wrong_estimator_tracking_error": Number(arms[DOUBLED]["tracking_error"], kind=kind),
        "wrong_estimator_audit_error": Number(arms[DOUBLED]["audit_error"], kind=kind),
        "blind_estimator_tracking_error": Number(arms[BLIND]["tracking_error"], kind="does not look at the team"),
        "blind_estimator_audit_error": Number(arms[BLIND]["audit_error"], kind="does not look at the team"),
    }


def _actions(data: dict[str, Any]) -> dict[str, Number]:
    ratios = [action["ratio"] for action in data["actions"] if action["target"] is not None]
    if not ratios:
        return {}
    kind = f"mean and range of {len(ratios)} teams"
    return {"environment_over_controlled": Number(statistics.fmean(ratios), min(ratios), max(ratios), kind=kind)}


def _costs(data: dict[str, Any], scale: Scale) -> dict[str, Number]:
    found = {"published_metric_share": Number(data["published"]["share"], kind="from the paper's times")}
    if scale is Scale.SMOKE:
        return found
    edges, trials = data["edges"], data["timed"]["trials"]
    reach = 2.58 * edges["sem"]
    kind = f"99% interval, {edges['graphs']:,} graphs"
    found["mean_edges"] = Number(edges["mean"], edges["mean"] - reach, edges["mean"] + reach, kind=kind)
    loop = speedups(data["timed"], "loop")[BERNOULLI]
    found["loop_metric_speedup"] = Number(**loop, unit="x", kind=f"ratio of medians, range of {trials['loop']} trials")
    found |= _estimate_share(data)
    fused = data["metric_speedups"].get(BERNOULLI, {}) if scale is Scale.PAPER else {}
    if fused:
        values = list(fused.values())
        kind = f"in training, median and range of {_targets(data, values)}"
        found["fused_metric_speedup"] = Number(statistics.median(values), min(values), max(values), "x", kind)
    elif scale is not Scale.PAPER:
        call = speedups(data["timed"], "fused")[BERNOULLI]
        found["fused_metric_speedup"] = Number(
            **call, unit="x", kind=f"calls by themselves, range of {trials['fused']} trials"
        )
    return found


def _estimate_share(data: dict[str, Any]) -> dict[str, Number]:
    """On a CPU; and from training where a run showed whole minibatches to its estimator."""
    step = data["step"]
    low, high = sorted((step["share"], step["arithmetic"]))
    kind = "measured on a CPU, and counted in multiplications"
    found = {"estimate_share": Number(step["share"], low, high, kind=kind)}
    whole = [entry for entry in data["beside"] if entry["everything"]]
    if whole:
        parts = [entry["parts"] for entry in whole]
        shares = [share(part["policies"] + part["distances"], part["update"]) for part in parts]
        kind = f"two estimates a step, from {len(shares)} runs"
        found["estimate_share_in_training"] = Number(statistics.median(shares), min(shares), max(shares), kind=kind)
    return found


def _by_target(
    cells: Sequence[dict[str, Any]], value: Callable[[dict[str, Any], dict[str, Any]], float]
) -> list[float]:
    """Of Bernoulli and full at every target where both are there."""
    both = [{cell["target"]: cell for cell in cells if cell["arm"] == arm} for arm in BOTH]
    return [value(both[0][target], both[1][target]) for target in both[0] if target in both[1]]


def _complete(data: dict[str, Any]) -> bool:
    """Whether both of the paper's arms have all their runs."""
    done = [run for run in data["runs"] if run["arm"] in BOTH and run["target"] is not None]
    return len(done) == len(BOTH) * data["wanted_targets"] * data["wanted_seeds"]


def _targets(data: dict[str, Any], found: Sequence[Any]) -> str:
    """How many targets, and of how many where some are missing."""
    count, wanted = len(found), data["wanted_targets"]
    return f"{count} targets" if count == wanted else f"{count} of {wanted} targets"


def _cells(data: dict[str, Any], found: Sequence[Any]) -> str:
    """How many arms and targets of the paper, and of how many where some are missing."""
    count, wanted = len(found), len(BOTH) * data["wanted_targets"]
    return f"{count} cells" if count == wanted else f"{count} of {wanted} cells"
