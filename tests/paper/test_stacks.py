from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.rl import Settings, Task
from graphsnd.rl.log import read_rows
from paper import stacks
from paper.cells import Cells
from paper.control.actions import ActionDiversity, read_actions
from paper.registry import find
from paper.runner import train
from paper.stacks import gather_stacks, read_or_measure, train_stacks
from tests.training import control_settings, control_task

SETTINGS = control_settings(
    environments=2, steps=5, minibatch=5, epochs=1, hidden=(8,), observations=15, audit_observations=15, iterations=3
)
TASK = control_task(3, (0.1,), ("complete", "bernoulli:0.5"), settings=SETTINGS)
TASKS = {"control/a/first": TASK, "control/a/second": replace(TASK, seeds=(1,))}
TEAMS = {"training/team": Task("navigation", 2, {}, (0, 1), settings=Settings(steps=4, environments=2, iterations=2))}


@pytest.fixture
def cells(tmp_path: Path) -> Cells:
    return Cells(tmp_path / "work", results=tmp_path / "results", out=tmp_path / "out", clean=True)


def test_a_study_over_several_visits(cells: Cells) -> None:
    assert gather_stacks(TASKS, cells) == []  # without a GPU nothing is trained
    train_stacks(TASKS, ["control/a/second"], cells, device="cpu")
    assert gather_stacks(TASKS, cells) == [cells.out / "control/a/second"]
    train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    first, second = gather_stacks(TASKS, cells)
    rows = read_rows(first)
    assert [(row.iteration, row.arm, row.seed) for row in rows[:2]] == [(1, "complete", 0), (1, "bernoulli:0.5", 0)]
    assert len(rows) == 6
    assert sorted(path.name for path in second.iterdir()) == [
        "about.json",
        "actions.json",
        "metrics.csv",
        "settings.json",
    ]
    about = json.loads((first / "about.json").read_text())
    assert (about["cells"], about["iterations"], about["seeds"]) == (["0" * 40], 3, [0])
    assert {"commit", "dirty", "tree", "hardware", "versions", "date", "command"} <= about.keys()
    actions = read_actions(first)
    assert all(isinstance(action, ActionDiversity) for action in actions)
    assert [(action.arm, 0 < action.ratio <= 1) for action in actions] == [("complete", True), ("bernoulli:0.5", True)]


def test_a_gpu_trains_what_is_missing(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    trained: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(stacks, "train_stacks", lambda tasks, names, cells: trained.extend(names))
    gather_stacks(TASKS, cells)
    assert trained == ["control/a/second"]
    cells.again = True
    gather_stacks(TASKS, cells)
    assert trained == ["control/a/second", "control/a/first", "control/a/second"]


def test_a_stopped_stack_leaves_its_log_and_goes_on(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    real, half = stacks.train_cell, replace(TASK, settings=SETTINGS.replace(iterations=2))

    def stop(task: Any, *arguments: Any, **options: Any) -> None:
        real(half, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(stacks, "train_cell", stop)
    with pytest.raises(KeyboardInterrupt):
        train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    (folder,) = (cells.out / name for name in TASKS if (cells.out / name).exists())
    assert json.loads((folder / "about.json").read_text())["iterations"] == 2
    monkeypatch.setattr(stacks, "train_cell", real)
    news: list[str] = []
    cells.step = news.append
    train_stacks(TASKS, list(TASKS), cells, device="cpu")
    assert news[1] == "control,a,first, iteration 3 of 3"
    assert news[-1].startswith("control,a,second, iteration 3 of 3, about 0.0 s left")
    assert [len(read_rows(folder)) for folder in gather_stacks(TASKS, cells)] == [6, 6]


def test_teams_come_along(cells: Cells) -> None:
    train_stacks(TEAMS, list(TEAMS), cells, device="cpu")
    (folder,) = gather_stacks(TEAMS, cells)
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    assert {"metrics.csv", "seed-1/team.safetensors", "seed-1/observations.safetensors"} <= kept
    assert "checkpoint.safetensors" not in kept
    assert len(read_rows(folder)) == 4


def test_a_log_of_another_task_is_refused(cells: Cells) -> None:
    train_stacks(TASKS, ["control/a/first"], cells, device="cpu")
    with pytest.raises(InputError, match="log of another task"):
        gather_stacks({"control/a/first": replace(TASK, seeds=(5,))}, cells)
    with pytest.raises(InputError, match=r"among control/a/first, control/a/second.*'other'"):
        train_stacks(TASKS, ["other"], cells)


def test_what_one_machine_measured_is_read_elsewhere(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cells.get("one", {}, lambda: [1, 2], list[int])

    def make() -> list[int]:
        return cells.get("two", {}, lambda: [3, 4], list[int])

    def read(where: Cells, *, here: bool) -> stacks.Measured[list[int]] | None:
        return read_or_measure("timing/gpu.json", make, list[int], where, here=here, seeds=(7,))

    assert read(cells, here=False) is None
    monkeypatch.setattr("paper.cells.describe_hardware", lambda: {"load": 1.0})
    monkeypatch.setattr(stacks, "collect_provenance", lambda command: {"date": "z", "hardware": {"load": 0}})
    measured = read(cells, here=True)
    assert measured is not None
    assert measured.provenance["seeds"] == [7]
    assert 0 <= measured.provenance["took_s"] < 60
    assert (made, measured.value, measured.provenance["cells"]) == ([1, 2], [3, 4], ["0" * 40])
    for there in (cells, Cells(cells.root, results=cells.out)):
        for here in (True, False):
            assert read(there, here=here) == measured


def test_the_stacks_of_the_studies_hold_every_run_once() -> None:
    from paper.dico_10 import WHOLE as TEN
    from paper.dico_50 import ECONOMICAL, SIZES, WHOLE
    from paper.experiment import Scale

    for tasks, count in ((ECONOMICAL, 9), (WHOLE, 18), (TEN, 15)):
        runs = [run for task in tasks.values() if isinstance(task, Task) for run in task.runs()]
        assert len(runs) == len(set(runs)) == count
    assert {run for task in WHOLE.values() for run in task.runs()} == set(SIZES[Scale.PAPER].task.runs())


def test_the_command_trains_some_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paper.runner.verify_commit", lambda name, root: None)
    experiment = replace(find("dico-50"), stacks=TASKS)
    train(experiment, ["control/a/second"], out=tmp_path / "out", work=tmp_path / "work", device="cpu")
    assert (tmp_path / "out/control/a/second/metrics.csv").is_file()
    assert not (tmp_path / "out/control/a/first").exists()
    with pytest.raises(InputError, match=r"`NAME` of an experiment with trainings, got 'recovery'"):
        train(find("recovery"), device="cpu")
