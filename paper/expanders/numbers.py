"""The numbers of the ablation: how close Graph-SND is to SND, for which teams, and whether the bounds hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from paper.expanders.comparison import Data, Row, select, sizes_and_degrees
from paper.expanders.families import AS_PUBLISHED, FOUR, SIZES, Family, degrees
from paper.experiment import Number

SLACK = 1e-9  # tolerance of a bound, for rounding
BASELINES = (Family.BERNOULLI, Family.UNIFORM, Family.KNN, Family.UNION)
Rows = Sequence[Row]


def summarise(data: Data) -> dict[str, Number | None]:
    """Return all numbers of these rows; those that need a size that was not measured are left out."""
    small, initial, own = data.small, data.rows(trained=False, own=False), data.rows(trained=False, own=True)
    shared = [row for team in data.teams if not team.own for row in team.rows]
    union = [row.edges / (row.n * row.degree / 2) for row in select(initial, Family.UNION)]
    whole: dict[str, Number] = {}
    if {row.n for row in initial} >= set(SIZES):
        whole = {**_closeness(initial), **_spectral(initial), **scaling(initial), **baselines(initial)}
        whole |= {f"own_{name}": number for name, number in _closeness(own).items()}
        whole |= _trained_numbers(data, own=False)
        whole |= {f"own_{name}": number for name, number in _trained_numbers(data, own=True).items()}
    return {
        "forwarding_complete": Number(small.complete),
        "ordered_over_true_c5": Number(small.ring_5_ordered / small.ring_5, unit="x"),
        "fractional_over_integral_c4": Number(small.ring_4_fractional / small.ring_4),
        "knn_edges_over_matched": Number.range(union, "sizes and degrees", unit="x"),
        "regular_over_uniform_sd": _exact_advantage(initial),
        **violations(shared),
        **whole,
    }


def violations(rows: Rows) -> dict[str, Number]:
    """Return how often a bound does not hold."""
    regular = select(rows, Family.REGULAR)
    checks = {
        "distortion_violations": ([_distorted(row) for row in rows], "connected graphs with a certified index"),
        "spectral_violations": ([_exceeds(row, row.spectral) for row in rows], "regular graphs"),
        "probabilistic_violations": ([_exceeds(row, row.probabilistic) for row in regular], "graphs"),
    }
    counts = {}
    for name, (outcomes, what) in checks.items():
        decided = [outcome for outcome in outcomes if outcome is not None]
        counts[name] = Number(sum(decided), kind=f"of {len(decided)} {what}")
    return counts


def _distorted(row: Row) -> bool | None:
    """Return whether the theorem fails, in its sharper form; None without an index or a ratio."""
    if row.distortion_low is None or row.distortion_high is None or row.reciprocal is None:
        return None
    return not row.distortion_low * (1 - SLACK) <= row.reciprocal <= row.distortion_high * (1 + SLACK)


def _exceeds(row: Row, bound: float | None) -> bool | None:
    """Return whether the relative deviation exceeds a bound."""
    return None if bound is None or row.ratio is None else abs(row.ratio - 1) > bound * (1 + SLACK)


def _closeness(rows: Rows) -> dict[str, Number]:
    regular = select(rows, Family.REGULAR)
    least = [select(regular, n=n, degree=degrees(n)[0])[0] for n in SIZES]
    points = [(math.log(row.n), math.log(row.predicted)) for row in least if row.predicted]
    slope = statistics.linear_regression(*zip(*points, strict=True)).slope
    return {
        "regular_ratio_deviation": _deviation(regular),
        "regular_ratio_deviation_n500_d9": _deviation(select(regular, n=500, degree=9)),
        "regular_tightest": _count_tightest(rows, "sizes and degrees"),
        "ratio_spread_exponent": Number(slope, kind=f"least squares, {len(points)} sizes"),
    }


def _deviation(rows: Rows) -> Number:
    """Return the largest distance of the ratio from 1; the number's ``kind`` gives the range of the ratio itself."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    far = [abs(ratio - 1) for ratio in ratios]
    kind = f"range of {len(ratios)} graphs; ratios {min(ratios):.4f} to {max(ratios):.4f}"
    return Number(max(far), min(far), max(far), kind=kind)


def _exact_advantage(rows: Rows) -> Number:
    """Return the ratio of exact standard deviations: regular graphs over uniform samples of as many pairs."""
    ratios = [row.predicted / row.sampled for row in select(rows, Family.REGULAR) if row.predicted and row.sampled]
    kind = f"range of {len(sizes_and_degrees(rows))} sizes and degrees"
    return Number(max(ratios), min(ratios), max(ratios), kind=kind)


def is_tightest(rows: Rows, families: Sequence[Family] = FOUR) -> bool:
    """Return whether regular graphs have the smallest rms deviation of four families."""
    spreads = {family: _rms_deviation(select(rows, family)) for family in families}
    return min(spreads, key=lambda family: spreads[family]) is Family.REGULAR


