from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsnd.training import Row, Settings, Task, Trainer, load_checkpoint, read_rows, train
from graphsnd.training.loop import choose_threads, interruptible
from graphsnd.worlds import Navigation

TASK = Task("navigation", 2, {}, (0,), Settings(steps=4, environments=2, hidden=(4,), iterations=8, diversity_every=0))


def test_ctrl_c_ends_between_iterations_and_saves(tmp_path: Path) -> None:
    def report(rows: object) -> None:
        if rows[0].iteration == 3:  # type: ignore[index]
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = train(TASK, tmp_path, report=report)
    assert not result.finished
    assert load_checkpoint(tmp_path).iteration == 3
    assert len(read_rows(tmp_path, Row)) == 3
    assert signal.getsignal(signal.SIGINT) is before
    assert train(TASK, tmp_path, resume=True).finished
    assert [row.iteration for row in read_rows(tmp_path, Row)] == list(range(1, 9))


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_threads_go_by_the_size_of_the_largest_product_unless_set() -> None:
    def chosen(runs: int, agents: int, **settings: Any) -> int:
        given = Settings(environments=4, steps=128, **settings)
        return choose_threads(Trainer(Navigation(agents, 4), given, seeds=range(runs)))

    # 512 samples and 64 x 64 weights are 2^21 multiply-adds for each agent: 16 agents are no longer brief.
    assert [chosen(1, 4), chosen(3, 5), chosen(1, 15), chosen(1, 16), chosen(2, 8)] == [1, 1, 1, 2, 2]
    assert (chosen(1, 16, minibatch=256), chosen(1, 4, hidden=(64, 128))) == (1, 2)
    assert (chosen(1, 4, threads=2), chosen(1, 16, threads=1), chosen(1, 4, hidden=())) == (2, 1, 1)


@pytest.mark.usefixtures("two_threads")
def test_threads_are_set_while_training_and_restored(tmp_path: Path) -> None:
    during = []
    for threads in (0, 2, 3):
        task = dataclasses.replace(TASK, settings=TASK.settings.replace(threads=threads))
        train(task, tmp_path / str(threads), report=lambda rows: during.append(torch.get_num_threads()))
        assert torch.get_num_threads() == 2
    assert during == [1] * 8 + [2] * 8 + [3] * 8
    assert load_checkpoint(tmp_path / "3").task.settings.threads == 3  # so a resumption has them too


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    with interruptible() as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_other_threads_cannot_be_interrupted() -> None:
    found = []

    def work() -> None:
        with interruptible() as stop:
            found.append(stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


def test_checkpoints_come_at_their_interval(tmp_path: Path) -> None:
    seen = []

    def report(rows: object) -> None:
        path = tmp_path / "checkpoint.safetensors"
        seen.append(load_checkpoint(tmp_path).iteration if path.exists() else 0)

    train(TASK, tmp_path, checkpoint_every=3, report=report)
    assert seen == [0, 0, 0, 3, 3, 3, 6, 6]
    assert load_checkpoint(tmp_path).iteration == 8
