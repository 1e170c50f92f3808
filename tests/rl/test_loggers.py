"""Every logger, read back with its own package."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.log import LOGGERS, Row, RunLoggers, read_rows

SMALL = Settings(steps=4, environments=2, iterations=3, diversity_every=2)


def trained(folder: Path, kind: str) -> list[Row]:
    """Train two seeds in two parts, and return the rows of the second seed."""
    task = Task("navigation", 2, seeds=(0, 7), settings=SMALL)
    train(task.with_iterations(2), folder, loggers=[kind])
    train(task, folder, loggers=[kind], resume=True)
    return [row for row in read_rows(folder) if row.seed == 7]


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = trained(tmp_path, "tensorboard")
    events = EventAccumulator(str(tmp_path / "tensorboard" / "seed-7"))
    events.Reload()
    assert [e.step for e in events.Scalars("reward")] == [1, 2, 3]
    assert [e.value for e in events.Scalars("reward")] == pytest.approx([row.reward for row in rows], rel=1e-6)
    assert [e.step for e in events.Scalars("snd")] == [row.iteration for row in rows if row.snd is not None]


def test_a_logger_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failure: Exception
    task = Task("navigation", 2, settings=SMALL)
    closed: list[str] = []

    def broken(folder: Path, name: str, after: int) -> Any:
        def log(numbers: object, step: int) -> None:
            if step == 2:
                raise failure

        return log, lambda: closed.append(name)

    monkeypatch.setitem(LOGGERS, "wandb", broken)
    cases = ((ConnectionResetError(), ConnectionResetError), (ValueError("no more"), InputError))
    for raised, kind in cases:
        failure = raised
        folder = tmp_path / kind.__name__
        with pytest.raises(kind):
            train(task, folder, loggers=["wandb"])
        assert [row.iteration for row in read_rows(folder)] == [1, 2]
        assert train(task, folder, resume=True).finished
    train(task, tmp_path / "whole")
    assert [row.reward for row in read_rows(folder)] == [row.reward for row in read_rows(tmp_path / "whole")]
    assert closed == ["seed-0", "seed-0"]


def scan(content: bytes) -> Iterator[bytes]:
    """Yield the records of a .wandb file: LevelDB's log format, blocks of 32 KiB, after a header of 7 bytes."""
    place, parts = 7, b""
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack("<HB", content[place + 4 : place + 7])
        parts += content[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


@pytest.mark.integration
def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2 as protocol

    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    rows = trained(tmp_path, "wandb")
    rewards: dict[int, float] = {}
    for path in sorted((tmp_path / "wandb").rglob("*seed-7.wandb")):
        for data in scan(path.read_bytes()):
            record = protocol.Record()
            record.ParseFromString(data)
            items = {item.key or item.nested_key[0]: item.value_json for item in record.history.item}
            if "reward" in items:
                rewards[int(items["_step"])] = float(items["reward"])
    assert rewards == pytest.approx({row.iteration: row.reward for row in rows})


@pytest.mark.parametrize("kind", LOGGERS)
def test_a_missing_package_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(MissingExtraError, match=f"pip install {kind}"), ExitStack() as stack:
        RunLoggers([kind], tmp_path, ["seed-0"], stack, after=0)


def test_an_unknown_one_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean wandb"):
        train(Task("navigation", 2, settings=SMALL), tmp_path / "new", loggers=["wandbb"])
    assert not (tmp_path / "new").exists()
