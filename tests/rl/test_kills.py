"""Trainings that are killed at random moments, and resumed."""

from __future__ import annotations

import multiprocessing
import random
from itertools import count
from pathlib import Path

import pytest

from graphsnd.rl import Settings, Task, train
from graphsnd.rl.checkpoint import has_checkpoint
from tests.rl.run_folders import differences

SETTINGS = Settings(steps=4, environments=4, epochs=1, minibatch=16, hidden=(8,), iterations=30, threads=1)
TASKS = [
    Task("navigation", 2, seeds=(0, 1), settings=SETTINGS.replace(diversity_every=5)),
    Task("dispersion", 3, target=(0.2, "unconstrained", "seek:0.1:0.5"), design=("matching",), settings=SETTINGS),
]


def _train(task: Task, folder: Path) -> None:
    train(task, folder, resume=has_checkpoint(folder), checkpoint_every=3, keep_teams=True)


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.parametrize("task", TASKS, ids=["independent", "controlled"])
def test_a_training_that_is_killed_resumes_to_the_same_bits(task: Task, kills: int, tmp_path: Path) -> None:
    start = multiprocessing.get_context("forkserver")
    start.set_forkserver_preload(["tests.rl.test_kills"])
    train(task, tmp_path / "whole", checkpoint_every=3, keep_teams=True)
    moments, done = random.Random(0), 0
    for attempt in count():
        folder = tmp_path / str(attempt)
        finished = False
        while not finished:
            process = start.Process(target=_train, args=(task, folder))
            process.start()
            process.join(moments.uniform(0.0, 1.0) if done < kills else None)
            if process.is_alive():
                process.kill()
                process.join()
                done += 1
            else:
                assert process.exitcode == 0
                finished = True
        assert differences(folder, tmp_path / "whole") == []
        if done >= kills:
            return
