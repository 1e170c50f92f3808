"""Every logger, read back with its own package."""

from __future__ import annotations

import csv
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.rl import Settings, Task, train
from graphsnd.rl.log import Row, read_rows
from graphsnd.rl.loggers import LOGGERS, CsvLogger, open_logger

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


def test_tensorboard_hides_what_was_logged_before_the_first_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # a training that is killed, and resumed from iteration 0
        logger = open_logger("tensorboard", tmp_path, "seed-0", after=0)
        for step in (1, 2):
            logger.log({"snd": 0.5}, step)
        logger.close()
    events = EventAccumulator(str(tmp_path / "tensorboard" / "seed-0"))
    events.Reload()
    assert [e.step for e in events.Scalars("snd")] == [1, 2]


def test_csv(tmp_path: Path) -> None:
    rows = trained(tmp_path, "csv")
    with (tmp_path / "csv" / "seed-7.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["step"]) for line in lines] == [1, 2, 3]
    assert [float(line["reward"]) for line in lines] == [row.reward for row in rows]
    logger = open_logger("csv", tmp_path, "other")
    logger.log({"a": 1.0, "b": 2.0}, 1)
    logger.log({"b": 3.0}, 2)
    logger.log({"c": 1.0}, 3)
    logger.close()
    logger = open_logger("csv", tmp_path, "other", after=2)
    logger.log({"c": 4.0}, 3)
    logger.close()
    lines_of_other = ["step,a,b,c", "1,1.0,2.0,", "2,,3.0,", "3,,,4.0"]
    assert (tmp_path / "csv" / "other.csv").read_text().splitlines() == lines_of_other


@pytest.mark.parametrize("cut", ["1", "12,0.", "\0\0"])
def test_a_line_that_was_cut_is_left_out(cut: str, tmp_path: Path) -> None:
    logger = open_logger("csv", tmp_path, "one")
    for step in range(1, 12):
        logger.log({"snd": 0.5}, step)
    logger.close()
    with (tmp_path / "csv" / "one.csv").open("a") as file:
        file.write(cut)
    open_logger("csv", tmp_path, "one", after=11).close()
    with (tmp_path / "csv" / "one.csv").open(newline="") as file:
        assert [(line["step"], line["snd"]) for line in csv.DictReader(file)] == [(str(k), "0.5") for k in range(1, 12)]


def test_a_logger_may_begin_with_a_resumption(tmp_path: Path) -> None:
    task = Task("navigation", 2, settings=SMALL)
    train(task.with_iterations(1), tmp_path)
    train(task, tmp_path, loggers=["csv"], resume=True)
    with (tmp_path / "csv" / "seed-0.csv").open(newline="") as file:
        assert [(line["step"], bool(line["snd"])) for line in csv.DictReader(file)] == [("2", True), ("3", True)]


def test_a_logger_that_fails_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(CsvLogger):
        def log(self, numbers: Mapping[str, float], step: int) -> None:
            if step == 2:
                raise ConnectionResetError if self.offline else ValueError("no more")

    monkeypatch.setitem(LOGGERS, "wandb", Broken)
    task = Task("navigation", 2, settings=SMALL)
    for offline, kind in ((True, ConnectionResetError), (False, InputError)):
        monkeypatch.setattr(Broken, "offline", offline, raising=False)
        folder = tmp_path / str(offline)
        with pytest.raises(kind, match=None if offline else "wandb.*ValueError: no more"):
            train(task, folder, loggers=["wandb", "csv"])
        assert [row.iteration for row in read_rows(folder)] == [1, 2]
        assert train(task, folder, resume=True).finished
        assert [row.iteration for row in read_rows(folder)] == [1, 2, 3]
    other = tmp_path / "whole"
    train(task, other)
    assert [row.reward for row in read_rows(folder)] == [row.reward for row in read_rows(other)]


@pytest.mark.integration
def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("mlflow.tracking")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlflow").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the other kinds need a server or a database
    rows = trained(tmp_path, "mlflow")
    client = tracking.MlflowClient()
    experiment = client.get_experiment_by_name(tmp_path.name)
    runs = client.search_runs([experiment.experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["seed-0", "seed-7"]
    (run,) = [run for run in runs if run.info.run_name == "seed-7"]
    history = client.get_metric_history(run.info.run_id, "reward")
    assert [(metric.step, metric.value) for metric in history] == [(row.iteration, row.reward) for row in rows]
    assert run.info.status == "FINISHED"
    # After a crash a step comes again; a new training in a folder of this name is another run.
    again = open_logger("mlflow", tmp_path, "seed-7", after=2)
    again.log({"reward": 9.0}, 3)
    again.log({"reward": 9.0}, 4)
    assert [m.step for m in client.get_metric_history(run.info.run_id, "reward")] == [1, 2, 3, 4]
    open_logger("mlflow", tmp_path / "elsewhere" / tmp_path.name, "seed-7").log({"reward": 1.0}, 1)
    assert len(client.search_runs([experiment.experiment_id])) == 3


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


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "mlflow"])
def test_a_missing_package_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (kind, f"{kind}.tracking"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=f"pip install {kind}"):
        open_logger(kind, tmp_path, "seed-0")


def test_an_unknown_one_is_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="mlflow"):
        train(Task("navigation", 2, settings=SMALL), tmp_path / "new", loggers=["weights"])
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b"])
def test_the_name_of_a_run_is_no_path(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`name` to be the name of a file or folder"):
        open_logger("csv", tmp_path, name)
    assert list(tmp_path.iterdir()) == []
