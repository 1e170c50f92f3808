from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.provenance import verify_commit
from graphsnd.errors import InputError
from paper import registry
from paper.cells import Cell
from paper.experiment import Number, Outcome, Scale
from paper.registry import find
from paper.runner import run
from paper.store import read_result
from tests.paper.fakes import Data, Numbers, draw, squares
from tests.training import control_settings, control_task


def go(folder: Path, **options: Any) -> Any:
    return run(
        options.pop("experiment", None) or squares(made=options.pop("made", None), before=options.pop("before", bool)),
        options.pop("scale", Scale.PAPER), out=folder / "results", work=folder / "work", **options,
    )  # fmt: skip


def test_a_run_writes_its_result_its_provenance_and_a_figure(tmp_path: Path) -> None:
    begun: list[str] = []
    returned = go(tmp_path, step=begun.append)
    path = tmp_path / "results" / "recovery" / "paper.json"
    found = json.loads(path.read_text())
    assert begun == ["n=2", "n=3", "n=4"]
    assert (found["experiment"], found["scale"], found["title"]) == ("recovery", "paper", "Squares in recovery")
    expected = {"value": 16.0, "low": 15.0, "high": 17.0, "unit": "x", "kind": "range of <cells>", "clock": False}
    assert found["numbers"] == {"largest": expected}
    assert found["data"]["rows"][2] == {"n": 4, "square": 16}
    about = found["provenance"]
    assert about["command"] == "python -m paper run recovery --scale paper"
    assert about["seeds"] == [0, 1]
    assert {"commit", "dirty", "versions", "hardware", "date", "took_s"} <= about.keys()
    assert str(tmp_path) not in path.read_text()
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert read_result(path) == returned
    assert (tmp_path / "work" / "paper" / "recovery" / "n=4.json").is_file()


def test_what_is_finished_is_not_repeated_unless_asked(tmp_path: Path) -> None:
    made: list[int] = []
    first = go(tmp_path, made=made)
    assert go(tmp_path, made=made) == first
    assert made == [2, 3, 4]
    go(tmp_path, made=made, again=True)
    assert made == [2, 3, 4] * 2
    go(tmp_path, made=made, scale=Scale.SMOKE)
    assert made == [*[2, 3, 4] * 2, 2]


def test_a_finished_experiment_goes_on_where_what_it_lacks_can_be_trained(tmp_path: Path) -> None:
    made: list[int] = []
    task = control_task(3, (0.1,), ("complete",), settings=control_settings(iterations=1))
    lacking = dataclasses.replace(squares(made=made), stacks={"control/none": task})
    go(tmp_path, experiment=lacking)
    shutil.rmtree(tmp_path / "work")
    go(tmp_path, experiment=lacking)
    assert made == [2, 3, 4]  # nothing here could train it
    go(tmp_path, experiment=lacking, ray="a cluster with GPUs")
    assert made == [2, 3, 4] * 2
    go(tmp_path, experiment=dataclasses.replace(lacking, stacks={}), ray="a cluster with GPUs")
    assert made == [2, 3, 4] * 2


def test_a_finished_experiment_goes_on_where_what_it_lacks_can_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    lacking = dataclasses.replace(squares(made=made), files=("recovery/gpu.json",))
    go(tmp_path, experiment=lacking)
    shutil.rmtree(tmp_path / "work")
    monkeypatch.setattr("paper.stacks.torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True)))
    (tmp_path / "results" / "recovery" / "gpu.json").touch()
    go(tmp_path, experiment=lacking)
    assert made == [2, 3, 4]
    (tmp_path / "results" / "recovery" / "gpu.json").unlink()
    go(tmp_path, experiment=lacking)
    assert made == [2, 3, 4] * 2


def test_only_a_missing_figure_is_drawn(tmp_path: Path) -> None:
    go(tmp_path)
    png = tmp_path / "results" / "recovery" / "paper.png"
    png.unlink()
    go(tmp_path, before=lambda n: pytest.fail("ran again"))
    assert png.is_file()


def test_an_interrupted_run_continues_and_its_time_adds_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    for module in ("runner", "cells"):
        monkeypatch.setattr(f"paper.{module}.perf_counter", lambda: now)
    made: list[int] = []
    stops = [3]

    def work(n: int) -> None:
        nonlocal now
        now += 10
        if n in stops:
            stops.remove(n)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, made=made, before=work)
    assert not (tmp_path / "results").exists()
    now += 1000  # nobody works
    result = go(tmp_path, made=made, before=work)
    assert made == [2, 3, 4]
    assert result.provenance["took_s"] == 30  # 2, then 3 and 4; a cell that was stopped does not count


def test_a_stopped_repetition_continues_too(tmp_path: Path) -> None:
    old = go(tmp_path)
    made: list[int] = []

    def stop(n: int) -> None:
        if n == 4 and len(made) == 2:
            made.append(0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, made=made, before=stop, again=True)
    assert read_result(tmp_path / "results" / "recovery" / "paper.json") == old
    go(tmp_path, made=made, before=stop, again=True)
    assert made == [2, 3, 0, 4]


