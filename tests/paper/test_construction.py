from __future__ import annotations

import math
from typing import Any

import pytest
from scipy import stats

from paper.construction import (
    BUILDERS,
    ORDER,
    PAPER_MS,
    Data,
    Row,
    Size,
    builder_calls,
    plain_calls,
    summarise,
)
from paper.shared.stopwatch import Timing


def made(factor: float, **metric: float) -> list[Row]:
    """Rows in which every builder takes the paper's time, multiplied."""
    rows = []
    for n in (50, 100, 500):
        times = {name: factor * PAPER_MS[name][n] / 1000 for name in BUILDERS} | metric
        times |= {f"plain {name}": PAPER_MS[name][n] / 1000 for name in BUILDERS}
        calls = {
            name: Timing([0.8 * t, t, 1.4 * t], [1] * 3, 10.0 if name == "loop" else 1.0) for name, t in times.items()
        }
        rows.append(Row(n, 1, 1, calls=calls))
    return rows


def test_budgets_are_matched() -> None:
    size = Size(60, 6, 1)
    plain = plain_calls(size)
    assert {plain["uniform"](), plain["regular"]()} == {180}
    calls = builder_calls(size)
    assert plain["knn"]() == calls["knn"]()  # the same positions
    assert {calls["uniform"](), calls["regular"]()} == {180}
    drawn = [calls["bernoulli"]() for _ in range(100)]
    p = 6 / 59
    assert sum(drawn) / 100 == pytest.approx(180, abs=5 * (1770 * p * (1 - p) / 100) ** 0.5)
    assert 180 <= calls["knn"]() <= 360
    assert set(calls) == set(BUILDERS) == set(ORDER)


def values(numbers: dict[str, Any]) -> dict[str, float]:
    return {name: number.value for name, number in numbers.items()}


def test_numbers_of_the_papers_own_times() -> None:
    numbers = summarise(Data(made(1.0, loop=0.1, snd=0.02, graph_snd=0.001)))
    found = values(numbers)
    assert found["knn_seconds_n500"] == found["plain_knn_seconds_n500"] == pytest.approx(0.004091)
    assert found["slowest_over_metric_n500"] == pytest.approx(0.004091 / 1.0)
    assert found["slowest_over_fused_n500"] == pytest.approx(0.004091 / 0.02)
    fused = numbers["slowest_over_fused_n500"]
    assert fused is not None
    assert (fused.low, fused.high) == pytest.approx((found["slowest_over_fused_n500"],) * 2)  # the same in each trial
    assert found["plain_in_order"] == 3
    assert all(found[f"plain_{name}_over_paper"] == pytest.approx(1) for name in BUILDERS)
    assert found["ours_over_plain"] == pytest.approx(1)


def test_numbers_of_other_times() -> None:
    rows = made(3.0, loop=0.1, snd=0.02, graph_snd=0.001)
    rows[0].calls["plain uniform"] = Timing([1.0], [1])
    numbers = summarise(Data(rows))
    found = values(numbers)
    assert found["plain_in_order"] == 2
    assert found["plain_uniform_over_paper"] == pytest.approx(1000 / 0.014)
    assert numbers["plain_uniform_over_paper"] is not None
    assert numbers["plain_uniform_over_paper"].low == pytest.approx(1)
    assert found["plain_regular_over_paper"] == pytest.approx(1)
    assert found["ours_over_plain"] == pytest.approx(3)


def test_noise_of_the_builders() -> None:
    rows = made(1.0, loop=0.1, snd=0.02, graph_snd=0.001)
    rows[0].calls["plain bernoulli"].seconds.reverse()
    numbers = summarise(Data(rows))
    over, order = numbers["plain_bernoulli_over_paper"], numbers["plain_in_order"]
    assert over is not None
    assert order is not None
    assert (over.low, over.high, over.clock) == (pytest.approx(1), pytest.approx(1), True)
    reach = stats.t.interval(0.95, 2, scale=stats.sem([math.log(factor) for factor in (0.8, 1.0, 1.4)]))[1]
    assert [end.value for end in over.ends] == pytest.approx([math.exp(-reach), math.exp(reach)])
    # At 50 agents the times of uniform and Bernoulli graphs cross in the last trial.
    assert (order.value, order.low, order.high) == (3, 2, 3)
