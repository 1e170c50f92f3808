"""The numbers that claims about guarantees are held against: forwarding index, eigenvalues, bounds that must hold."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping

from paper.expanders.families import Family
from paper.expanders.ratios import Row
from paper.expanders.rows import Rows, cells_of, median, of, rms
from paper.experiment import Number

SLACK = 1e-9  # of a bound, for rounding
BASELINES = (Family.BERNOULLI, Family.UNIFORM, Family.KNN, Family.UNION)


def small_numbers(small: Mapping[str, float]) -> dict[str, Number]:
    """Of the graphs whose index is known by hand."""
    return {
        "forwarding_complete": Number(small["complete"]),
        "ordered_over_true_c5": Number(small["ring_5_ordered"] / small["ring_5"], unit="x"),
        "fractional_over_integral_c4": Number(small["ring_4_fractional"] / small["ring_4"]),
    }


def violations(rows: Rows) -> dict[str, Number]:
    """How often a bound does not hold, and how many graphs the theorem says nothing about."""
    checks = {
        "distortion_violations": ([_distorted(row) for row in rows], "connected graphs with a certified index"),
        "spectral_violations": ([_beyond(row, row.spectral) for row in rows], "regular graphs"),
        "probabilistic_violations": ([_beyond(row, row.probabilistic) for row in _regular(rows)], "graphs"),
        "finite_probabilistic_violations": (
            [_beyond(row, row.probabilistic_finite) for row in _regular(rows)],
            "graphs",
        ),
    }
    found = {}
    for name, (outcomes, what) in checks.items():
        decided = [outcome for outcome in outcomes if outcome is not None]
        found[name] = Number(sum(decided), kind=f"of {len(decided)} {what}")
    apart = [row for row in rows if not row.connected]
    kinds = ", ".join(f"{len(of(apart, family))} {family.value}" for family in Family if of(apart, family))
    found["disconnected_graphs"] = Number(len(apart), kind=f"of {len(rows)}" + (f": {kinds}" if kinds else ""))
    return found


def spectral(rows: Rows) -> dict[str, Number]:
    """How the spectral bound and its factor change from 50 to 500 agents, and how far it is from what happens."""
    least = {n: [row for row in _regular(rows, n=n) if row.asked_degree == math.ceil(math.log2(n))] for n in (50, 500)}
    rho = {n: median(mine, "rho") for n, mine in least.items()}
    bound = {n: median(mine, "spectral") for n, mine in least.items()}
    groups = [_regular(rows, n=n, degree=degree) for n, degree in cells_of(rows)]
    over = [median(mine, "spectral") / rms(mine) for mine in groups]
    return {
        "rho_growth": Number(rho[500] / rho[50], kind=f"from {rho[50]:.4g} to {rho[500]:.4g}"),
        "spectral_bound_growth": Number(bound[500] / bound[50], kind=f"from {bound[50]:.3g} to {bound[500]:.3g}"),
        "spectral_over_observed": Number(
            statistics.median(over), min(over), max(over), "x", f"range of {len(over)} sizes and degrees"
        ),
    }


def scaling(rows: Rows) -> dict[str, Number]:
    """Largest over smallest of index d / (n log2 n), regular graphs; the ends from the certified bounds of both."""
    above, below = [], []
    for n, degree in cells_of(rows):
        mine = _routed(_regular(rows, n=n, degree=degree))
        if not mine:
            return {}
        unit = n * math.log2(n) / degree
        above.append(median(mine, "integral_upper") / unit)
        below.append(median(mine, "integral_lower") / unit)
    ends = max(below) / min(above), max(above) / min(below)
    kind = f"certified; index d / (n log2 n) is {min(above):.3g} to {max(above):.3g}"
    return {"forwarding_scaled_spread": Number(max(above) / min(above), *ends, "x", kind)}


def baselines(rows: Rows, n: int = 500) -> dict[str, Number]:
    """The index of other families over that of regular graphs, medians over connected graphs.

    And the same ratio of loads split equally over shortest paths, which the paper's code takes for the index: there
    the crowding of a badly connected graph is not spread over its longer paths.
    """
    found, split = [], []
    for name, mine, regular in _against_regular(rows, n):
        upper = median(regular, "integral_upper")
        ends = (
            median(mine, "integral_lower") / upper,
            median(mine, "integral_upper") / median(regular, "integral_lower"),
        )
        found.append(Number(median(mine, "integral_upper") / upper, *ends, "x", f"certified; {name}"))
        split.append(Number(median(mine, "betweenness") / median(regular, "betweenness"), unit="x", kind=name))
    if not found:
        return {}
    return {
        f"baseline_over_regular_smallest_n{n}": min(found, key=lambda one: one.value),
        f"baseline_over_regular_largest_n{n}": max(found, key=lambda one: one.value),
        f"equal_split_over_regular_largest_n{n}": max(split, key=lambda one: one.value),
    }


def _against_regular(rows: Rows, n: int) -> Iterator[tuple[str, Rows, Rows]]:
    for size, degree in cells_of(rows):
        regular = _routed(_regular(rows, n=n, degree=degree))
        for family in BASELINES if size == n and regular else ():
            mine = _routed(of(rows, family, n=n, degree=degree))
            if mine:
                yield f"{family.value}, d = {degree}", mine, regular


def _regular(rows: Rows, **where: int) -> list[Row]:
    return of(rows, Family.REGULAR, **where)


def _routed(rows: Rows) -> list[Row]:
    return [row for row in rows if row.integral_upper is not None]


def _distorted(row: Row) -> bool | None:
    """Whether the theorem fails, in its sharper form; None where there is no index or no ratio."""
    if row.distortion_low is None or row.distortion_high is None or row.reciprocal is None:
        return None
    return not row.distortion_low * (1 - SLACK) <= row.reciprocal <= row.distortion_high * (1 + SLACK)


def _beyond(row: Row, bound: float | None) -> bool | None:
    """Whether the relative deviation exceeds a bound."""
    if bound is None or row.ratio is None:
        return None
    return abs(row.ratio - 1) > bound * (1 + SLACK)
