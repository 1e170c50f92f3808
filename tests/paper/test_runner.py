from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.provenance import verify_commit
from graphsnd.errors import InputError
from graphsnd.rl.log import read_rows
from paper import runner
from paper.control.actions import read_actions
from paper.experiment import Number, Outcome, Scale
from paper.runner import Cells, gather_stacks, read_result, run, train_stacks, write_result
from tests.paper.fakes import Data, Square, squares
from tests.training import control_settings, control_task

ROOT = Path(__file__).parents[2]


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


def test_what_is_finished_is_not_repeated_unless_asked(tmp_path: Path) -> None:
    made: list[int] = []
    first = go(tmp_path, made=made)
    png = tmp_path / "results" / "recovery" / "paper.png"
    png.unlink()
    assert go(tmp_path, made=made) == first
    assert png.is_file()  # only the figure was made
    assert made == [2, 3, 4]
    go(tmp_path, made=made, again=True)
    assert made == [2, 3, 4] * 2
    go(tmp_path, made=made, scale=Scale.SMOKE)
    assert made == [*[2, 3, 4] * 2, 2]


def test_a_finished_experiment_goes_on_where_a_gpu_can_make_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    task = control_task(3, (0.1,), ("complete",), settings=control_settings(iterations=1))
    trained = dataclasses.replace(squares(made=made), stacks={"control/none": task})
    measured = dataclasses.replace(squares(made=made), on_gpu=("rows",))
    go(tmp_path, experiment=trained)
    go(tmp_path, experiment=trained)
    assert made == [2, 3, 4]  # nothing here could train it
    go(tmp_path, experiment=trained, ray="a cluster with GPUs")
    assert made == [2, 3, 4] * 2
    monkeypatch.setattr("paper.runner.torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True)))
    go(tmp_path, experiment=measured)
    assert made == [2, 3, 4] * 2
    path = tmp_path / "results" / "recovery" / "paper.json"
    write_result(replace(read_result(path), data={"rows": []}), path)
    go(tmp_path, experiment=measured)
    assert made == [2, 3, 4] * 3


def test_an_interrupted_run_continues_and_its_time_adds_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("paper.runner.perf_counter", lambda: now)
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
    stops.append(4)
    with pytest.raises(KeyboardInterrupt):
        go(tmp_path, made=made, before=work, again=True)
    go(tmp_path, made=made, before=work, again=True)  # a repetition that was stopped continues too
    assert made == [2, 3, 4, 2, 3, 4]


def test_a_killed_process_continues_from_its_cells(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from paper.experiment import Scale\nfrom paper.runner import run\n"
        "from tests.paper.fakes import squares\n"
        "kill = lambda n: n == 3 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "folder = Path(sys.argv[1])\n"
        "run(squares(before=kill), Scale.LAPTOP, out=folder / 'results', work=folder / 'work')\n"
    )
    done = run_python(ROOT, "-c", script, str(tmp_path))
    assert done.returncode == -signal.SIGKILL
    made: list[int] = []
    go(tmp_path, made=made, scale=Scale.LAPTOP)
    assert made == [3]


def test_paper_scale_needs_sources_of_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="sources that changed"), monkeypatch.context() as patch:
        go(tmp_path, before=lambda n: patch.setattr("paper.runner.find_commit", lambda: {"tree": "other"}))
    monkeypatch.setattr("paper.runner.verify_commit", verify_commit)
    changed = {"commit": "1" * 40, "dirty": True, "tree": "2"}
    monkeypatch.setattr("benchmarks.provenance.find_commit", lambda: changed)
    with pytest.raises(InputError, match="changed since commit 1111"):
        go(tmp_path, before=lambda n: pytest.fail("ran"))
    assert not (tmp_path / "results").exists()
    assert go(tmp_path, scale=Scale.LAPTOP).provenance["dirty"] is True


@pytest.mark.parametrize("number", [Number(float("nan")), Number(1.0, 2.0, 1.0), Number(1.0, high=float("inf"))])
def test_numbers_that_are_none(tmp_path: Path, number: Number) -> None:
    bad = dataclasses.replace(squares(), run=lambda scale, cells: Outcome(Data(()), {"largest": number}))
    with pytest.raises(InputError, match=r"recovery\.largest"):
        go(tmp_path, experiment=bad)
    assert not (tmp_path / "results" / "recovery").exists()


def test_sources_tell_where_they_come_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed = tmp_path / "checkout" / "results"
    (committed / "control").mkdir(parents=True)
    told = {"command": "graphsnd control", "hardware": {"gpu": "H200"}, "took_s": 3, "task": {}}
    (committed / "control" / "about.json").write_text(json.dumps(told))
    monkeypatch.setattr("paper.runner.RESULTS", committed)
    sources = ("results/control", "results/other.csv")
    outcome = Outcome(Data(()), {"largest": Number(0.5), "none": None}, sources=sources)
    result = go(tmp_path, experiment=dataclasses.replace(squares(), run=lambda scale, cells: outcome))
    del told["task"]
    assert result.provenance["sources"] == {"results/control": told, "results/other.csv": None}
    assert (result.sources, result.numbers) == (sources, {"largest": Number(0.5)})


def test_a_cell_is_made_once_and_again_with_other_settings_or_when_damaged(tmp_path: Path) -> None:
    begun: list[str] = []
    cells, path = Cells(tmp_path, step=begun.append), tmp_path / "n=4.json"
    for settings, value in (({"n": (4,)}, 1), ({"n": [4]}, 2), ({"n": [5]}, 3), ({"n": [4]}, 4)):
        found = cells.get("n=4", settings, lambda value=value: {"value": value}, dict)
        assert found["value"] == {1: 1, 2: 1, 3: 3, 4: 4}[value]
    assert begun == ["n=4"] * 3
    whole = path.read_bytes()
    for content in (*(whole[:end] for end in range(len(whole))), b"\xff\x00", b"[]", b'{"settings": {}}'):
        path.write_bytes(content)
        assert cells.get("n=4", {}, lambda: Number(2.0), Number).value == 2.0
        assert cells.get("n=4", {}, lambda: Number(3.0), Number).value == 2.0


