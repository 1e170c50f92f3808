"""Where numbers go besides ``metrics.csv``: TensorBoard, Weights & Biases, MLflow, and CSV files, all with one method.

A logger is anything with ``log(numbers, step)`` and ``close()``; each of these is of one run.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from graphsnd.arguments import checked
from graphsnd.errors import InputError, check_choice, require
from graphsnd.storage import naming


class Logger(Protocol):
    """What every logger does."""

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add numbers of one step."""

    def close(self) -> None:
        """Write what is not written yet."""


@checked
class TensorBoardLogger:
    """Event files in ``folder/name``; needs the extra ``tensorboard``.

    Args:
        folder: Of all runs.
        name: Of this run.
        after: Later steps of an interrupted run are hidden from TensorBoard.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self.writer = SummaryWriter(str(folder / name), purge_step=after + 1 if after else None)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add scalars."""
        for key, value in numbers.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and close."""
        self.writer.close()


@checked
class WandbLogger:
    """A run of Weights & Biases in the group of the folder's name; needs the extra ``wandb``.

    Project, entity and whether it is online are those of the environment: ``WANDB_PROJECT``, ``WANDB_MODE=offline``.

    Args:
        folder: Where its files go.
        name: Of this run. Its id is made of the group and this name: a training that resumes goes on with it.
        after: Unused: Weights & Biases itself refuses earlier steps.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        wandb = require("wandb", "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        group = folder.resolve().parent.name
        same = {"id": f"{group}-{name}", "resume": "allow", "reinit": "create_new"}
        self.run = wandb.init(dir=str(folder), name=name, group=group, **same)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add numbers."""
        self.run.log(dict(numbers), step=step)

    def close(self) -> None:
        """Finish the run."""
        self.run.finish()


@checked
class MLflowLogger:
    """A run of MLflow in the experiment of the folder's name; needs the extra ``mlflow``.

    It goes where MLflow's own settings say: ``MLFLOW_TRACKING_URI``.

    Args:
        folder: Whose parent, the folder of the training, names the experiment.
        name: Of this run.
        after: Go on with the newest run of this name, as when training resumes.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        self.client = require("mlflow.tracking", "mlflow").MlflowClient()
        title = folder.resolve().parent.name
        known = self.client.get_experiment_by_name(title)
        experiment = self.client.create_experiment(title) if known is None else known.experiment_id
        same = f"tags.`mlflow.runName` = '{name}'"
        before = self.client.search_runs([experiment], same, max_results=1) if after else []
        self.run = (before or [self.client.create_run(experiment, run_name=name)])[0].info.run_id

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add metrics."""
        for key, value in numbers.items():
            self.client.log_metric(self.run, key, value, step=step)

    def close(self) -> None:
        """End the run."""
        self.client.set_terminated(self.run)


@checked
class CsvLogger:
    """``folder/name.csv``, a line for each step; columns are the names of the first step.

    Args:
        folder: Of all runs.
        name: Of this run.
        after: Keep the lines up to this step, as when training resumes.
    """

    def __init__(self, folder: Path, name: str, *, after: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.csv"
        kept: list[dict[str, str]] = []
        if after and self.path.is_file():
            with self.path.open(newline="", encoding="utf-8") as file:
                kept = [row for row in csv.DictReader(file) if int(row["step"]) <= after]
        with naming(self.path):
            self.file = self.path.open("w", newline="", encoding="utf-8")
        self.writer: csv.DictWriter[str] | None = None
        for row in kept:
            self._write(row)

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Add a line."""
        self._write({"step": step, **numbers})

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        if self.writer is None:
            self.writer = csv.DictWriter(self.file, list(row))
            self.writer.writeheader()
        if new := [key for key in row if key not in self.writer.fieldnames]:
            raise InputError("numbers", f"with the names {', '.join(self.writer.fieldnames)}", f"also {', '.join(new)}")
        with naming(self.path):
            self.writer.writerow(row)
            self.file.flush()


LOGGERS: dict[str, type[TensorBoardLogger | WandbLogger | MLflowLogger | CsvLogger]] = {
    "tensorboard": TensorBoardLogger,
    "wandb": WandbLogger,
    "mlflow": MLflowLogger,
    "csv": CsvLogger,
}


@checked
def open_logger(kind: str, folder: Path, name: str, *, after: int = 0) -> Logger:
    """Return a logger of one run.

    Args:
        kind: ``"tensorboard"``, ``"wandb"``, ``"mlflow"`` or ``"csv"``.
        folder: Of a training; the logger's files go to a folder in it that is named after its kind.
        name: Of the run.
        after: The last step that stays, where a training resumes.

    Raises:
        InputError: For another kind.
        MissingExtraError: Where its package is not installed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     logger = open_logger("csv", Path(folder), "seed-0")
        ...     logger.log({"snd": 0.5}, step=1)
        ...     logger.close()
    """
    check_choice("loggers", kind, LOGGERS)
    return LOGGERS[kind](folder / kind, name, after=after)
