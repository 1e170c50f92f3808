from __future__ import annotations

import statistics

import pytest

from graphsnd.rl.log import Run
from paper.control.calls import arithmetic_share, compute_speedups, time_calls, time_iterations
from paper.control.logs import History
from tests.paper.control_rows import row


def test_calls_look_at_the_pairs_they_should() -> None:
    timed = time_calls(10, ("knn:3", "bernoulli:0.1", "regular:3"), loop=8, fused=8, trials=3)
    assert (timed.loop["complete"].pairs, timed.fused["complete"].pairs) == ([45] * 3, [45] * 21)
    assert (timed.loop["regular:3"].pairs, timed.fused["regular:3"].pairs) == ([15] * 3, [15] * 21)
    for one in (timed.loop, timed.fused):  # a mutual pair counts once
        assert all(15 <= count <= 30 for count in one["knn:3"].pairs)
    speedups = compute_speedups(timed.loop)
    assert set(speedups) == {"knn:3", "bernoulli:0.1", "regular:3"}
    medians = [statistics.median(timed.loop[arm].seconds) for arm in ("complete", "regular:3")]
    assert speedups["regular:3"].value == pytest.approx(medians[0] / medians[1])
    assert speedups["regular:3"].clock


def test_iterations_are_timed_over_all_runs_of_an_arm() -> None:
    histories = [
        History(run, [row(k, run, distance_seconds=seconds, rollout_seconds=6.0 + k) for k in (1, 2, 3)])
        for run, seconds in (
            (Run("complete", 0.12, 0), 1.5),
            (Run("complete", 0.14, 0), 1.5),
            (Run("knn:3", 0.12, 0), 3.0),
        )
    ]
    timed = time_iterations(histories, "knn:3")
    whole = 8.0 + 3.0 + 1.5 + 12.0 + 0.6  # of the row in the middle
    assert (timed.seconds, timed.estimates) == pytest.approx((whole, 4.5 / whole))
    assert (timed.metric, timed.metric_speedup) == pytest.approx((1.5 / whole, 0.5))


def test_the_counted_share_agrees_with_layers() -> None:
    """Multiply-adds of every product of a step at n = 50, 154 features, hidden 256, 256."""
    one = {out: 154 * 256 + 256 * 256 + 256 * out for out in (1, 2, 4)}
    estimates = 2 * 50 * one[2]
    learning = 3 * (one[4] + one[2] + one[1]) + 3 * (one[4] + one[2])
    assert arithmetic_share(50) == pytest.approx(estimates / (estimates + learning), abs=0.002)