def test_work_of_no_commit_is_repeated_at_paper_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Cells(tmp_path)
    first.get("a", {}, lambda: 1, int)
    (tmp_path / "b.json").write_text('{"settings": {}, "value": 2}')  # from before cells said so
    (first.folder("training") / "checkpoint").write_text("")
    again, clean = Cells(tmp_path), Cells(tmp_path, clean=True)
    assert (again.get("a", {}, lambda: 3, int), again.get("b", {}, lambda: 4, int)) == (1, 2)
    assert again.made == ["0" * 40, "unknown"]
    assert (clean.get("a", {}, lambda: 3, int), clean.get("b", {}, lambda: 4, int)) == (1, 4)
    assert not (clean.folder("training") / "checkpoint").exists()


SETTINGS = control_settings(
    environments=2, steps=5, minibatch=5, epochs=1, hidden=(8,), observations=15, audit_observations=15, iterations=3
)
TASK = control_task(3, (0.1,), ("complete", "bernoulli:0.5"), settings=SETTINGS)
TASKS = {"control/a/first": TASK, "control/a/second": replace(TASK, seeds=(1,))}


@pytest.fixture
def cells(tmp_path: Path) -> Cells:
    return Cells(tmp_path / "work", results=tmp_path / "results", out=tmp_path / "out", clean=True)


def test_a_study_over_several_visits(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gather_stacks(TASKS, cells) == []  # without a GPU nothing is trained
    train_stacks(TASKS, ["control/a/second"], cells, device="cpu")
    assert gather_stacks(TASKS, cells) == [cells.out / "control/a/second"]
    real, half = runner.train_cell, replace(TASK, settings=SETTINGS.replace(iterations=2))

    def stop(task: Any, *arguments: Any, **options: Any) -> None:
        real(half, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "train_cell", stop)
    with pytest.raises(KeyboardInterrupt):
        train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    assert json.loads((cells.out / "control/a/first/about.json").read_text())["iterations"] == 2
    monkeypatch.setattr(runner, "train_cell", real)
    train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    first, second = gather_stacks(TASKS, cells)
    rows = read_rows(first)
    assert [(row.iteration, row.arm, row.seed) for row in rows[:2]] == [(1, "complete", 0), (1, "bernoulli:0.5", 0)]
    assert len(rows) == 6
    kept = ["about.json", "actions.json", "metrics.csv"]
    assert sorted(path.name for path in second.iterdir()) == kept
    about = json.loads((first / "about.json").read_text())
    assert (about["cells"], about["iterations"], about["seeds"]) == (["0" * 40], 3, [0])
    assert {"commit", "dirty", "tree", "hardware", "versions", "date", "command"} <= about.keys()
    assert [(action.arm, 0 < action.ratio <= 1) for action in read_actions(first)] == [
        ("complete", True),
        ("bernoulli:0.5", True),
    ]
    with monkeypatch.context() as patch:
        patch.setattr("paper.runner.torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: True)))
        more = TASKS | {"control/a/third": replace(TASK, seeds=(2,))}
        assert runner.stacks_to_train(more, cells) == ["control/a/third"]
        cells.again = True
        assert runner.stacks_to_train(more, cells) == list(more)
        cells.again = False
    with pytest.raises(InputError, match="log of another task"):
        gather_stacks({"control/a/first": replace(TASK, seeds=(5,))}, cells)


def test_the_last_result_is_found(tmp_path: Path) -> None:
    cells = Cells(tmp_path / "work" / "paper" / "recovery", results=tmp_path / "results")
    assert cells.earlier(Data) is None
    go(tmp_path)
    assert cells.earlier(Data) == Data((Square(2, 4), Square(3, 9), Square(4, 16)))


def run_python(root: Path, *arguments: str) -> Any:
    environment = os.environ | {"PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)


ASK = """
from benchmarks.provenance import find_commit
from pathlib import Path
from benchmarks.provenance import find_commit
print(*[find_commit()[name] for name in ("commit", "dirty")])
Path("paper/recovery.py").write_text("")
print(*[find_commit()[name] for name in ("commit", "dirty")])
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_packed_commit_knows_itself_and_notices_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, copy = tmp_path / "checkout", tmp_path / "copy"
    for name in ("src", "paper", "benchmarks"):
        shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("results", "__pycache__"))
    (checkout / "tests").mkdir()
    (checkout / "paper/results").mkdir()
    for name in ("tests/one.py", "paper/results/old.json"):
        (checkout / name).write_text("")
    for name in ("pyproject.toml", "Makefile", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -q -m all"):
        subprocess.run(["git", "-C", str(checkout), *words.split()], check=True, capture_output=True)
    done = run_python(checkout, "-m", "paper", "pack", str(tmp_path / "sources.tgz"))
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "sources.tgz") as archive:
        archive.extractall(copy, filter="data")
    assert not (copy / "paper" / "results").exists()
    commit, clean, same, dirty = run_python(copy, "-c", ASK).stdout.split()
    assert (clean, dirty, same) == ("False", "True", commit)
    assert commit in done.stdout
    (checkout / "paper" / "recovery.py").write_text("")
    refused = run_python(checkout, "-m", "paper", "pack", str(tmp_path / "more.tgz"))
    assert (refused.returncode != 0, (tmp_path / "more.tgz").exists()) == (True, False)
    assert "changed since commit" in " ".join(refused.stderr.split())
