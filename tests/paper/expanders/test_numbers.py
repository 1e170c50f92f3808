"""Numbers from rows that are made up, so that every one of them is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from paper.expanders.families import SEEDS, SIZES, Family, degrees
from paper.expanders.guarantees import baselines, scaling, violations
from paper.expanders.numbers import numbers, tightest
from paper.expanders.ratios import Row
from paper.judging.claims import load_claims

SMALL = {"complete": 1.0, "ring_5": 3.0, "ring_5_ordered": 6.0, "ring_4_fractional": 2.0, "ring_4": 3.0}
OFF = {Family.REGULAR: 0.01, Family.BERNOULLI: 0.02, Family.UNIFORM: -0.03, Family.KNN: -0.1}


def row(
    family: Family, n: int, degree: int, seed: int | None = 0, *, off: float | None = None, snd: float = 2.0
) -> Row:
    """The deviation is OFF, the index n log2 n / d times 0.5, and twice that for all but regular graphs."""
    regular = family is Family.REGULAR
    ratio = 1 + (OFF.get(family, 0.0) if off is None else off)
    pi = n * math.log2(n) / degree * (0.5 if regular else 1.0)
    return Row(
        n=n, asked_degree=degree, degree=degree, family=family.value, seed=seed, edges=n * degree // 2, connected=True,
        lambda_2=2.0, gap=0.5, ramanujan=regular, forwarding_lower=0.9 * pi, forwarding_upper=pi,
        integral_lower=0.9 * pi, integral_upper=pi, betweenness=3 * pi if regular else 30 * pi,
        distortion_low=0.5, distortion_high=3.0,
        ratio_low=0.5, ratio_high=2.0, snd=snd, graph_snd=ratio * snd, ratio=ratio, reciprocal=1 / ratio,
        difference=abs(ratio - 1) * snd, spectral=1.0 if regular else None, spectral_low=None, spectral_high=None,
        rho=2.0 if regular else None, probabilistic=0.5 if regular else None,
        probabilistic_finite=0.2 if regular else None, nuclear_norm=1.0, largest=3.0, effect_share=0.5,
        predicted=1 / n if regular else None, sampled=2 / n,
    )  # fmt: skip


def whole(sizes: tuple[int, ...] = SIZES, **options: float) -> list[Row]:
    return [
        row(family, n, degree, seed, **options)
        for n in sizes
        for _, degree in degrees(n)
        for family in Family
        for seed in (SEEDS if family.drawn else (None,))
    ]


@pytest.fixture(scope="module")
def teams() -> dict[str, list[Row]]:
    trained = {f"trained-{k}": whole((100,), snd=4.0 + k) for k in range(2)}
    return {"initial": whole(), "initial-own": whole(off=0.001), **trained, "trained-own-0": whole((100,), off=0.002)}


def test_every_claim_finds_its_number(teams: dict[str, list[Row]]) -> None:
    wanted = {claim.number for claim in load_claims() if claim.experiment == "expanders"}
    assert len(wanted) >= 20
    assert wanted <= set(numbers(teams, SMALL))


def test_known_values(teams: dict[str, list[Row]]) -> None:
    found = numbers(teams, SMALL)
    assert found["regular_ratio_deviation"].value == pytest.approx(0.01)
    assert (found["regular_ratio_deviation"].low, found["regular_ratio_deviation"].high) == pytest.approx((0.01, 0.01))
    assert found["regular_ratio_deviation"].kind.endswith("ratios 1.0100 to 1.0100")
    assert found["own_observation_ratio_deviation"].value == pytest.approx(0.001)
    assert found["trained_own_noise_ratio_deviation"].value == pytest.approx(0.002)
    assert found["regular_tightest_share"].value == 1
    assert found["trained_tightest_degrees"].value == 3
    assert found["regular_over_uniform_sd"].value == pytest.approx(0.5)
    assert found["ratio_spread_exponent"].value == pytest.approx(-1)
    assert found["spectral_over_observed"].value == pytest.approx(100)
    assert found["rho_growth"].value == found["spectral_bound_growth"].value == 1
    both = found["trained_over_synthetic_difference"]
    assert (both.low, both.high) == pytest.approx((2, 2.5))
    assert both.value == pytest.approx(math.sqrt((2**2 + 2.5**2) / 2))
    assert found["ordered_over_true_c5"].value == 2
    assert found["fractional_over_integral_c4"].value == pytest.approx(2 / 3)


def test_indices_and_their_certified_ends(teams: dict[str, list[Row]]) -> None:
    spread = scaling(teams["initial"])["forwarding_scaled_spread"]
    assert (spread.value, spread.low, spread.high) == pytest.approx((1, 0.9, 1 / 0.9))
    found = baselines(teams["initial"])
    for name in ("baseline_over_regular_smallest_n500", "baseline_over_regular_largest_n500"):
        assert (found[name].value, found[name].low, found[name].high) == pytest.approx((2, 1.8, 2 / 0.9))
    assert found["equal_split_over_regular_largest_n500"].value == pytest.approx(20)


def test_what_was_not_measured_is_left_out(teams: dict[str, list[Row]]) -> None:
    few = {"initial": whole((50,)), "initial-own": whole((50,))}
    found = numbers(few, SMALL)
    assert not {"regular_ratio_deviation", "rho_growth", "forwarding_scaled_spread"} & set(found)
    unrouted = [replace(one, integral_lower=None, integral_upper=None) for one in teams["initial"]]
    assert scaling(unrouted) == {}
    assert baselines(unrouted) == {}
    alone = numbers({key: rows for key, rows in teams.items() if "trained" not in key}, SMALL)
    assert not any(name.startswith("trained") for name in alone)


def test_violations_are_found() -> None:
    good = row(Family.REGULAR, 50, 6)
    beyond = replace(good, ratio=1.6, reciprocal=1 / 1.6)
    far = replace(good, ratio=0.3, reciprocal=1 / 0.3)
    apart = replace(row(Family.BERNOULLI, 50, 6), connected=False, distortion_low=None, distortion_high=None)
    found = violations([good, beyond, far, apart])
    counts = {name: number.value for name, number in found.items()}
    assert counts == {
        "distortion_violations": 1, "spectral_violations": 0, "probabilistic_violations": 2,
        "finite_probabilistic_violations": 2, "disconnected_graphs": 1,
    }  # fmt: skip
    assert found["distortion_violations"].kind.startswith("of 3 ")
    assert "1 bernoulli" in found["disconnected_graphs"].kind


def test_tightest_can_be_another_family() -> None:
    rows = [row(family, 50, 6, off=off) for family, off in zip(OFF, (0.05, 0.02, 0.03, 0.1), strict=True)]
    assert not tightest(rows)
    assert tightest([row(family, 50, 6) for family in OFF])
