from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from paper.experiment import Number
from paper.shared.stopwatch import Timing, speedup, take_turns

CPU = torch.device("cpu")


def test_calls_take_turns_and_some_only_once() -> None:
    order: list[str] = []

    def call(name: str, pairs: int) -> int:
        order.append(name)
        return pairs

    calls = {name: lambda name=name: call(name, len(name)) for name in ("a", "bb", "ccc")}
    timed = take_turns(calls, trials={"a": 3, "bb": 1, "ccc": 3}, device=CPU, warm=1)
    assert order[:3] == ["a", "bb", "ccc"]
    del order[:3]
    assert order == ["a", "bb", "ccc", "a", "ccc", "a", "ccc"]
    assert timed["bb"].pairs == [2]
    assert timed["ccc"].pairs == [3, 3, 3]
    assert len(timed["ccc"].seconds) == 3


def test_all_of_a_call_is_timed_and_nothing_else() -> None:
    calls = {"slow": lambda: time.sleep(0.02) or 1, "fast": lambda: 1}
    timed = take_turns(calls, trials=3, device=CPU)
    assert min(timed["slow"].seconds) >= 0.02
    assert timed["fast"].quartiles[1] < timed["slow"].quartiles[1]


def test_summary_by_numpy() -> None:
    seconds = np.random.default_rng(0).exponential(size=20).tolist()
    q1, median, q3 = np.quantile(seconds, (0.25, 0.5, 0.75))
    assert Timing(seconds, [1] * 20).quartiles == pytest.approx([q1, median, q3])
    assert Timing([2.0], [1]).quartiles == [2.0, 2.0, 2.0]
    assert Timing([0.0, 2.0, 4.0], [1] * 3).number(1000, "ms") == Number(2000, 1000, 3000, "ms", "quartiles")


def test_intervals_of_speedups_cover() -> None:
    generator, truth, covered = np.random.default_rng(1), 10.0, 0
    for seed in range(200):
        full = 10.0 + generator.normal(size=20)
        part = 1.0 + 0.2 * generator.normal(size=20)
        ratio = speedup(full.tolist(), part.tolist(), seed=seed)
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low <= ratio.value <= ratio.high
        covered += ratio.low <= truth <= ratio.high
    # A percentile bootstrap of 20 values is a little short of 95 %.
    assert 0.86 < covered / 200 <= 1.0


def test_a_slow_trial_hits_both_and_leaves_the_ratio() -> None:
    busy = np.array([1.0, 1.0, 5.0, 1.0, 1.0, 2.0])
    ratio = speedup((10 * busy).tolist(), busy.tolist())
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((10.0, 10.0, 10.0))


def test_fewer_trials_are_compared_with_the_same_ones() -> None:
    for full, part in (([4.0, 100.0, 100.0], [2.0]), ([4.0], [2.0, 100.0])):
        ratio = speedup(full, part)
        assert (ratio.value, ratio.low, ratio.high, ratio.kind) == (2.0, 2.0, 2.0, "range of 1 trial")
