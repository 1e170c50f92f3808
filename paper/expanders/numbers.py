"""The numbers that claims about expanders are held against: how close Graph-SND is to SND, and for whom."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping

from paper.expanders.families import FOUR, SIZES, Family
from paper.expanders.guarantees import baselines, scaling, small_numbers, spectral, violations
from paper.expanders.rows import Rows, cells_of, difference, of, rms
from paper.experiment import Number


def numbers(teams: Mapping[str, Rows], small: Mapping[str, float]) -> dict[str, Number]:
    """Everything that these rows decide; what needs a size that was not measured is left out.

    Args:
        teams: Rows by the label of the team, see :mod:`paper.expanders.run`.
        small: From :func:`~paper.expanders.small.small_graphs`.
    """
    initial, own = teams["initial"], teams["initial-own"]
    shared = [row for label, rows in teams.items() if "own" not in label for row in rows]
    found = {**small_numbers(small), **violations(shared), "knn_edges_over_matched": _edges(initial)}
    found["regular_over_uniform_sd"] = exact_advantage(initial)
    if {row.n for row in initial} >= set(SIZES):
        found |= {**_close(initial), **spectral(initial), **scaling(initial), **baselines(initial)}
        found["own_observation_ratio_deviation"] = deviation(of(own, Family.REGULAR))
        found["own_observation_over_uniform_sd"] = exact_advantage(own)
        found["own_observation_tightest_share"] = _tightest_share(own)
        found |= _trained(teams)
    return found


def deviation(rows: Rows) -> Number:
    """The largest distance of the ratio from 1; the range of the ratio itself is said in words."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    far = [abs(ratio - 1) for ratio in ratios]
    kind = f"range of {len(ratios)} graphs; ratios {min(ratios):.4f} to {max(ratios):.4f}"
    return Number(max(far), min(far), max(far), kind=kind)


def exact_advantage(rows: Rows) -> Number:
    """Exact standard deviations of the ratio: regular graphs over uniform samples of as many pairs, the largest."""
    ratios = [row.predicted / row.sampled for row in of(rows, Family.REGULAR) if row.predicted and row.sampled]
    return Number(max(ratios), min(ratios), max(ratios), kind=f"range of {len(cells_of(rows))} sizes and degrees")


def tightest(rows: Rows, **where: int) -> bool:
    """Whether regular graphs have the least rms deviation of the paper's four families."""
    spreads = {family: rms(of(rows, family, **where)) for family in FOUR}
    return min(spreads, key=lambda family: spreads[family]) is Family.REGULAR


def _tightest_share(rows: Rows) -> Number:
    cells = cells_of(rows)
    wins = sum(tightest(rows, n=n, degree=degree) for n, degree in cells)
    return Number(wins / len(cells), kind=f"{wins} of {len(cells)} sizes and degrees")


def _close(rows: Rows) -> dict[str, Number]:
    cells = cells_of(rows)
    least = [of(rows, Family.REGULAR, n=n, degree=min(d for m, d in cells if m == n))[0] for n in SIZES]
    points = [(math.log(row.n), math.log(row.predicted)) for row in least if row.predicted]
    slope = statistics.linear_regression(*zip(*points, strict=True)).slope
    return {
        "regular_ratio_deviation": deviation(of(rows, Family.REGULAR)),
        "regular_ratio_deviation_n500_d9": deviation(of(rows, Family.REGULAR, n=500, degree=9)),
        "regular_tightest_share": _tightest_share(rows),
        "ratio_spread_exponent": Number(slope, kind=f"least squares, {len(points)} sizes"),
    }


def _edges(rows: Rows) -> Number:
    shares = [row.edges / (row.n * row.degree / 2) for row in of(rows, Family.UNION)]
    return Number(max(shares), min(shares), max(shares), "x", f"range of {len(shares)} sizes and degrees")


def _trained(teams: Mapping[str, Rows]) -> dict[str, Number]:
    noise = [row for label, rows in teams.items() if label.startswith("trained-own") for row in rows]
    shared = [rows for label, rows in teams.items() if label.startswith("trained-") and "own" not in label]
    if not shared:
        return {}
    rows = [row for team in shared for row in team]
    wins = sum(tightest(rows, degree=degree) for _, degree in cells_of(rows))
    before = difference(of(teams["initial"], Family.REGULAR, n=rows[0].n))
    growth = [difference(of(team, Family.REGULAR)) / before for team in shared]
    pooled = difference(of(rows, Family.REGULAR)) / before
    many = f"{len(shared)} teams"
    return {
        "trained_ratio_deviation": deviation(of(rows, Family.REGULAR)),
        "trained_tightest_degrees": Number(wins, kind=f"of {len(cells_of(rows))} degrees, {many} together"),
        "trained_over_synthetic_difference": Number(pooled, min(growth), max(growth), "x", f"range of {many}"),
        "trained_over_uniform_sd": exact_advantage(rows),
        "trained_own_noise_ratio_deviation": deviation(of(noise, Family.REGULAR)),
    }
