"""Every logger, read back with its own package."""

from __future__ import annotations

import csv
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphsnd.errors import InputError, MissingExtraError
from graphsnd.training import Settings, Task, read_rows, train
from graphsnd.training.log import Row
from graphsnd.training.loggers import open_logger

SMALL = Settings(steps=4, environments=2, iterations=3, diversity_every=2)


def trained(folder: Path, kind: str) -> list[Row]:
    """Train two seeds in two parts, and return the rows of the second seed."""
    task = Task("navigation", 2, seeds=(0, 7), settings=SMALL)
    train(task.with_iterations(2), folder, loggers=[kind])
    train(task, folder, loggers=[kind], resume=True)
    return [row for row in read_rows(folder, Row) if row.seed == 7]


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    rows = trained(tmp_path, "tensorboard")
    events = EventAccumulator(str(tmp_path / "tensorboard" / "seed-7"))
    events.Reload()
    assert [e.step for e in events.Scalars("reward")] == [1, 2, 3]
    assert [e.value for e in events.Scalars("reward")] == pytest.approx([row.reward for row in rows], rel=1e-6)
    assert [e.step for e in events.Scalars("snd")] == [row.iteration for row in rows if row.snd is not None]


def test_csv(tmp_path: Path) -> None:
    rows = trained(tmp_path, "csv")
    with (tmp_path / "csv" / "seed-7.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["step"]) for line in lines] == [1, 2, 3]
    assert [float(line["reward"]) for line in lines] == [row.reward for row in rows]
    logger = open_logger("csv", tmp_path, "other")
    logger.log({"a": 1.0, "b": 2.0}, 1)
    logger.log({"b": 3.0}, 2)
    with pytest.raises(InputError, match="also c"):
        logger.log({"c": 1.0}, 3)
    logger.close()
    assert (tmp_path / "csv" / "other.csv").read_text().splitlines() == ["step,a,b", "1,1.0,2.0", "2,,3.0"]


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
        train(Task("navigation", 2, settings=SMALL), tmp_path, loggers=["weights"])
