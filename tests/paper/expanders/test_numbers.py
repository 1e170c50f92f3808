"""Numbers from rows that are made up, so that every one of them is known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from paper.expanders.comparison import Data, Row, SmallGraphs, TeamRows
from paper.expanders.families import SEEDS, SIZES, Family, degrees
from paper.expanders.numbers import baselines, is_tightest, scaling, summarise, violations

SMALL = SmallGraphs(complete=1.0, ring_5=3.0, ring_5_ordered=6.0, ring_4_fractional=2.0, ring_4=3.0)
OFF = {Family.REGULAR: 0.01, Family.BERNOULLI: 0.02, Family.UNIFORM: -0.03, Family.KNN: -0.1}


def row(
    family: Family, n: int, degree: int, seed: int | None = 0, *, off: float | None = None, snd: float = 2.0
) -> Row:
    """The deviation is OFF, the index n log2 n / d times 0.5, and twice that for all but regular graphs."""
    regular = family is Family.REGULAR
    ratio = 1 + (OFF.get(family, 0.0) if off is None else off)
    pi = n * math.log2(n) / degree * (0.5 if regular else 1.0)
    return Row(
        n=n, degree=degree, family=family.value, seed=seed, edges=n * degree // 2, connected=True,
        integral_lower=0.9 * pi, integral_upper=pi,
        distortion_low=0.5, distortion_high=3.0,
        snd=snd, graph_snd=ratio * snd, ratio=ratio, reciprocal=1 / ratio,
        difference=abs(ratio - 1) * snd, spectral=1.0 if regular else None,
        rho=2.0 if regular else None, probabilistic=0.5 if regular else None,
        predicted=1 / n if regular else None, sampled=2 / n,
    )  # fmt: skip


def whole(sizes: tuple[int, ...] = SIZES, **options: float) -> list[Row]:
    return [
        row(family, n, degree, seed, **options)
        for n in sizes
        for degree in degrees(n)
        for family in Family
        for seed in (SEEDS if family.drawn else (None,))
    ]


@pytest.fixture(scope="module")
def teams() -> list[TeamRows]:
    return [
        TeamRows(False, False, None, tuple(whole())),
        TeamRows(False, True, None, tuple(whole(off=0.001))),
        *(TeamRows(True, False, k, tuple(whole((100,), snd=4.0 + k))) for k in range(2)),
        TeamRows(True, True, 0, tuple(whole((100,), off=0.002))),
    ]


def values(numbers: dict[str, Any]) -> dict[str, float]:
    return {name: number.value for name, number in numbers.items() if number is not None}


def test_known_values(teams: list[TeamRows]) -> None:
    numbers = summarise(Data(tuple(teams), SMALL, 64))
    far, both = numbers["regular_ratio_deviation"], numbers["trained_over_synthetic_difference"]
    assert far is not None
    assert (far.value, far.low, far.high) == pytest.approx((0.01, 0.01, 0.01))
    assert far.kind.endswith("ratios 1.0100 to 1.0100")
    assert both is not None
    assert (both.low, both.high) == pytest.approx((2, 2.5))
    assert both.value == pytest.approx(math.sqrt((2**2 + 2.5**2) / 2))
    known = values(numbers)
    assert known["own_regular_ratio_deviation"] == pytest.approx(0.001)
    assert known["own_trained_ratio_deviation"] == pytest.approx(0.002)
    assert known["regular_tightest"] == 12
    assert known["trained_tightest_degrees"] == 3
    # Nearest neighbours with all their edges are on the spot in these rows.
    assert numbers["regular_tightest"].kind == (
        "of 12 sizes and degrees; 0 beside all nearest neighbours, which are more edges"
    )
    assert known["regular_over_uniform_sd"] == pytest.approx(0.5)
    assert known["ratio_spread_exponent"] == pytest.approx(-1)
    assert known["spectral_over_observed"] == pytest.approx(100)
    assert known["rho_growth"] == known["spectral_bound_growth"] == 1
    assert known["ordered_over_true_c5"] == 2
    assert known["fractional_over_integral_c4"] == pytest.approx(2 / 3)


def test_indices_and_their_certified_ends(teams: list[TeamRows]) -> None:
    spread = scaling(teams[0].rows)["forwarding_scaled_spread"]
    assert (spread.value, spread.low, spread.high) == pytest.approx((1, 0.9, 1 / 0.9))
    indices = baselines(teams[0].rows)
    for name in (f"{one}_n500{two}" for one, two in (
        ("baseline_over_regular_smallest", ""), ("baseline_over_regular_largest", ""), ("union_over_regular", "_d36"),
    )):  # fmt: skip
        assert (indices[name].value, indices[name].low, indices[name].high) == pytest.approx((2, 1.8, 2 / 0.9))


def test_what_was_not_measured_is_left_out(teams: list[TeamRows]) -> None:
    fifty = tuple(TeamRows(False, own, None, tuple(whole((50,)))) for own in (False, True))
    few = values(summarise(Data(fifty, SMALL, 64)))
    assert not {"regular_ratio_deviation", "rho_growth", "forwarding_scaled_spread"} & set(few)
    unrouted = [replace(one, integral_lower=None, integral_upper=None) for one in teams[0].rows]
    assert scaling(unrouted) == {}
    assert baselines(unrouted) == {}
    alone = values(summarise(Data(tuple(teams[:2]), SMALL, 64)))
    assert not any("trained" in name for name in alone)


def test_violations_are_found() -> None:
    good = row(Family.REGULAR, 50, 6)
    beyond = replace(good, ratio=1.6, reciprocal=1 / 1.6)
    far = replace(good, ratio=0.3, reciprocal=1 / 0.3)
    apart = replace(row(Family.BERNOULLI, 50, 6), connected=False, distortion_low=None, distortion_high=None)
    numbers = violations([good, beyond, far, apart])
    counts = {name: number.value for name, number in numbers.items()}
    assert counts == {
        "distortion_violations": 1, "spectral_violations": 0, "probabilistic_violations": 2,
    }  # fmt: skip
    assert numbers["distortion_violations"].kind.startswith("of 3 ")


def test_tightest_can_be_another_family() -> None:
    rows = [row(family, 50, 6, off=off) for family, off in zip(OFF, (0.05, 0.02, 0.03, 0.1), strict=True)]
    assert not is_tightest(rows)
    assert is_tightest([row(family, 50, 6) for family in OFF])
