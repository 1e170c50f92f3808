from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch

from paper.cells import Cells
from paper.construction.numbers import BUILDERS, ORDER, PAPER_MS, numbers
from paper.construction.run import EXPERIMENT, SIZES, Size, builder_calls, measure, metric_calls
from paper.experiment import Scale


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    outcome = EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells")))
    assert outcome.numbers == {}  # without n = 500 nothing is decided
    return json.loads(json.dumps(outcome.data, allow_nan=False))


def made(factor: float, **metric: float) -> list[dict[str, Any]]:
    """Rows in which every builder takes the paper's time, multiplied."""
    rows = []
    for n in (50, 100, 500):
        times = {name: factor * PAPER_MS[name][n] / 1000 for name in BUILDERS} | metric
        calls = {name: {"median_s": t, "q1_s": 0.9 * t, "q3_s": 1.2 * t, "whole": 1.0} for name, t in times.items()}
        calls["loop"]["whole"] = 10.0
        rows.append({"n": n, "calls": calls})
    return rows


def test_sizes_are_those_of_the_paper_and_one_more() -> None:
    for scale in (Scale.LAPTOP, Scale.PAPER):
        table = [(size.n, size.degree) for size in SIZES[scale]]
        assert table == [(50, 6), (100, 7), (500, 9), (10_000, 14)]
        assert all(degree == math.ceil(math.log2(n)) for n, degree in table)
        assert [size.trials for size in SIZES[scale]][:3] == [50, 50, 20]


def test_budgets_are_matched() -> None:
    size = Size(60, 6, 1)
    calls = builder_calls(size)
    assert {calls["uniform"](), calls["regular"]()} == {180}
    drawn = [calls["bernoulli"]() for _ in range(100)]
    p = 6 / 59
    assert sum(drawn) / 100 == pytest.approx(180, abs=5 * (1770 * p * (1 - p) / 100) ** 0.5)
    assert 180 <= calls["knn"]() <= 360
    assert set(calls) == set(BUILDERS) == set(ORDER)


def test_pairs_of_the_metric() -> None:
    calls = metric_calls(Size(30, 4, 1, 1, 8))
    assert {name: call() for name, call in calls.items()} == {"snd": 435, "graph_snd": 60, "loop": 100}


def test_data(smoke: dict[str, Any]) -> None:
    assert [row["n"] for row in smoke["sizes"]] == [size.n for size in SIZES[Scale.SMOKE]]
    for row in smoke["sizes"]:
        assert list(row["calls"]) == [*BUILDERS, "snd", "graph_snd", "loop"]
        for name, one in row["calls"].items():
            assert len(one["seconds"]) == row["trials" if name in BUILDERS else "metric_trials"]
        assert row["calls"]["snd"]["whole"] == 4096 / row["observations"]
        assert row["calls"]["loop"]["whole"] == math.comb(row["n"], 2) / 100
        assert row["before"]["threads"] == 1


def test_numbers_of_the_papers_own_times() -> None:
    found = numbers(made(1.0, loop=0.1, snd=0.02, graph_snd=0.001))
    assert found["knn_seconds_n500"].value == pytest.approx(0.004091)
    assert found["slowest_over_metric_n500"].value == pytest.approx(0.004091 / 1.0)
    assert found["slowest_over_fused_n500"].value == pytest.approx(0.004091 / 0.02)
    low, high = found["slowest_over_fused_n500"].low, found["slowest_over_fused_n500"].high
    assert (low, high) == pytest.approx((0.75 * 0.004091 / 0.02, 4 / 3 * 0.004091 / 0.02))
    assert found["builders_in_order"].value == 3
    assert all(found[f"{name}_over_paper"].value == pytest.approx(1) for name in BUILDERS)


def test_numbers_of_other_times() -> None:
    rows = made(3.0, loop=0.1, snd=0.02, graph_snd=0.001)
    rows[0]["calls"]["uniform"]["median_s"] = 1.0
    found = numbers(rows)
    assert found["builders_in_order"].value == 2
    assert found["uniform_over_paper"].value == pytest.approx(1000 / 0.014)
    assert found["uniform_over_paper"].low == pytest.approx(3)
    assert found["regular_over_paper"].value == pytest.approx(3)


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    measure(Size(10, 2, 1, 1, 8))
    assert torch.get_num_threads() == before


def test_figure(smoke: dict[str, Any]) -> None:
    figure = EXPERIMENT.figure(smoke)
    assert [ax.get_xlabel() for ax in figure.axes] == ["agents, n"] * 2
    figure.canvas.draw()
