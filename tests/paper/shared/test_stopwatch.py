from __future__ import annotations

import statistics
import time

import numpy as np
import pytest
import torch

from paper.shared.stopwatch import speedup, summary, take_turns

CPU = torch.device("cpu")


def test_calls_take_turns_and_some_only_once() -> None:
    order: list[str] = []

    def call(name: str, pairs: int) -> int:
        order.append(name)
        return pairs

    calls = {name: lambda name=name: call(name, len(name)) for name in ("a", "bb", "ccc")}
    found = take_turns(calls, trials={"a": 3, "bb": 1, "ccc": 3}, device=CPU)
    assert order == ["a", "bb", "ccc", "a", "ccc", "a", "ccc"]
    assert found["bb"]["pairs"] == [2]
    assert found["ccc"]["pairs"] == [3, 3, 3]
    assert len(found["ccc"]["seconds"]) == 3


def test_all_of_a_call_is_timed_and_nothing_else() -> None:
    calls = {"slow": lambda: time.sleep(0.02) or 1, "fast": lambda: 1}
    found = take_turns(calls, trials=dict.fromkeys(calls, 3), device=CPU)
    assert min(found["slow"]["seconds"]) >= 0.02
    assert found["fast"]["median_s"] < found["slow"]["median_s"]


def test_summary_by_numpy() -> None:
    seconds = np.random.default_rng(0).exponential(size=20).tolist()
    q1, median, q3 = np.quantile(seconds, (0.25, 0.5, 0.75))
    expected = {"median_s": median, "q1_s": q1, "q3_s": q3, "mean_s": statistics.fmean(seconds)}
    assert summary(seconds) == pytest.approx(expected)
    assert summary([2.0]) == {"median_s": 2.0, "q1_s": 2.0, "q3_s": 2.0, "mean_s": 2.0}


def test_intervals_of_speedups_cover() -> None:
    generator, truth, covered = np.random.default_rng(1), 10.0, 0
    for seed in range(200):
        full = 10.0 + generator.normal(size=20)
        part = 1.0 + 0.2 * generator.normal(size=20)
        found = speedup(full.tolist(), part.tolist(), seed=seed)
        assert found["low"] <= found["value"] <= found["high"]
        covered += found["low"] <= truth <= found["high"]
    # A percentile bootstrap of 20 values is a little short of 95 %.
    assert 0.86 < covered / 200 <= 1.0


def test_a_slow_trial_hits_both_and_leaves_the_ratio() -> None:
    busy = np.array([1.0, 1.0, 5.0, 1.0, 1.0, 2.0])
    found = speedup((10 * busy).tolist(), busy.tolist())
    assert (found["value"], found["low"], found["high"]) == pytest.approx((10.0, 10.0, 10.0))


def test_fewer_trials_are_compared_with_the_same_ones() -> None:
    for full, part in (([4.0, 100.0, 100.0], [2.0]), ([4.0], [2.0, 100.0])):
        found = speedup(full, part)
        assert (found["value"], found["low"], found["high"], found["kind"]) == (2.0, 2.0, 2.0, "range of 1 trial")
