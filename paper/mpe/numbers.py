"""The numbers of the simple_spread panel that claims are held against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from paper.experiment import Number
from paper.mpe.panel import ESTIMATORS, THRESHOLD

SAMPLED = tuple(one.name for one in ESTIMATORS if one.p is not None)


def numbers(data: dict[str, Any]) -> dict[str, Number]:
    """From what the experiment wrote down."""
    rows = data["panel"]
    return {
        **_violations(rows),
        **_biases(rows),
        **_bounds(rows),
        **_speedups(data["times"]),
        "disconnected_share_regular_2": _disconnected(rows),
        "snd_trained": _over_seeds([row["snd"] for row in select(rows, "trained", "rollout", SAMPLED[0])]),
        "snd_trained_noise": _over_seeds([row["snd"] for row in select(rows, "trained", "noise", SAMPLED[0])]),
        "rmse_over_exact": _rmse(rows),
    }


def select(
    rows: Sequence[dict[str, Any]], regime: str | None = None, protocol: str | None = None, estimator: str | None = None
) -> list[dict[str, Any]]:
    """Rows of the panel; None for all."""
    wanted = {"regime": regime, "protocol": protocol, "estimator": estimator}
    return [row for row in rows if all(value is None or row[key] == value for key, value in wanted.items())]


def _violations(rows: Sequence[dict[str, Any]]) -> dict[str, Number]:
    found = {}
    for short, protocol in (("noise", "noise"), ("real", "rollout")):
        for one in ESTIMATORS:
            shares = [row["violations"] for row in select(rows, "trained", protocol, one.name)]
            found[f"{short}_violation_{one.name}"] = _over_seeds(shares)
        found[f"{short}_violation_initial"] = _largest(select(rows, "random-init", protocol), "violations")
    above, below = (found[f"{short}_violation_{SAMPLED[0]}"] for short in ("real", "noise"))
    if below.value:
        found["real_over_noise_violation"] = Number(above.value / below.value, kind="means over seeds")
    return found


def _biases(rows: Sequence[dict[str, Any]]) -> dict[str, Number]:
    found = {}
    for short, protocol in (("noise", "noise"), ("real", "rollout")):
        for one in ESTIMATORS:
            found[f"{short}_bias_{one.name}"] = _bias(select(rows, "trained", protocol, one.name))
        found[f"{short}_bias_initial"] = _bias(select(rows, "random-init", protocol))
        scores = [abs(row["bias"]) / row["bias_error"] for row in select(rows, None, protocol) if row["bias_error"]]
        found[f"{short}_largest_z"] = Number(max(scores), kind=f"largest of {len(scores)}")
    return found


def _bias(rows: Sequence[dict[str, Any]]) -> Number:
    """The largest absolute bias, with the 95% interval of that one."""
    row = max(rows, key=lambda one: abs(one["bias"]))
    size, reach = abs(row["bias"]), 1.96 * row["bias_error"]
    return Number(size, max(0.0, size - reach), size + reach, kind=f"largest of {len(rows)}, its 95% interval")


def _bounds(rows: Sequence[dict[str, Any]]) -> dict[str, Number]:
    radii = [row["radius"] / THRESHOLD for row in select(rows, "trained", "noise")]
    kind = f"range of {len(radii)} trained teams and graphs"
    return {
        "hoeffding_violation": _largest(rows, "hoeffding_violations_largest"),
        "radius_over_threshold": Number(min(radii), min(radii), max(radii), kind=kind),
    }


def _speedups(times: dict[str, Any]) -> dict[str, Number]:
    """The loop in the paper's setting, one observation; the fused calls on rollouts, where there is work to do.

    And the other way round, with the protocol at the end of the name.
    """
    found = {}
    for way, usual, other in (("loop", "noise", "rollout"), ("fused", "rollout", "noise")):
        for protocol, ending in ((usual, ""), (other, f"_{'real' if other == 'rollout' else other}")):
            for one in ESTIMATORS:
                ratio = times[protocol][f"{way}, {one.name}"]["speedup"]
                number = Number(ratio["value"], ratio["low"], ratio["high"], "x", ratio["kind"])
                found[f"{way}_speedup_{one.name}{ending}"] = number
    return found


def _disconnected(rows: Sequence[dict[str, Any]]) -> Number:
    # The same graphs serve all teams of a seed.
    found = select(rows, "trained", "rollout", "regular_2")
    share, draws = statistics.fmean(row["disconnected"] for row in found), sum(row["draws"] for row in found)
    reach = 1.96 * math.sqrt(share * (1 - share) / draws)
    return Number(share, max(0.0, share - reach), min(1.0, share + reach), kind=f"95% interval, {draws} graphs")


def _rmse(rows: Sequence[dict[str, Any]]) -> Number:
    ratios = [row["rmse"] / row["exact_rmse"] for row in rows if row["exact_rmse"]]
    return Number(statistics.fmean(ratios), min(ratios), max(ratios), kind=f"range of {len(ratios)} cells")


def _largest(rows: Sequence[dict[str, Any]], key: str) -> Number:
    values = [row[key] for row in rows]
    return Number(max(values), min(values), max(values), kind=f"range of {len(values)} cells")


def _over_seeds(values: Sequence[float]) -> Number:
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Number(mean, kind="one seed")
    return Number(mean, min(values), max(values), kind=f"range of {len(values)} seeds")
