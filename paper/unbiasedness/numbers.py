"""The numbers of the unbiasedness experiment that claims are held against."""

from __future__ import annotations

import math
from typing import Any

from scipy import stats

from paper.experiment import Number

Z95 = 1.96


def numbers(teams: list[dict[str, Any]]) -> dict[str, Number]:
    """What claims are held against, with tests of all cells together.

    Args:
        teams: Of both checkpoints, as :func:`~paper.unbiasedness.run` leaves them in its data.
    """
    cells = [cell for team in teams for cell in team["cells"]]
    z, long = ([abs(cell["z"]) for cell in each] for each in (cells, [cell["long"] for cell in cells]))
    # Unbiased for every team means that every pair comes up with probability p: one term for each pair and cell.
    pairs_seen = len(teams[0]["distances"]) * len(cells)
    inclusion = float(stats.chi2.sf(sum(cell["inclusion_chi2"] for cell in cells), pairs_seen))
    ratios = [cell["variance_ratio"] for cell in cells]
    kind = f"range of {len(cells)} cells"
    return {
        "covering_cells": Number(sum(value <= Z95 for value in z)),
        "largest_z": Number(max(z), min(z), max(z), kind=kind),
        "joint_p": Number(_joint(z)),
        "pooled_z": Number(_pooled(cells)),
        "inclusion_p": Number(inclusion),
        "long_largest_z": Number(max(long), min(long), max(long), kind=kind),
        "long_joint_p": Number(_joint(long)),
        "long_pooled_z": Number(_pooled([cell["long"] for cell in cells])),
        "variance_times_p_ratio": _variance_times_p(teams),
        "variance_ratio": Number(sum(ratios) / len(ratios), min(ratios), max(ratios), kind=kind),
        "enumerated_bias": Number(max(team["enumerated_bias"] for team in teams)),
        "cancellation_error": Number(max(cell["cancellation_error"] for cell in cells)),
        "direct_difference": Number(max(cell["direct_difference"] for cell in cells)),
    }


def _variance_times_p(teams: list[dict[str, Any]]) -> Number:
    """How p Var at the largest p compares with that at the smallest, variances in units of each team's exact ones."""
    probabilities = [cell["p"] for cell in teams[0]["cells"]]
    low, high = min(probabilities), max(probabilities)

    def pooled(p: float) -> tuple[float, float]:
        mine = [cell for team in teams for cell in team["cells"] if cell["p"] == p]
        mean = sum(cell["variance_ratio"] for cell in mine) / len(mine)
        return mean, math.sqrt(sum(cell["variance_ratio_error"] ** 2 for cell in mine)) / len(mine) / mean

    (first, first_error), (last, last_error) = pooled(low), pooled(high)
    # p times the exact variance is (1 - p) times what does not depend on p.
    value = last * (1 - high) / (first * (1 - low))
    half = Z95 * value * math.hypot(first_error, last_error)
    return Number(value, value - half, value + half, kind="95% interval")


def _joint(z: list[float]) -> float:
    """How likely deviations this large are, all cells together, without a bias.

    Cells are drawn independently, so that the squares add up to a chi-square variable.
    """
    return float(stats.chi2.sf(sum(value**2 for value in z), len(z)))


def _pooled(cells: list[dict[str, Any]]) -> float:
    """A standard normal value without a bias, and a large one where all cells are off in the same direction."""
    return sum(cell["z"] for cell in cells) / math.sqrt(len(cells))
