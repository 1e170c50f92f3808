"""The timing experiment's structure and arithmetic; how long anything takes is nobody's business here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import graphsnd as gs
from paper.cells import Cells
from paper.expanders import initial_team
from paper.experiment import Scale
from paper.runner import run
from paper.timing.calls import Size, fused_calls, loop_calls, measure
from paper.timing.figure import timing_figure
from paper.timing.numbers import CPU_NUMBERS, GPU_NUMBERS, numbers
from paper.timing.run import CPU, EXPERIMENT, GPU, GPU_FILE


@pytest.fixture(scope="module")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cells = Cells(tmp_path_factory.mktemp("cells"), results=tmp_path_factory.mktemp("results"))
    outcome = EXPERIMENT.run(Scale.SMOKE, cells)
    return json.loads(json.dumps(outcome.data, allow_nan=False))


def made(sizes: Any, pair: float, call: float) -> dict[str, Any]:
    """A machine on which a loop takes ``pair`` seconds a pair and a fused call takes ``call``, exactly."""
    rows = []
    for size in sizes:
        pairs = size.n * (size.n - 1) / 2
        seconds = {f"loop, p={p:g}": p * pairs * pair for p in (*size.chances, *size.once)}
        seconds |= {"loop, all pairs": pairs * pair, "loop, 64 observations": pairs * pair / 4}
        seconds |= {f"fused, p={p:g}": 2 * call for p in (*size.chances, *size.once)} | {"fused, all pairs": call}
        trials = {name: size.fused_trials if name.startswith("fused") else size.trials for name in seconds}
        trials |= {f"loop, p={p:g}": 1 for p in size.once}
        summary = ("median_s", "q1_s", "q3_s", "mean_s")
        calls = {name: {"seconds": [s] * trials[name], **dict.fromkeys(summary, s)} for name, s in seconds.items()}
        rows.append({**size.to_dict(), "before": {"threads": 1}, "calls": calls})
    return {"origin": {"hardware": {"gpu": "some GPU"}}, "sizes": rows}


def test_data_hold_every_call_of_every_size(smoke: dict[str, Any]) -> None:
    rows = smoke["machines"]["cpu"]["sizes"]
    assert [row["n"] for row in rows] == [size.n for size in CPU[Scale.SMOKE]]
    for row in rows:
        pairs = row["n"] * (row["n"] - 1) // 2
        names = {f"{way}, {which}" for way in ("loop", "fused") for which in ("all pairs", "p=0.1", "p=1")}
        assert set(row["calls"]) == names | {"loop, 64 observations"}
        for name, one in row["calls"].items():
            assert len(one["seconds"]) == len(one["pairs"]) == row["trials"]
            assert min(one["seconds"]) > 0
            assert max(one["pairs"]) <= pairs
            if "p=0.1" not in name:
                assert one["pairs"] == [pairs] * row["trials"]
        assert row["before"]["threads"] == row["after"]["threads"] == 1


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    measure(Size(3, 8, 1, (0.5,)), torch.device("cpu"))
    assert torch.get_num_threads() == before


def test_trials_of_each_call() -> None:
    found = measure(Size(4, 16, 2, (0.1,), (0.5, 1.0), fused_trials=4), torch.device("cpu"))["calls"]
    trials = {"loop, p=0.5": 1, "loop, p=1": 1}
    for name, one in found.items():
        assert len(one["seconds"]) == trials.get(name, 4 if name.startswith("fused") else 2)


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


def test_numbers_of_a_machine_that_obeys_the_law() -> None:
    gpu = GPU[Scale.PAPER]
    found = numbers({"cpu": made(CPU[Scale.PAPER], 1e-4, 1e-2), "gpu": made(gpu, 1e-4, 1e-3)})
    assert set(found) == {*CPU_NUMBERS, *GPU_NUMBERS}
    expected = {
        "cpu_loop_speedup_p01": 10,
        "cpu_loop_speedup_p1": 1,
        "cpu_loop_step_ratio": 0.75,  # from p = 0.75 to p = 1
        "cpu_fused_speedup_n100": 0.5,
        "cpu_exact_fused_advantage_n100": 495 * 1e-4 / 1e-2,
        "gpu_loop_law_error": 0,
        "gpu_loop_exponent": 1,
        "gpu_loop_seconds_n500": 12.475,
        "gpu_loop_speedup_n500": 10,
        "gpu_fused_speedup_n500": 0.5,
        "exact_fused_advantage_n500": 12475 * 1e-4 / 1e-3,
        "gpu_loop_arithmetic": 4,
    }
    assert {name: one.value for name, one in found.items()} == pytest.approx(expected, abs=1e-9)


def test_what_was_not_timed_is_left_out(smoke: dict[str, Any]) -> None:
    assert numbers(smoke["machines"]) == {}
    without = numbers({"cpu": made(CPU[Scale.LAPTOP], 1e-4, 1e-2)})
    assert set(without) == set(CPU_NUMBERS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a machine with a GPU times it")
def test_the_part_of_a_gpu_is_read_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = made(GPU[Scale.PAPER], 1e-4, 1e-3)
    monkeypatch.setitem(CPU, Scale.PAPER, CPU[Scale.SMOKE])
    monkeypatch.setattr("paper.runner.RESULTS", tmp_path / "results")
    first = run(EXPERIMENT, Scale.PAPER, out=tmp_path / "results", work=tmp_path / "one")
    assert set(first.data["machines"]) == {"cpu"}
    assert first.sources == ()

    path = tmp_path / "results" / GPU_FILE
    written = json.loads((tmp_path / "results/timing/paper.json").read_text())
    written["data"]["machines"]["gpu"] = gpu
    path.write_text(json.dumps(written))
    second = run(EXPERIMENT, Scale.PAPER, out=tmp_path / "results", work=tmp_path / "one", again=True)
    assert second.data["machines"]["gpu"] == json.loads(json.dumps(gpu))
    assert second.sources == ("results/timing/gpu.json",)
    assert set(GPU_NUMBERS) <= set(second.numbers)


@pytest.mark.parametrize("names", [("cpu",), ("cpu", "gpu")])
def test_figure(names: tuple[str, ...]) -> None:
    made_up = {"cpu": made(CPU[Scale.PAPER], 1e-4, 1e-2), "gpu": made(GPU[Scale.PAPER], 1e-4, 1e-3)}
    figure = timing_figure({"machines": {name: made_up[name] for name in names}})
    assert len(figure.axes) == 2 + len(names)
    for ax in figure.axes:
        assert ax.get_xlabel()
        assert ax.get_ylabel()
    figure.canvas.draw()


def test_figure_of_a_run(smoke: dict[str, Any]) -> None:
    EXPERIMENT.figure(smoke).canvas.draw()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu() -> None:
    found = measure(Size(8, 64, 2, (0.5,)), torch.device("cuda"))
    assert found["before"]["gpu"] == torch.cuda.get_device_name()
    assert found["calls"]["fused, all pairs"]["pairs"] == [28, 28]
