from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsnd import InputError
from graphsnd.files import LOCK, hold_lock
from graphsnd.kernels.threads import limit_threads
from graphsnd.rl import Settings, Task, Trainer, train
from graphsnd.rl.checkpoint import load_checkpoint
from graphsnd.rl.log import METRICS, read_rows
from graphsnd.rl.loop import choose_threads
from graphsnd.rl.worlds import Navigation

TASK = Task(
    "navigation", 2, {}, (0,), settings=Settings(steps=4, environments=2, hidden=(4,), iterations=8, diversity_every=0)
)


def test_ctrl_c_ends_between_iterations_and_saves(tmp_path: Path) -> None:
    def report(rows: object) -> None:
        if rows[0].iteration == 3:  # type: ignore[index]
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = train(TASK, tmp_path, on_row=report)
    assert not result.finished
    assert load_checkpoint(tmp_path).iteration == 3
    assert len(read_rows(tmp_path)) == 3
    assert signal.getsignal(signal.SIGINT) is before
    assert train(TASK, tmp_path, resume=True).finished
    assert [row.iteration for row in read_rows(tmp_path)] == list(range(1, 9))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_system_may_end_a_training_that_saves_first(tmp_path: Path, number: signal.Signals) -> None:
    def progress(done: int) -> None:
        if done == 1 and not (tmp_path / METRICS).read_text().count("\n") < 3:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    reported: list[Any] = []
    result = train(TASK, tmp_path, progress=progress, on_row=reported.append)
    assert (result.finished, result.stopped) == (False, number)
    assert load_checkpoint(tmp_path).iteration == len(read_rows(tmp_path)) == len(reported) + 1
    assert signal.getsignal(number) is before
    with hold_lock(tmp_path / LOCK):  # is free
        pass
    assert train(TASK, tmp_path, resume=True).finished


def test_a_folder_that_another_process_writes_to_is_refused(tmp_path: Path) -> None:
    with hold_lock(tmp_path / LOCK):
        with pytest.raises(InputError, match="no other process writes to"):
            train(TASK, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]
    assert train(TASK, tmp_path).finished
    assert load_checkpoint(tmp_path).iteration == 8


@limit_threads(2)
def test_threads_go_by_the_size_of_the_largest_product_unless_set() -> None:
    def chosen(runs: int, agents: int, **settings: Any) -> int:
        given = Settings(environments=4, steps=128, **settings)
        return choose_threads(Trainer(Navigation(agents, 4), given, seeds=range(runs)))

    # 512 samples and 64 x 64 weights are 2^21 multiply-adds for each agent: 16 agents are no longer brief.
    assert [chosen(1, 4), chosen(3, 5), chosen(1, 15), chosen(1, 16), chosen(2, 8)] == [1, 1, 1, 2, 2]
    assert (chosen(1, 16, minibatch=256), chosen(1, 4, hidden=(64, 128))) == (1, 2)
    assert (chosen(1, 4, threads=2), chosen(1, 16, threads=1), chosen(1, 4, hidden=())) == (2, 1, 1)


@limit_threads(2)
def test_a_resumed_training_has_the_threads_it_began_with(tmp_path: Path) -> None:
    large = dataclasses.replace(TASK, settings=TASK.settings.replace(hidden=(2048,), iterations=1))
    assert train(large, tmp_path).threads == load_checkpoint(tmp_path).threads == 2
    torch.set_num_threads(1)  # a machine with fewer cores
    assert train(large.with_iterations(2), tmp_path, resume=True).threads == 2
