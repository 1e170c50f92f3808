from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import graphsnd as gs
from paper.cells import Cells
from paper.experiment import Scale
from paper.training import run as training
from paper.training.numbers import by_seed, gaps, numbers, ratios


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    cells = Cells(tmp_path_factory.mktemp("training"))
    return training.run(Scale.SMOKE, cells), cells


def data() -> dict:  # type: ignore[type-arg]
    def row(seed: int, iteration: int, snd: float, graph: float) -> dict:  # type: ignore[type-arg]
        times = {"snd_seconds": 2.0, "graph_snd_seconds": 0.5, "behavior_seconds": 3.0}
        return {"seed": seed, "iteration": iteration, "reward": 1.0, "snd": snd, "graph_snd": graph, **times}

    log = [row(s, k, 0.1 * k, 0.1 * k * (1.02 if k == 2 else 0.99)) for s in (0, 1) for k in (1, 2, 3)]
    ends = [
        {"seed": s, "iteration": k, "snd": 0.1 + 0.2 * k / 3, "own_snd": 0.5, "expected": 0.01 + 0.01 * k / 3}
        for s in (0, 1)
        for k in (0, 3)
    ]
    calls = {
        f"{way}, {which}": {"seconds": [4.0, 6.0], "pairs": [45, 45]} for way in ("loop", "fused") for which in ("all",)
    }
    calls |= {f"{way}, graph": {"seconds": [1.0, 1.0], "pairs": [5, 9]} for way in ("loop", "fused")}
    took = {"training": 95.0, "answers": 4.0, "pairs": 1.0, "graph": 0.5}
    return {"log": log, "ends": ends, "times": [{"calls": calls}], "training_seconds": took}


def test_numbers_of_a_small_log() -> None:
    found = numbers(data())
    assert found["largest_gap"].value == pytest.approx(0.02)
    assert found["gap_rms"].value == pytest.approx((2 * (0.02**2 + 2 * 0.01**2) / 6) ** 0.5)
    assert found["expected_gap"].value == pytest.approx(0.015)
    assert found["snd_growth"].value == pytest.approx(3)
    assert found["curve_correlation"].value > 0.999
    assert found["own_observation_error"].value == pytest.approx(0.5 / 0.3 - 1)
    assert found["final_snd_own_observations"].value == pytest.approx(0.5)
    assert found["fused_speedup"].value == 4
    assert (found["loop_speedup"].value, found["loop_speedup"].low, found["loop_speedup"].high) == (5, 4, 6)
    assert (found["pairs_ratio"].low, found["pairs_ratio"].high) == (5, 9)
    assert found["metric_share"].value == pytest.approx(0.05)
    assert found["pairs_share_of_metric"].value == pytest.approx(0.2)


def test_an_empty_graph_has_no_gap() -> None:
    log = [{"snd": 1.0, "graph_snd": 0.0}, {"snd": 2.0, "graph_snd": 1.9}]
    assert gaps(log) == pytest.approx([-0.05])
    assert by_seed([{"seed": 1, "a": 0}, {"seed": 0, "a": 1}, {"seed": 1, "a": 2}])[1][1]["a"] == 2
    assert ratios(data()["times"][0]["calls"], "loop") == [4.0, 6.0]


def test_numbers_of_all_claims(outcome) -> None:  # type: ignore[no-untyped-def]
    yaml = pytest.importorskip("yaml")
    text = (Path(training.__file__).parents[1] / "claims.yaml").read_text(encoding="utf-8")
    wanted = {claim["number"] for claim in yaml.safe_load(text) if claim["experiment"] == "training"}
    assert wanted <= set(outcome[0].numbers)


def test_the_log_is_that_of_the_training(outcome) -> None:  # type: ignore[no-untyped-def]
    found, cells = outcome
    assert [row["iteration"] for row in found.data["log"]] == [1, 2, 3]
    assert [end["iteration"] for end in found.data["ends"]] == [0, 3]
    assert found.sources == ()
    assert all(end["expected"] > 0 for end in found.data["ends"])
    steps: list[str] = []
    assert training.run(Scale.SMOKE, Cells(cells.root, step=steps.append)) == found
    assert steps == ["training"]  # which has nothing left to do


def test_a_committed_run_is_read(outcome, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    found, cells = outcome
    shutil.copytree(cells.root / "training", tmp_path / "results" / training.COMMITTED)
    read = training.run(Scale.PAPER, Cells(tmp_path / "work", results=tmp_path / "results"))
    assert read.sources == (f"results/{training.COMMITTED}",)
    assert read.data["log"] == found.data["log"]
    same = [key for key, one in found.numbers.items() if one.unit != "x" and "observation" not in key]
    assert read.numbers["largest_gap"] == found.numbers["largest_gap"]
    assert {"largest_gap", "final_snd"} <= set(same)


def test_without_a_committed_run(tmp_path: Path) -> None:
    with pytest.raises(gs.InputError, match="navigation-100"):
        training.run(Scale.PAPER, Cells(tmp_path, results=tmp_path))


def test_the_figure(outcome) -> None:  # type: ignore[no-untyped-def]
    figure = training.EXPERIMENT.figure(json.loads(json.dumps(outcome[0].data)))
    assert len(figure.axes) == 4
    figure.canvas.draw()
