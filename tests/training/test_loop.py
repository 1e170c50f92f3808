from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from graphsnd.training import Row, Settings, Task, load_checkpoint, read_rows, train
from graphsnd.training.loop import interruptible

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
