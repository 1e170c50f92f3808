"""Where numbers go besides ``metrics.csv``: TensorBoard, Weights & Biases, MLflow, and CSV files, all with one method.

A logger is anything with ``log(numbers, step)`` and ``close()``; each of these is of one run.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from graphsnd.errors import InputError, check_choice, check_integer, check_type, require
from graphsnd.files import naming, write_whole


class Logger(Protocol):
    """What every logger does.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     logger = open_logger("csv", Path(folder), "seed-0")
        ...     logger.log({"snd": 0.5}, step=1)
        ...     logger.close()
        ...     [path.name for path in Path(folder).rglob("*.csv")]
        ['seed-0.csv']
    """

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add numbers of one step."""

    def close(self) -> None:
        """Write what is not written yet."""


class TensorBoardLogger:
    """Event files in ``folder/name``; needs the extra ``tensorboard``.

    Args:
        folder: Folder of all runs.
        name: Name of this run.
        after: Later steps of an interrupted run are hidden from TensorBoard.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self.writer = SummaryWriter(str(folder / name), purge_step=after + 1)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add scalars."""
        for key, value in numbers.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and close."""
        self.writer.close()


class WandbLogger:
    """A run of Weights & Biases in the group of the training folder's name; needs the extra ``wandb``.

    Project, entity and whether it is online are those of the environment: ``WANDB_PROJECT``, ``WANDB_MODE=offline``.

    Args:
        folder: Where its files go.
        name: Name of this run.
        after: Go on with the run of this folder, as when training resumes. It refuses earlier steps by itself.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        wandb = require("wandb", "wandb")
        same = _find_id(folder / f"{name}.id", after, lambda: f"{uuid4().hex[:8]}-{name}")
        group = folder.resolve().parent.name
        self.run = wandb.init(dir=str(folder), name=name, group=group, id=same, resume="allow", reinit="create_new")

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add numbers."""
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()


class MLflowLogger:
    """A run of MLflow in the experiment of the training folder's name; needs the extra ``mlflow``.

    It goes where MLflow's own settings say: ``MLFLOW_TRACKING_URI``.

    Args:
        folder: Where the id of the run is kept.
        name: Name of this run.
        after: Go on with the run of this folder, as when training resumes. Steps that it has are not logged twice.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        self.client = require("mlflow.tracking", "mlflow").MlflowClient()
        title = folder.resolve().parent.name
        known = self.client.get_experiment_by_name(title)
        experiment = self.client.create_experiment(title) if known is None else known.experiment_id
        make = lambda: str(self.client.create_run(experiment, run_name=name).info.run_id)  # noqa: E731
        self.run = _find_id(folder / f"{name}.id", after, make)
        there = self.client.get_run(self.run).data.metrics
        self.last = max(
            (old.step for key in there for old in self.client.get_metric_history(self.run, key)), default=-1
        )

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add metrics."""
        for key, value in numbers.items() if step > self.last else ():
            self.client.log_metric(self.run, key, value, step=step)

    def close(self) -> None:
        """End the run."""
        self.client.set_terminated(self.run)


def _find_id(path: Path, after: int, make: Callable[[], str]) -> str:
    """Return the id of the run that goes on, or of a new one, which is kept in a file for the next time."""
    if not after or not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, make())
    return path.read_text(encoding="utf-8")


class CsvLogger:
    """``folder/name.csv``, a line for each step and a column for each name; later names are columns at the end.

    Args:
        folder: Folder of all runs.
        name: Name of this run.
        after: Keep the lines up to this step, as when training resumes.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.names = folder / f"{name}.csv", ["step"]
        kept = self._read() if after and self.path.is_file() else []
        self._begin([row for row in kept if int(row["step"]) <= after])

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add a line."""
        if new := [key for key in numbers if key not in self.names]:
            self.file.close()
            kept = self._read()
            self.names += new
            self._begin(kept)
        with naming(self.path):
            self.writer.writerow({"step": step, **numbers})
            self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def _read(self) -> list[dict[str, str]]:
        text = self.path.read_bytes().decode(errors="replace")
        # What follows the last line end was cut, by a full disk or a crash: its step may be another one's first digits.
        reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
        self.names = list(reader.fieldnames or self.names)
        return list(reader)

    def _begin(self, rows: Sequence[Mapping[str, str]]) -> None:
        with naming(self.path):
            self.file = self.path.open("w", newline="", encoding="utf-8")
            self.writer = csv.DictWriter(self.file, self.names)
            self.writer.writeheader()
            self.writer.writerows(rows)
            self.file.flush()


LOGGERS: dict[str, type[TensorBoardLogger | WandbLogger | MLflowLogger | CsvLogger]] = {
    "tensorboard": TensorBoardLogger,
    "wandb": WandbLogger,
    "mlflow": MLflowLogger,
    "csv": CsvLogger,
}


def open_logger(kind: str, folder: Path, name: str, *, after: int = 0) -> Logger:
    """Return a logger of one run.

    Args:
        kind: ``"tensorboard"``, ``"wandb"``, ``"mlflow"`` or ``"csv"``.
        folder: Folder of a training; the logger's files go to a folder in it that is named after its kind.
        name: Name of the run.
        after: The last step that stays, where a training resumes.

    Raises:
        InputError: For another kind, and a name that is a path.
        MissingExtraError: Where its package is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     logger = open_logger("csv", Path(folder), "seed-0")
        ...     logger.log({"snd": 0.5}, step=1)
        ...     logger.close()
    """
    check_choice("loggers", kind, LOGGERS)
    check_type("name", name, str, "to be the name of a run")
    if name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:
        raise InputError("name", "to be the name of a file or folder, not a path", repr(name))
    after = check_integer("after", after, "to be an integer, at least 0", low=0)
    return LOGGERS[kind](Path(folder) / kind, name, after=after)