def test_a_killed_process_continues_from_its_cells(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from paper.experiment import Scale\nfrom paper.runner import run\n"
        "from tests.paper.fakes import squares\n"
        "kill = lambda n: n == 3 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder = Path(sys.argv[1])\n"
        "run(squares(before=kill), Scale.LAPTOP, out=folder / 'results', work=folder / 'work')\n"
    )
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, env=environment)
    assert done.returncode == -signal.SIGKILL
    made: list[int] = []
    go(tmp_path, made=made, scale=Scale.LAPTOP)
    assert made == [3]


def test_paper_scale_needs_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paper.runner.verify_commit", verify_commit)
    changed = {"commit": "1" * 40, "dirty": True, "tree": "2"}
    monkeypatch.setattr("graphsnd.plots.provenance.find_commit", lambda: changed)
    with pytest.raises(InputError, match="changed since commit 1111"):
        go(tmp_path, before=lambda n: pytest.fail("ran"))
    assert not (tmp_path / "results").exists()
    assert go(tmp_path, scale=Scale.LAPTOP).provenance["dirty"] is True


def test_sources_that_change_during_a_run_write_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="sources that changed"):
        go(tmp_path, before=lambda n: monkeypatch.setattr("paper.runner.find_commit", lambda: {"tree": "other"}))
    assert not (tmp_path / "results").exists()


def test_cells_of_no_commit_are_made_again_at_paper_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(n: int) -> None:
        if n == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("paper.cells._describe_commit", lambda: "1" * 40 + ", changed")
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, before=stop)
    monkeypatch.undo()
    monkeypatch.setattr("paper.runner.verify_commit", lambda name, root: None)
    monkeypatch.setattr("paper.cells._describe_commit", lambda: "0" * 40)
    made: list[int] = []
    result = go(tmp_path, made=made)
    assert made == [2, 3, 4]
    assert result.provenance["cells"] == ["0" * 40]


def test_date_and_load_are_those_of_the_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = iter(
        [Cell(None, None, "a", date="2020-01-02", load=3.5), Cell(None, None, "b", date="2020-01-01", load=1)]
    )
    monkeypatch.setattr("paper.cells.sign", lambda: next(signed))
    about = go(tmp_path, scale=Scale.LAPTOP).provenance
    assert (about["date"], about["hardware"]["load"], about["cells"]) == ("2020-01-01", 3.5, ["a", "b"])


def test_a_figure_that_fails_keeps_the_result(tmp_path: Path) -> None:
    broken = dataclasses.replace(squares(), figure=lambda data: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        go(tmp_path, experiment=broken)
    go(tmp_path, before=lambda n: pytest.fail("ran again"))
    assert (tmp_path / "results" / "recovery" / "paper.png").is_file()


@pytest.mark.parametrize("number", [Number(float("nan")), Number(1.0, 2.0, 1.0), Number(1.0, high=float("inf"))])
def test_numbers_that_are_none(tmp_path: Path, number: Number) -> None:
    bad = dataclasses.replace(squares(), run=lambda scale, cells: Outcome(Data(()), Numbers(number)))
    with pytest.raises(InputError, match=r"recovery\.largest"):
        go(tmp_path, experiment=bad)
    assert not (tmp_path / "results" / "recovery").exists()


def test_numpy_scalars_and_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = tmp_path / "checkout" / "results"
    (committed / "control").mkdir(parents=True)
    told = {"command": "graphsnd control", "hardware": {"gpu": "H200"}, "took_s": 3, "private": 1}
    (committed / "control" / "about.json").write_text(json.dumps(told))
    monkeypatch.setattr("paper.runner.RESULTS", committed)

    def read(scale: Scale, cells: Any) -> Outcome[Data, Numbers]:
        assert cells.results == committed
        sources = ("results/control", "results/other.csv")
        return Outcome(Data(()), Numbers(Number(np.float32(0.5), np.int64(0), np.float64(1))), sources=sources)

    result = go(tmp_path, experiment=dataclasses.replace(squares(), run=read, figure=draw))
    del told["private"]
    assert result.provenance["sources"] == {"results/control": told, "results/other.csv": None}
    assert result.sources == ("results/control", "results/other.csv")
    assert result.numbers["largest"] == Number(0.5, 0.0, 1.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"experiment": "a"}'])
def test_damaged_results(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results" / "recovery" / "paper.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InputError, match="Remove it"):
        go(tmp_path)


def test_names() -> None:
    with pytest.raises(InputError, match="one of recovery"):
        find("recover")
    with pytest.raises(InputError, match="one of recovery"):
        registry.check_names(["recovery", "recover"])
    assert registry.check_names([]) == registry.NAMES


def test_every_experiment_has_its_name() -> None:
    assert tuple(find(name).name for name in registry.NAMES) == registry.NAMES
