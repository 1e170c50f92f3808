"""The timing experiment's structure and arithmetic; how long anything takes is not tested."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from paper.expanders import initial_team
from paper.experiment import Scale
from paper.runner import Cells, run, write_result
from paper.shared.stopwatch import Timing
from paper.timing import (
    CPU_SIZES,
    EXPERIMENT,
    GPU_SIZES,
    Data,
    Machine,
    Row,
    Size,
    fit_exponent,
    fused_calls,
    loop_calls,
    make_team,
    measure,
    summarise,
    time_size,
)


def made(sizes: Any, pair: float, call: float) -> Machine:
    """A machine on which a loop takes ``pair`` seconds for each pair and a fused call takes ``call``, exactly."""
    rows = []
    for size in sizes:
        pairs = size.n * (size.n - 1) / 2
        seconds = {f"loop, p={p:g}": p * pairs * pair for p in size.chances}
        seconds |= {"loop, all pairs": pairs * pair}
        seconds |= {f"fused, p={p:g}": 2 * call for p in size.chances} | {"fused, all pairs": call}
        trials = {name: size.fused_trials if name.startswith("fused") else size.trials for name in seconds}
        calls = {name: Timing([s] * trials[name], [1] * trials[name]) for name, s in seconds.items()}
        rows.append(Row(**vars(size), calls=calls))
    return Machine({"hardware": {"gpu": "H200"}}, rows)


def test_both_ways_draw_as_many_pairs() -> None:
    size = Size(30, 8, 1, (0.3,))
    team = initial_team(30, observations=8)
    assert isinstance(team, gs.Gaussian)
    pairs, spread = 435, (435 * 0.3 * 0.7 / 50) ** 0.5
    for calls in (loop_calls(team, size), fused_calls(team, size)):
        (name,) = (name for name in calls if "p=0.3" in name)
        drawn = [calls[name]() for _ in range(50)]
        assert sum(drawn) / 50 == pytest.approx(0.3 * pairs, abs=5 * spread)
        assert len(set(drawn)) > 10  # a new graph every time


def test_each_block_of_trials_draws_graphs_of_its_own(tmp_path: Path) -> None:
    row = time_size(
        Size(30, 8, trials=10, chances=(0.3,), fused_trials=10), torch.device("cpu"), Cells(tmp_path), Scale.SMOKE
    )
    for call in ("loop, p=0.3", "fused, p=0.3"):
        blocks = np.array(row.calls[call].pairs).reshape(5, 2)
        assert len({tuple(block) for block in blocks.tolist()}) == 5


def test_numbers_of_a_machine_that_obeys_the_law() -> None:
    cpu, gpu = made(CPU_SIZES[Scale.PAPER], 1e-4, 1e-2), made(GPU_SIZES[Scale.PAPER], 1e-4, 1e-3)
    expected = {
        "cpu_loop_speedup_p01": 10,
        "cpu_loop_speedup_p01_least": 10,
        "cpu_loop_speedup_p1": 1,
        "cpu_loop_step_ratio": 0.75,  # from p = 0.75 to p = 1
        "cpu_fused_speedup_n100": 0.5,
        "cpu_exact_fused_advantage_n100": 495 * 1e-4 / 1e-2,
        "gpu_loop_law_error": 0,
        "gpu_loop_exponent": 1,
        "gpu_loop_seconds_n500": 12.475,
        "gpu_sampled_seconds_n500": 1.2475,
        "gpu_loop_speedup_n500": 10,
        "gpu_fused_speedup_n500": 0.5,
        "exact_fused_advantage_n500": 12475 * 1e-4 / 1e-3,
    }
    numbers = summarise(Data({"cpu": cpu, "gpu": gpu}))
    assert {name: one.value for name, one in numbers.items()} == pytest.approx(expected, abs=1e-9)


def test_the_exponent_has_an_interval_over_blocks() -> None:
    generator, rows = np.random.default_rng(0), []
    for n in (100, 250, 500):
        seconds = (n * (n - 1) / 2) ** 0.9 * np.exp(0.1 * generator.normal(size=20))
        rows.append(Row(n, calls={"loop, all pairs": Timing(seconds.tolist(), [1] * 20)}))
    x = [np.log(n * (n - 1) / 2) for n in (100, 250, 500)]
    means = np.log([np.reshape(row.calls["loop, all pairs"].seconds, (5, 4)).mean(1) for row in rows])
    slopes = [np.polyfit(x, means[:, block], 1)[0] for block in range(5)]
    interval, fitted = stats.ttest_1samp(slopes, 0).confidence_interval(), fit_exponent(rows)
    assert (fitted.value, fitted.low, fitted.high) == pytest.approx((np.mean(slopes), interval.low, interval.high))
    assert fitted.clock


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine with a GPU times it")
def test_what_was_timed_before_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CPU_SIZES, Scale.PAPER, CPU_SIZES[Scale.SMOKE])
    monkeypatch.setattr("paper.runner.RESULTS", tmp_path / "results")
    first = run(EXPERIMENT, Scale.PAPER, out=tmp_path / "results", work=tmp_path / "one")
    assert (set(first.data["machines"]), first.sources) == ({"cpu"}, ())
    gpu = asdict(made(GPU_SIZES[Scale.PAPER], 1e-4, 1e-3))
    path = tmp_path / "results/timing/paper.json"
    write_result(replace(first, data={"machines": first.data["machines"] | {"gpu": gpu}}), path)
    second = run(EXPERIMENT, Scale.PAPER, out=tmp_path / "other", work=tmp_path / "two")
    assert second.sources == ("results/timing/paper.json",)
    assert second.data["machines"]["cpu"] == first.data["machines"]["cpu"]  # not timed again
    assert [row["n"] for row in second.data["machines"]["gpu"]["sizes"]] == [4, 8, 16, 32, 64, 100, 250, 500]
    assert "15 cells" in second.numbers["gpu_loop_law_error"].kind
    assert second.provenance["took_s"] == first.provenance["took_s"]  # when it was measured
    again = run(EXPERIMENT, Scale.PAPER, out=tmp_path / "results", work=tmp_path / "three", again=True)
    assert again.data["machines"]["cpu"] != first.data["machines"]["cpu"]
    assert again.data["machines"]["gpu"] == second.data["machines"]["gpu"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(tmp_path: Path) -> None:
    size = Size(8, 64, trials=2, chances=(0.5,), fused_trials=3)
    row = measure(size, make_team(size, torch.device("cuda"), Cells(tmp_path), Scale.SMOKE))
    # The loop and the fused calls have trials of their own.
    assert row.calls["loop, all pairs"].pairs == [28] * 2
    assert row.calls["fused, all pairs"].pairs == [28] * 3
