"""Two arms in pairs of runs with the same seed and target."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphsnd.errors import InputError

REFERENCE = "full"


@dataclass(frozen=True)
class Paired:
    """Differences of rewards between two arms, each pair with the same seed and target."""

    differences: list[float]
    mean: float
    sem: float | None  # None for one pair
    low: float | None  # of the 95% t interval
    high: float | None
    sign_p: float | None  # of the exact two-sided sign test; None when all differences are 0


def paired(differences: Sequence[float], *, delta: float = 0.05) -> Paired:
    r"""Mean difference with its t interval, and the exact sign test.

    .. math:: \bar x \pm t_{k-1, 1-\delta/2} \, s / \sqrt k, \qquad
        p = \min\left(1, 2 \sum_{j \le \min(k_+, k_-)} \binom{k_+ + k_-}{j} 2^{-(k_+ + k_-)}\right)

    Cells of one seed share networks and episodes, so the interval takes more for granted than it should.

    Args:
        differences: One for each pair.
        delta: Chance of a miss of the interval, under normal differences.

    Example:
        >>> found = paired([1.0, 2.0, 3.0])
        >>> found.mean, round(found.low, 3), found.sign_p
        (2.0, -0.484, 0.25)
    """
    from scipy.stats import binomtest, t

    if not differences:
        raise InputError("differences", "to be at least one", "none")
    mean, error = statistics.fmean(differences), sem(differences)
    reach = None if error is None else float(t.ppf(1 - delta / 2, len(differences) - 1)) * error
    signs = [value > 0 for value in differences if value]
    p = float(binomtest(sum(signs), len(signs)).pvalue) if signs else None
    low, high = (None, None) if reach is None else (mean - reach, mean + reach)
    return Paired([float(value) for value in differences], mean, error, low, high, p)


def against(runs: Sequence[dict[str, Any]], arm: str, reference: str = REFERENCE) -> dict[str, Any] | None:
    """Rewards of an arm less those of another, ready for JSON; a run without target meets all targets of its seed.

    Args:
        runs: From :func:`late`.
        arm: Which.
        reference: Less which.

    Returns:
        ``cells``, the (target, seed) of each pair, and the fields of :class:`Paired`; ``by_seed``, the same of every
        seed's mean difference, which are independent; None without a pair.
    """
    mine = [run for run in runs if run["arm"] == arm]
    theirs = [run for run in runs if run["arm"] == reference]
    pairs = [
        (one, other)
        for one in mine
        for other in theirs
        if one["seed"] == other["seed"] and one["target"] in (None, other["target"])
    ]
    if not pairs:
        return None
    cells = [[other["target"], other["seed"]] for _, other in pairs]
    apart = [one["reward"] - other["reward"] for one, other in pairs]
    seeds = [
        [d for d, cell in zip(apart, cells, strict=True) if cell[1] == seed] for seed in {seed for _, seed in cells}
    ]
    by_seed = vars(paired([statistics.fmean(mine) for mine in seeds]))
    return {"arm": arm, "reference": reference, "cells": cells, **vars(paired(apart)), "by_seed": by_seed}


def same_start(runs: Sequence[dict[str, Any]], arm: str, reference: str = REFERENCE) -> dict[str, float] | None:
    """Largest differences between matched runs in the first and in the second iteration; None without a pair."""
    other = {(run["target"], run["seed"]): run for run in runs if run["arm"] == reference}
    pairs = [(run, other[key]) for run in runs if run["arm"] == arm and (key := (run["target"], run["seed"])) in other]
    pairs = [(a, b) for a, b in pairs if min(len(a["first_rewards"]), len(b["first_rewards"])) == 2]
    if not pairs:
        return None
    return {
        f"{name}_{place + 1}": max(abs(a[f"first_{name}"][place] - b[f"first_{name}"][place]) for a, b in pairs)
        for name in ("rewards", "audits")
        for place in (0, 1)
    }


def sem(values: Sequence[float]) -> float | None:
    """Standard error of a mean; None for a single value.

    Example:
        >>> sem([1.0, 3.0]), sem([1.0])
        (1.0, None)
    """
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
