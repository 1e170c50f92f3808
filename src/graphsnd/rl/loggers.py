"""TensorBoard and Weights & Biases, beside ``metrics.csv``: a run of each for every run of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from graphsnd.errors import InputError, require
from graphsnd.files import write_whole
from graphsnd.rl.log import Row, run_folder

Log = Callable[[Mapping[str, float], int], None]  # of numbers by name, and the iteration
Open = Callable[[Path, str, int], tuple[Log, Callable[[], None]]]  # how to log, and how to end


def open_tensorboard(folder: Path, name: str, after: int) -> tuple[Log, Callable[[], None]]:
    """Write event files to ``folder/tensorboard/name``; TensorBoard hides what an interrupted run had after a step."""
    require("tensorboard", "tensorboard")
    from torch.utils.tensorboard.writer import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard" / name), purge_step=after + 1)

    def log(numbers: Mapping[str, float], step: int) -> None:
        for key, value in numbers.items():
            writer.add_scalar(key, value, step)

    return log, writer.close


def open_wandb(folder: Path, name: str, after: int) -> tuple[Log, Callable[[], None]]:
    """Write to a run in the group of the folder's name, or go on with it; W&B refuses earlier steps by itself.

    Project, entity and whether it is online are those of the environment: ``WANDB_PROJECT``, ``WANDB_MODE=offline``.
    """
    wandb, known = require("wandb", "wandb"), folder / "wandb" / f"{name}.id"
    if not after or not known.is_file():
        known.parent.mkdir(parents=True, exist_ok=True)
        write_whole(known, f"{uuid4().hex[:8]}-{name}")
    group, same = folder.resolve().name, known.read_text(encoding="utf-8")
    run = wandb.init(dir=str(known.parent), name=name, group=group, id=same, resume="allow", reinit="create_new")
    return lambda numbers, step: run.log(dict(numbers), step=step), run.finish


LOGGERS: dict[str, Open] = {"tensorboard": open_tensorboard, "wandb": open_wandb}


class RunLoggers:
    """Loggers of all runs of a training.

    Args:
        kinds: Names of :data:`LOGGERS`.
        folder: Folder of the training.
        runs: Names of the runs, as :func:`~graphsnd.rl.log.run_folder` makes them.
        closing: Closes the loggers when it ends.
        after: The last iteration that stays, as when training resumes.
    """

    def __init__(
        self, kinds: Sequence[str], folder: Path, runs: Sequence[str], closing: ExitStack, *, after: int
    ) -> None:
        self.logs: list[tuple[str, str, Log]] = []
        for kind in kinds:
            for name in runs:
                log, close = LOGGERS[kind](folder, name, after)
                closing.callback(close)
                self.logs.append((kind, name, log))

    def write(self, rows: Sequence[Row]) -> None:
        """Log every number of every row."""
        named = {run_folder(row): row for row in rows}
        for kind, name, log in self.logs:
            numbers = {key: value for key, value in vars(named[name]).items() if isinstance(value, int | float)}
            del numbers["seed"]
            try:
                log(numbers, int(numbers.pop("iteration")))
            except OSError:
                raise
            except Exception as error:  # packages and servers of others have errors of their own
                raise InputError("loggers", f"with a {kind} that works", f"{type(error).__name__}: {error}") from error