def _count_tightest(rows: Rows, what: str) -> Number:
    groups = [select(rows, n=n, degree=degree) for n, degree in sizes_and_degrees(rows)]
    wins, others = (sum(is_tightest(group, four) for group in groups) for four in (FOUR, AS_PUBLISHED))
    return Number(wins, kind=f"of {len(groups)} {what}; {others} beside all nearest neighbours, which are more edges")


def _spectral(rows: Rows) -> dict[str, Number]:
    """Return how the spectral bound and its factor change from 50 to 500 agents, and how loose the bound is."""
    regular = select(rows, Family.REGULAR)
    least = {n: select(regular, n=n, degree=degrees(n)[0]) for n in (50, 500)}
    rho, bound = ({n: _median(mine, key) for n, mine in least.items()} for key in ("rho", "spectral"))
    groups = [select(regular, n=n, degree=degree) for n, degree in sizes_and_degrees(rows)]
    over = [_median(mine, "spectral") / _rms_deviation(mine) for mine in groups]
    return {
        "rho_growth": Number(rho[500] / rho[50], kind=f"from {rho[50]:.4g} to {rho[500]:.4g}"),
        "spectral_bound_growth": Number(bound[500] / bound[50], kind=f"from {bound[50]:.3g} to {bound[500]:.3g}"),
        "spectral_over_observed": Number.range(over, "sizes and degrees", pick=statistics.median, unit="x"),
    }


def scaling(rows: Rows) -> dict[str, Number]:
    """Return the largest over the smallest index d / (n log2 n) of regular graphs; the ends use certified bounds."""
    above, below = [], []
    for n, degree in sizes_and_degrees(rows):
        mine = _routed(rows, Family.REGULAR, n, degree)
        if not mine:
            return {}
        unit = n * math.log2(n) / degree
        above.append(_median(mine, "integral_upper") / unit)
        below.append(_median(mine, "integral_lower") / unit)
    # The true ratio lies between these ends for any indices within their certified bounds.
    ends = max(below) / min(above), max(above) / min(below)
    kind = f"certified; index d / (n log2 n) is {min(above):.3g} to {max(above):.3g}"
    return {"forwarding_scaled_spread": Number(max(above) / min(above), *ends, "x", kind)}


def baselines(rows: Rows, n: int = 500) -> dict[str, Number]:
    """Return the index of other families over that of regular graphs, medians over connected graphs."""
    index = {}
    for degree in sorted({row.degree for row in rows if row.n == n}):
        regular = _routed(rows, Family.REGULAR, n, degree)
        for family in BASELINES if regular else ():
            mine = _routed(rows, family, n, degree)
            if mine:
                upper, lower = (_median(regular, key) for key in ("integral_upper", "integral_lower"))
                low, high = _median(mine, "integral_lower") / upper, _median(mine, "integral_upper") / lower
                kind = f"certified; {family.value}, d = {degree}"
                index[family, degree] = Number(_median(mine, "integral_upper") / upper, low, high, "x", kind)
    if not index:
        return {}
    return {
        f"baseline_over_regular_smallest_n{n}": min(index.values(), key=lambda one: one.value),
        f"baseline_over_regular_largest_n{n}": max(index.values(), key=lambda one: one.value),
        **{f"union_over_regular_n{n}_d{d}": one for (family, d), one in index.items() if family is Family.UNION},
    }


def _trained_numbers(data: Data, *, own: bool) -> dict[str, Number]:
    teams = [select(team.rows, Family.REGULAR) for team in data.teams if team.trained and team.own == own]
    if not teams:
        return {}
    rows = data.rows(trained=True, own=own)
    before = _rms_difference(select(data.rows(trained=False, own=own), Family.REGULAR, n=rows[0].n))
    growth = [_rms_difference(team) / before for team in teams]
    # All teams together: a mean of ratios would weigh a team of small differences as much as the others.
    pooled = _rms_difference(select(rows, Family.REGULAR)) / before
    many = f"{len(teams)} teams"
    return {
        "trained_ratio_deviation": _deviation(select(rows, Family.REGULAR)),
        "trained_tightest_degrees": _count_tightest(rows, f"degrees, {many} together"),
        "trained_over_synthetic_difference": Number(pooled, min(growth), max(growth), "x", f"range of {many}"),
    }


def _routed(rows: Rows, family: Family, n: int, degree: int) -> list[Row]:
    return [row for row in select(rows, family, n=n, degree=degree) if row.integral_upper is not None]


def _rms_deviation(rows: Rows) -> float:
    """Return the root mean square of the ratio's distance from 1."""
    return math.sqrt(statistics.fmean((row.ratio - 1) ** 2 for row in rows if row.ratio is not None))


def _rms_difference(rows: Rows) -> float:
    """Return the root mean square of Graph-SND - SND."""
    return math.sqrt(statistics.fmean(row.difference**2 for row in rows))


def _median(rows: Rows, column: str) -> float:
    """Return the median of a column over the rows that have it."""
    return statistics.median(value for row in rows if (value := getattr(row, column)) is not None)
