"""Grids and rollouts on a real Ray cluster of several nodes on this machine."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.grid import run_stacks
from graphsnd.rl.log import read_rows
from paper.runner import Cells, gather_stacks, train_stacks
from tests.rl.ray_cluster import begin_command, count_iterations, kill_nodes, numbers, run_command, start_cluster
from tests.rl.run_folders import differences
from tests.training import control_settings, control_task

ray = pytest.importorskip("ray")
SMALL: dict[str, Any] = {"steps": 4, "environments": 2, "epochs": 1, "minibatch": 4, "hidden": (4,), "iterations": 4}
TASK = Task("navigation", 2, {}, (0, 7), settings=Settings(**SMALL, diversity_every=2))
COMMAND = (
    "train", "dispersion", "--agents", "3", "--set", "environments=2", "--set", "steps=8", "--set", "epochs=2",
    "--set", "minibatch=8", "--set", "hidden=[8]", "--set", "observations=16", "--set", "audit_observations=16",
    "--device", "cpu", "--checkpoint-every", "5", "--stack", "1",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with start_cluster(2) as made:
        ray.init(address=made.address, logging_level="ERROR", log_to_driver=False)
        yield made
        ray.shutdown()


def fragile(name: str, task: Any, folder: Path) -> int:
    """Train a stack whose worker dies in its first two attempts, always, or never; or that cannot be trained."""

    def report(rows: Any) -> None:
        if name == "dies" or (name == "killed" and folder.suffix in (".1", ".2") and rows[0].iteration == 3):
            os.kill(os.getpid(), signal.SIGKILL)

    if name == "wrong":
        raise InputError("stack", "to be right", "another")
    return train(task, folder, resume=folder.suffix != ".1", checkpoint_every=1, on_row=report).stopped


def test_workers_that_die(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.rl.grid.RETRIES", 2)
    stacks = dict.fromkeys(("killed", "dies", "wrong", "whole"), TASK)
    told: list[list[str]] = []
    done, stopped = run_stacks(
        stacks, tmp_path / "r", fragile, device="cpu", ray="any",
        report=lambda stacks: told.append([each.state for each in stacks]),
    )  # fmt: skip
    assert stopped == 0
    assert [each.state for each in done] == ["finished", "failed", "failed", "finished"] == told[-1]
    assert "lost 3 times" in done[1].error
    assert done[2].error == "InputError: Expected `stack` to be right, got another."
    train(TASK, tmp_path / "alone")
    for name in ("killed", "whole"):
        assert differences(tmp_path / "r" / name, tmp_path / "alone") == []


def test_stacks_of_the_paper(cluster: Any, tmp_path: Path) -> None:
    settings = control_settings(**SMALL, observations=15, audit_observations=15)
    task = control_task(3, (0.1,), ("complete",), settings=settings)
    study = {"control/a/first": task, "training/team": TASK}
    for name, address in (("one", None), ("ray", "any")):
        cells = Cells(tmp_path / name, results=tmp_path / "none", out=tmp_path / f"{name}-out", ray=address)
        train_stacks(study, list(study), cells, device="cpu")
        assert gather_stacks(study, cells) == [cells.out / each for each in study]
        assert sorted(path.name for path in cells.root.iterdir()) == ["control,a,first", "training,team"]
    first, second = (tmp_path / f"{name}-out" / "control/a/first" for name in ("one", "ray"))
    assert numbers(first) == numbers(second)
    assert (first / "actions.json").read_text() == (second / "actions.json").read_text()


def compare(folder: Path, reference: Path, runs: int, iterations: int) -> None:
    """Raise unless merged logs, and all files of all stacks, are the same but for seconds."""
    assert len(read_rows(folder)) == runs * iterations
    assert numbers(folder) == numbers(reference)
    names = sorted(path.name for path in (reference / "stacks").iterdir())
    assert sorted(path.name for path in (folder / "stacks").iterdir()) == names
    assert [differences(folder / "stacks" / name, reference / "stacks" / name) for name in names] == [[]] * len(names)


def kill_while_training(
    cluster: Any, out: Path, grid: tuple[str, ...], runs: int, iterations: int, moments: Sequence[int]
) -> str:
    """Train a grid in one process, and again on a cluster whose nodes are killed; return what the second one said."""
    words = (*COMMAND, *grid, "--iterations", str(iterations))
    run_command(*words, "--out", str(out / "alone"))
    process = begin_command(*words, "--out", str(out / "many"), "--ray", cluster.address)
    killed = kill_nodes(cluster, out / "many", process, moments, seed=1)
    said = process.communicate()[0]
    assert process.returncode == 0, said
    assert len(killed) == len(moments)
    compare(out / "many", out / "alone", runs, iterations)
    return said


def test_a_node_that_is_killed_changes_no_bit(cluster: Any, tmp_path: Path) -> None:
    kill_while_training(cluster, tmp_path, ("--target", "0.1,homogeneous", "--seeds", "0,1"), 4, 40, [30])


@pytest.mark.slow
def test_a_signal_saves_and_says_how_to_go_on(cluster: Any, tmp_path: Path) -> None:
    words = (*COMMAND, "--target", "0.1,0.2", "--seeds", "0,1", "--iterations", "120")
    run_command(*words, "--out", str(tmp_path / "alone"))
    process = begin_command(*words, "--out", str(tmp_path / "many"), "--ray", cluster.address)
    while count_iterations(tmp_path / "many") < 50:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[0]
    assert process.returncode == 130, said
    assert "stopped; go on with: graphsnd train --resume" in said
    run_command("train", "--resume", "--out", str(tmp_path / "many"), "--ray", cluster.address)
    compare(tmp_path / "many", tmp_path / "alone", 4, 120)


@pytest.mark.slow
def test_24_runs_on_3_nodes_of_which_10_are_killed(tmp_path: Path) -> None:
    grid = ("--target", "0.1,0.2,0.4", "--design", "complete,bernoulli:0.5", "--seeds", "0,1,2,3")
    chance = random.Random(7)
    moments = [chance.randrange(1, 24 * 60 * 2 // 3) for _ in range(10)]
    with start_cluster(3) as made:
        said = kill_while_training(made, tmp_path, grid, 24, 60, moments)
    assert "24 of 24 stacks finished" in said
    print(f"killed at {sorted(moments)} of {24 * 60} iterations; {said.strip().splitlines()[-1]}")
