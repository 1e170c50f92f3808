"""Levels of diversity against SciPy, the share of studies whose intervals hold, and what people pass on a Tuesday."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats

from graphsnd import InputError
from graphsnd.analysis import level_curve, levels
from graphsnd.analysis.levels import find_gains

Array = NDArray[np.float64]
STUDIES, COUNT = 2000, 8
# In standard deviations of a seed: a task where the fourth of eight levels is best, and one without any effect.
PEAK, FLAT = np.array([0, 0.5, 1.2, 2.0, 1.2, 0.5, 0, -0.5]), np.zeros(COUNT)
SPREADS = {
    "equal": np.ones(COUNT),
    "rising": np.linspace(0.5, 1.5, COUNT),
    "falling": np.linspace(1.5, 0.5, COUNT),
    "homogeneous": np.where(np.arange(COUNT) == 0, 3.0, 1.0),
    "best": np.where(np.arange(COUNT) == 3, 3.0, 1.0),
}
SLACK = 2.326  # normal quantile of a one-sided 99% bound


def study(means: Array, spread: Array, seeds: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return the intervals of 2,000 studies in which what a seed adds to all levels varies as much as the rest."""
    own = spread[:, None] * generator.standard_normal((STUDIES, COUNT, seeds))
    runs = means[:, None] + own + generator.standard_normal((STUDIES, 1, seeds))
    parts = [find_gains(part, 0.95, generator, 400) for part in np.split(runs, STUDIES // 40)]
    low, high = (np.concatenate(ends) for ends in zip(*parts, strict=True))
    return low, high


def bound(share: float, side: int) -> float:
    """Return the one-sided 99% bound of a share of the studies."""
    return share + side * SLACK * math.sqrt(share * (1 - share) / STUDIES)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("spread", SPREADS)
def test_intervals_hold_as_often_as_they_say(spread: str, seeds: int) -> None:
    generator = np.random.default_rng(7)
    low, high = study(PEAK, SPREADS[spread], seeds, generator)
    gain, lows, highs = PEAK.max(), low[:, 1:, 0].max(1), high[:, 1:, 0].max(1)
    assert bound(((lows <= gain) & (gain <= highs)).mean(), 1) > 0.93
    assert bound((low[:, :, PEAK.argmax()] <= 0).all(1).mean(), 1) > 0.93  # the best level is among those that may be
    assert (lows > 0).mean() > 0.1  # some studies see the effect
    low, high = study(FLAT, SPREADS[spread], seeds, generator)
    called = (low[:, 1:, 0].max(1) > 0) | (high[:, 1:, 0].max(1) < 0)
    assert bound(called.mean(), -1) < 0.05
    assert bound(called.mean(), 1) > 0.01  # or the intervals would be too wide to be of use


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("noise", ["tails", "failures"])
def test_intervals_of_three_levels_hold_for_noise_that_is_not_normal(noise: str, seeds: int) -> None:
    generator, shape = np.random.default_rng(8), (STUDIES, 3, seeds)
    own = generator.standard_t(3, shape) if noise == "tails" else generator.standard_normal(shape)
    if noise == "failures":  # of one seed in four, without diversity
        own[:, 0] -= 5 * ((generator.random((STUDIES, seeds)) < 0.25) - 0.25)
    runs = own + generator.standard_normal((STUDIES, 1, seeds))
    low, _ = (np.concatenate(ends) for ends in zip(*(
        find_gains(part, 0.95, generator, 400) for part in np.split(runs, STUDIES // 40)
    ), strict=True))  # fmt: skip
    called = low[:, 1:, 0].max(1) > 0
    assert bound(called.mean(), -1) < 0.03
    assert called.any()


def test_with_a_common_variance_it_is_dunnett(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "PRIOR", 1e12)
    monkeypatch.setattr(levels, "DRAWS", 200_000)
    generator = np.random.default_rng(1)
    runs = [generator.standard_normal(size).tolist() for size in (5, 3, 4, 6)]
    found = level_curve([0, 0.1, 0.2, None], runs)
    oracle = stats.dunnett(*map(np.array, runs[1:]), control=np.array(runs[0]), rng=generator)
    ends = oracle.confidence_interval(0.95)
    assert found.over_shared is not None
    np.testing.assert_allclose([gain.low for gain in found.over_shared[1:]], ends.low, atol=0.02)
    np.testing.assert_allclose([gain.high for gain in found.over_shared[1:]], ends.high, atol=0.02)
    for values, (low, high) in zip(runs, found.intervals, strict=True):
        student = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert (low, high) == pytest.approx((student.low, student.high))


def test_two_levels_are_paired_by_seed() -> None:
    generator = np.random.default_rng(2)
    seeds = 10 * generator.standard_normal(6)
    runs = np.stack([seeds, seeds + 1]) + 0.3 * generator.standard_normal((2, 6))
    gain = level_curve([0, 0.2], runs).gain
    paired = stats.ttest_rel(runs[1], runs[0]).confidence_interval(0.95)
    assert gain is not None
    assert tuple(gain) == pytest.approx((runs[1].mean() - runs[0].mean(), paired.low, paired.high), rel=0.02)


def test_the_gain_is_that_of_the_best_level_and_any_form_gives_it() -> None:
    generator = np.random.default_rng(3)
    runs = 0.1 * generator.standard_normal((4, 5)) + np.array([[0.0], [0.4], [1.0], [0.3]])
    asked = [0, 0.1, 0.3, None]
    found = level_curve(asked, runs, runs + 5)
    assert (found.best, found.may_be_best, found.seeds) == (2, (2,), (5, 5, 5, 5))
    assert found.snd == pytest.approx(runs.mean(1) + 5)
    assert found.rewards == pytest.approx(runs.mean(1))
    gain, free = found.gain, found.gain_over_unconstrained
    assert gain is not None
    assert free is not None
    means = runs.mean(1)
    assert (gain.value, free.value) == pytest.approx((means[2] - means[0], means[2] - means[3]))
    assert 0 < gain.low < gain.value < gain.high
    named = dict(zip(asked, runs.tolist(), strict=True))
    forms: list[Any] = [runs.tolist(), torch.from_numpy(runs), list(runs), named]
    assert all(level_curve(asked, form, runs + 5) == found for form in forms)
    assert level_curve(named, named, dict(zip(asked, runs.mean(1) + 5, strict=True))).snd == pytest.approx(found.snd)
    assert level_curve(asked, runs, runs + 5, seed=1).gain == pytest.approx(gain, rel=0.05)


@pytest.mark.parametrize(
    ("asked", "means", "words"),
    [
        ([0, 0.1, 0.3, None], [0, 1, 3, 2], "Diversity pays: +3.0"),
        ([0, 0.1, 0.3, None], [0, -1, -3, -2], "Diversity costs: -1.0"),
        ([0, 0.1, 0.3, None], [0, 0, 0, 0], "No level is better than sharing all parameters, as far as 4 seeds can"),
        ([0.1, 0.3, 0.5, None], [0, 1, 3, 2], "Control pays: +1.0"),
        ([0.1, 0.3, 0.5, None], [0, 1, 2, 2], "No level is better than leaving diversity free, as far as 4 seeds can"),
        ([0, 0.1, 0.3, None], [0, 1, 2, 3], "at no constraint"),
    ],
)
def test_the_verdict_is_a_sentence(asked: list[float | None], means: list[float], words: str) -> None:
    noise = 0.1 * np.random.default_rng(4).standard_normal((4, 4))
    found = level_curve(asked, noise - noise.mean(1, keepdims=True) + np.array(means)[:, None])
    assert words in found.verdict
    printed = str(found).splitlines()
    assert printed[0] == found.verdict
    assert max(map(len, printed)) <= 80
    assert ("Best other level, difference from unconstrained" in str(found)) == (asked[0] == 0)


def test_the_verdict_is_of_a_level_whose_own_interval_says_so() -> None:
    runs = [[-0.4, -0.5, 0.2, 0.3], [1.0, 1.2, 0.7, 1.0], [1.4, 1.3, 1.0, 1.3], [2.8, 0.9, -0.1, 1.6]]
    found = level_curve([0, 0.1, 0.3, None], runs)
    assert found.over_shared is not None
    assert found.best == 3  # with the highest mean, and no more than noise
    assert found.over_shared[3].low < 0 < found.over_shared[2].low
    assert found.verdict == f"Diversity pays: {found.over_shared[2]} at SND 0.3"
    assert found.rows()[2][-1] in found.verdict


def test_an_unconstrained_level_is_called_so() -> None:
    runs = [[1.0, 1.1, 0.9], [1.5, 1.6, 1.4], [2.0, 2.1, 1.9]]
    assert level_curve([0, 0.3, None], runs, [0, 0.3, 0.88]).verdict.endswith(" at SND 0.88, unconstrained")


def test_different_numbers_of_seeds() -> None:
    found = level_curve([0, 0.2, None], [[1.0, 1.2, 1.1], [1.3], [1.2, 1.3]])
    assert found.seeds == (3, 1, 2)
    assert math.isnan(found.intervals[1][0])
    assert "as far as 1 to 3 seeds can tell" in found.verdict
    assert "nan" not in str(found)
    same = level_curve([0, 0.2], [[1.0, 1.0], [2.0, 2.0]])  # no seed differs from another
    assert same.gain == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.1, 0.2], [[1.0, 2.0], [1.0, 2.0]]), "with 0 (shared) or None"),
        (([0, 0], [[1.0, 2.0], [1.0, 2.0]]), "to be different"),
        (([0, "none"], [[1.0, 2.0], [1.0, 2.0]]), "None stands for unconstrained"),
        (([0, 0.1], [[1.0], [2.0]]), "at least 2 seeds"),
        (([0, 0.1], [[2.0, 1.0], [1.0, math.nan]]), "at level 0.1. Leave out runs that crashed"),
        (([0, 0.1], [[1.0, 2.0]]), "of the runs of each of 2 levels"),
        (([0, 0.1], [[1.0, 2.0], []]), "of the runs of each of 2 levels"),
        (([0, 0.1], {0: [1.0, 2.0]}), "none for 0.1"),
        (([0, 0.1], "high"), "to be numbers"),
        (([0, 0.1], [[1.0, 2.0], [1.0, 2.0]], [0.0]), "`snd`"),
    ],
)
def test_what_is_no_curve_is_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match="Expected") as error:
        level_curve(*arguments)
    assert words in str(error.value)
