"""The numbers of the concentration experiment that claims are held against."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy import stats

from paper.experiment import Number

Z95 = 1.96


def slope(team: dict[str, Any], *, adjusted: bool = False) -> tuple[float, float]:
    """Slope of the log of the 95th percentile against log m, and its standard error.

    Args:
        team: One of the teams of the data.
        adjusted: Whether percentiles are divided by sqrt(1 - m/N) first.
    """
    cells, total = team["cells"], len(team["distances"])
    x = np.log([cell["m"] for cell in cells])
    y = np.log([cell["quantile"] for cell in cells])
    if adjusted:
        y -= np.log([1 - cell["m"] / total for cell in cells]) / 2
    errors = np.asarray([math.log(cell["quantile_high"] / cell["quantile_low"]) for cell in cells]) / (2 * Z95)
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    return float(weights @ y), float(np.sqrt((weights**2) @ errors**2))


def numbers(data: dict[str, Any]) -> dict[str, Number]:
    """What claims are held against."""
    teams, draws = data["teams"], data["draws"]
    cells = [cell for team in teams for cell in team["cells"]]
    ratios = [cell["serfling"] / cell["hoeffding"] for cell in teams[0]["cells"]]
    used = [cell["quantile"] / cell["serfling"] for cell in cells]
    excess = [one["beyond"] - one["allowed"] for team in teams for one in team["bernoulli"]]
    found = {
        "hoeffding_violation": _violation([cell["hoeffding_violations"] for cell in cells], draws),
        "serfling_violation": _violation([cell["serfling_violations"] for cell in cells], draws),
        "serfling_over_hoeffding": Number(max(ratios), min(ratios), max(ratios), kind=f"range of {len(ratios)} sizes"),
        "serfling_gap_growth": Number(min(a - b for a, b in itertools.pairwise(ratios))),
        "empirical_slope": _mean_slope([slope(team) for team in teams]),
        "adjusted_slope": _mean_slope([slope(team, adjusted=True) for team in teams]),
        "empirical_over_serfling": Number(max(used), min(used), max(used), kind=f"range of {len(used)} cells"),
        "bernoulli_violation_excess": Number(
            max(excess), min(excess), max(excess), kind=f"range of {len(excess)} cells"
        ),
        "chernoff_ratio": Number(data["chernoff_ratio"]),
        "direct_difference": Number(max(cell["direct_difference"] for cell in cells)),
    }
    if "enough" in data:
        found["edges_for_ten_percent_share"] = Number(data["enough"]["share"])
    return found


def _violation(counts: list[int], draws: int) -> Number:
    """The largest share of a cell, with the Clopper-Pearson interval of that cell."""
    interval = stats.binomtest(max(counts), draws).proportion_ci(0.95, method="exact")
    kind = f"95% interval of the cell with the most, {draws} draws"
    return Number(max(counts) / draws, float(interval.low), float(interval.high), kind=kind)


def _mean_slope(found: list[tuple[float, float]]) -> Number:
    value = sum(slope for slope, _ in found) / len(found)
    half = Z95 * math.sqrt(sum(error**2 for _, error in found)) / len(found)
    return Number(value, value - half, value + half, kind="95% interval of the mean of two teams")
