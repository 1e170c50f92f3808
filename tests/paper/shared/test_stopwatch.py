from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from paper.experiment import Number
from paper.shared.stopwatch import Timing, mean_time, speedup, take_turns


def test_calls_take_turns_and_some_only_once() -> None:
    order: list[str] = []

    def call(name: str, pairs: int) -> int:
        order.append(name)
        return pairs

    calls = {name: lambda name=name: call(name, len(name)) for name in ("a", "bb", "ccc")}
    timed = take_turns(calls, trials={"a": 3, "bb": 1, "ccc": 3}, warm=1)
    assert order[:3] == ["a", "bb", "ccc"]
    del order[:3]
    assert order == ["a", "bb", "ccc", "ccc", "a", "a", "ccc"]  # backwards in every other trial
    assert timed["bb"].pairs == [2]
    assert timed["ccc"].pairs == [3, 3, 3]
    assert len(timed["ccc"].seconds) == 3


def test_summary_by_numpy() -> None:
    seconds = np.random.default_rng(0).exponential(size=20).tolist()
    q1, median, q3 = np.quantile(seconds, (0.25, 0.5, 0.75))
    assert Timing(seconds, [1] * 20).quartiles == pytest.approx([q1, median, q3])
    assert Timing([2.0], [1]).quartiles == [2.0, 2.0, 2.0]
    assert Timing([0.0, 2.0, 4.0], [1] * 3).number(1000, "ms") == Number(2000, 1000, 3000, "ms", "quartiles")


def test_intervals_of_speedups_cover_where_the_machine_drifts() -> None:
    generator, covered = np.random.default_rng(1), 0
    for _ in range(400):
        # Blocks of four trials in which something else slows the first call down by a few percent.
        drift = np.repeat(np.exp(0.05 * generator.normal(size=5)), 4)
        full = 10.0 * drift * (1 + 0.02 * generator.normal(size=20))
        part = 1.0 + 0.02 * generator.normal(size=20)
        ratio = speedup(full.tolist(), part.tolist())
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low <= ratio.value <= ratio.high
        covered += ratio.low <= 10.0 <= ratio.high
    assert 0.92 < covered / 400 < 0.98  # 95%, and its own error of 1.1%


def test_the_interval_is_that_of_scipy() -> None:
    generator = np.random.default_rng(2)
    full, part = 10 + generator.normal(size=20), 1 + 0.1 * generator.normal(size=20)
    logs = [np.log(full[k : k + 4].mean() / part[k : k + 4].mean()) for k in range(0, 20, 4)]
    half = stats.t.interval(0.95, 4, scale=stats.sem(logs))[1]
    ratio = speedup(full.tolist(), part.tolist())
    assert ratio.value == pytest.approx(full.mean() / part.mean())
    assert (ratio.low, ratio.high) == pytest.approx((ratio.value * np.exp(-half), ratio.value * np.exp(half)))
    assert (ratio.clock, ratio.kind) == (True, "95% t interval, 5 blocks of 4 trials")


def test_a_slow_trial_hits_both_and_leaves_the_ratio() -> None:
    busy = np.array([1.0, 1.0, 5.0, 1.0, 1.0, 2.0])
    ratio = speedup((10 * busy).tolist(), busy.tolist())
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((10.0, 10.0, 10.0))


def test_fewer_trials_are_compared_with_the_same_ones() -> None:
    for full, part in (([4.0, 100.0, 100.0], [2.0]), ([4.0], [2.0, 100.0])):
        ratio = speedup(full, part)
        assert (ratio.value, ratio.low, ratio.high, ratio.kind) == (2.0, None, None, "one trial")


def test_mean_times_have_an_interval_over_blocks() -> None:
    seconds = np.random.default_rng(2).exponential(size=20)
    logs = np.log(seconds.reshape(5, 4).mean(1))
    reach = stats.t.ppf(0.975, 4) * logs.std(ddof=1) / 5**0.5
    timed = mean_time(seconds.tolist())
    expected = seconds.mean() * np.exp([0, -reach, reach])
    assert (timed.value, timed.low, timed.high) == pytest.approx(tuple(expected))
    assert (timed.unit, timed.clock) == ("s", True)
