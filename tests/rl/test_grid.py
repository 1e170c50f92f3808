from __future__ import annotations

import dataclasses
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.rl import Settings, Task, train, train_grid
from graphsnd.rl.checkpoint import read_grid
from graphsnd.rl.grid import _attempt, find_folder, run_stacks
from graphsnd.rl.settings import BRIEF
from graphsnd.rl.task import cut_grid
from tests.rl.run_folders import differences, numbers
from tests.training import control_settings, control_task

SMALL: dict[str, Any] = {"steps": 4, "environments": 2, "epochs": 1, "minibatch": 4, "hidden": (4,), "iterations": 4}
GRID = Task("navigation", 2, {}, (0, 7, 3), settings=Settings(**SMALL, diversity_every=2))
CONTROL = control_task(
    3, (0.1, 0.2, "unconstrained"), ("complete", "matching"), (0, 1, 2), settings=control_settings(**SMALL)
)


@pytest.mark.parametrize("stack", [0, 1, 2, 3, 4, 6, 100])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("task", [GRID, CONTROL], ids=["train", "control"])
def test_every_run_is_in_one_stack(task: Any, device: str, stack: int) -> None:
    parts = cut_grid(task, device, stack=stack)
    names = [name for part in parts for name in part.run_names()]
    assert sorted(names) == sorted(task.run_names())
    assert len(names) == len(set(names))
    sizes = [len(part.run_names()) for part in parts]
    assert max(sizes) <= (stack or {"cpu": 4, "cuda": 12}[device])
    assert {part.settings.threads for part in parts} == {1}
    assert parts == cut_grid(task, device, stack=max(sizes))  # so that about.json says how to repeat it


def test_a_cpu_has_no_stack_that_asks_for_a_second_thread() -> None:
    for minibatch in (64, 512, 4096):
        task = Task("navigation", 4, seeds=tuple(range(8)), settings=Settings(environments=32, minibatch=minibatch))
        sizes = [len(part.seeds) for part in cut_grid(task)]
        product = 4 * minibatch * 64 * 64
        assert max(sizes) * product < BRIEF or sizes == [1] * 8
        assert max(sizes) == 4 or (max(sizes) + 1) * product >= BRIEF
    many = Task("navigation", 4, seeds=(0, 1), settings=Settings(threads=3))
    assert {part.settings.threads for part in cut_grid(many)} == {3}


def test_stacks_are_trainings_and_their_logs_one(tmp_path: Path) -> None:
    told: list[list[tuple[str, int]]] = []
    stacks, stopped = train_grid(
        CONTROL, tmp_path, device="cpu", stack=2, report=lambda all_: told.append([(s.state, s.done) for s in all_])
    )
    assert stopped == 0
    assert told[0][0] == ("waiting", 0)
    assert told[-1] == [("finished", 4)] * len(stacks)
    merged = numbers(tmp_path)
    assert [(row["iteration"], row["arm"], row["target"], row["seed"]) for row in merged] == [
        (iteration, run.arm, run.target, run.seed) for iteration in range(1, 5) for run in CONTROL.runs()
    ]
    for stack in stacks:
        alone = tmp_path / "alone" / stack.name
        train(stack.task, alone)
        assert differences(tmp_path / "stacks" / stack.name, alone) == []
        mine = [row for row in merged if (row["arm"], row["target"], row["seed"]) in
                [(run.arm, run.target, run.seed) for run in stack.task.runs()]]  # fmt: skip
        assert mine == numbers(alone)


def test_a_grid_is_resumed_with_its_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_grid(GRID, tmp_path / "whole", device="cpu", stack=2)
    short = GRID.with_iterations(2)
    train_grid(short, tmp_path / "parts", device="cpu", stack=2)
    assert read_grid(tmp_path / "parts")[0] == short
    monkeypatch.setattr("graphsnd.rl.task.MOST", {"cpu": 1, "cuda": 1})  # another rule, as of another version
    train_grid(GRID, tmp_path / "parts", resume=True)
    assert [part.seeds for part in read_grid(tmp_path / "parts")[2]] == [(0,), (7, 3)]
    assert numbers(tmp_path / "parts") == numbers(tmp_path / "whole")
    before = (tmp_path / "parts" / "stacks" / "1" / "metrics.csv").stat().st_mtime_ns
    assert all(stack.state == "finished" for stack in train_grid(GRID, tmp_path / "parts", resume=True)[0])
    assert (tmp_path / "parts" / "stacks" / "1" / "metrics.csv").stat().st_mtime_ns == before  # nothing to do
    with pytest.raises(InputError, match="but for iterations"):
        train_grid(dataclasses.replace(GRID, seeds=(0,)), tmp_path / "parts", resume=True)


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="grid of stacks"):
        train_grid(GRID, tmp_path / "none", resume=True)
    train_grid(GRID.with_iterations(1), tmp_path / "grid", device="cpu")
    for again in (train, train_grid):
        with pytest.raises(InputError, match="stacks of another training"):
            again(GRID, tmp_path / "grid", device="cpu")
    train(GRID.with_iterations(1), tmp_path / "plain")
    with pytest.raises(InputError, match="without a checkpoint"):
        train_grid(GRID, tmp_path / "plain", device="cpu")


def test_the_file_of_a_lock_that_no_process_holds_stops_nothing(tmp_path: Path) -> None:
    def interrupted(name: str, task: Any, folder: Path) -> int:
        train(task.with_iterations(2), folder)
        assert (folder / "run.lock").exists()
        return 2

    def whole(name: str, task: Any, folder: Path) -> int:
        return train(task, folder, resume=True).stopped

    stacks, stopped = run_stacks({"a": GRID}, tmp_path / "b", interrupted, device="cpu")
    assert (stopped, stacks[0].state, stacks[0].done) == (2, "waiting", 2)
    assert find_folder(tmp_path / "b", "a") == tmp_path / "b" / "a.1"
    stacks, stopped = run_stacks({"a": GRID}, tmp_path / "b", whole, device="cpu")
    assert (stopped, stacks[0].state, stacks[0].done) == (0, "finished", 4)
    train(GRID, tmp_path / "alone")
    assert differences(tmp_path / "b" / "a", tmp_path / "alone") == []


def test_a_worker_that_was_given_up_and_lives_on_changes_nothing(tmp_path: Path) -> None:
    """The second attempt begins while the first one trains, and ends before it."""
    root = tmp_path / "b"

    def second(name: str, task: Any, folder: Path) -> int:
        assert folder == root / "a.2"
        return train(task, folder, resume=True, checkpoint_every=1).stopped

    def first(name: str, task: Any, folder: Path) -> int:
        def report(rows: Any) -> None:
            if rows[0].iteration == 2:
                run_stacks({"a": GRID}, root, second, device="cpu")

        train(task, folder, checkpoint_every=1, on_row=report)
        return 9  # which is told to no one

    run_stacks({"a": GRID}, root, first, device="cpu")
    assert [path.name for path in root.iterdir() if path.name != "a.1"] == ["a"]
    train(GRID, tmp_path / "alone")
    assert differences(root / "a", tmp_path / "alone") == []
    assert find_folder(root, "a") == root / "a"


def test_errors_can_be_sent_to_another_process() -> None:
    for error in (InputError("name", "to be", 3, "Fix it."), MissingExtraError("package", "project")):
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy)) == (type(error), str(error))


def test_without_ray_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match="pip install ray"):
        train_grid(GRID, tmp_path, ray="any")


def test_a_folder_that_nodes_do_not_share_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="on a path that every node shares"):
        _attempt(tmp_path / "elsewhere", "a", GRID, lambda name, task, folder: 0)
