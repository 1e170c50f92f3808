"""What is written down about every iteration: always a CSV file, event files for TensorBoard on request."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from graphsnd.errors import InputError, require

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

METRICS = "metrics.csv"
T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True)
class Row:
    """One iteration of one run. None where nothing was measured."""

    iteration: int  # from 1
    seed: int
    reward: float  # of a step, mean over agents, environments and steps
    episodes: int  # that ended in the rollout
    solved: float | None  # share of agents that had done their part where an episode or the rollout ended
    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    snd: float | None  # of the updated policies, over all pairs
    graph_snd: float | None  # of the same, over a sampled graph
    snd_observations: int | None  # pooled observations that both looked at
    snd_seconds: float | None
    graph_snd_seconds: float | None
    behavior_seconds: float | None  # all policies on all of those observations, which both need
    rollout_seconds: float  # of all stacked runs together
    update_seconds: float


COLUMNS = [field.name for field in dataclasses.fields(Row)]


class Log(Protocol):
    """Something that rows are written to."""

    def write(self, rows: Sequence[Row]) -> None:
        """Add the rows of one iteration."""
        ...

    def close(self) -> None:
        """Finish."""
        ...


class CsvLog:
    """``metrics.csv``, flushed after every iteration.

    Args:
        folder: Where it is.
        after: Keep the rows up to this iteration, as when training resumes from an older checkpoint; 0 begins anew.
    """

    def __init__(self, folder: Path, *, after: int = 0) -> None:
        path = folder / METRICS
        kept = [row for row in read_rows(folder) if row.iteration <= after] if after and path.exists() else []
        self.file = path.open("w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(COLUMNS)
        self.write(kept)

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows."""
        self.writer.writerows(cells(row) for row in rows)
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class TensorBoardLog:
    """Event files, a folder for each run; needs the extra ``tensorboard``.

    Args:
        folder: Where they go.
        after: Later steps of an interrupted run are hidden from TensorBoard.
        place: From a row to the name of its run's folder.
    """

    def __init__(
        self, folder: Path, *, after: int = 0, place: Callable[[Any], str] = lambda row: f"seed-{row.seed}"
    ) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self.folder, self.after, self.place, self.make = folder, after, place, SummaryWriter
        self.writers: dict[str, Any] = {}

    def write(self, rows: Iterable[Any]) -> None:
        """Add every number as a scalar."""
        for row in rows:
            place = self.place(row)
            if place not in self.writers:
                purged = self.after + 1 if self.after else None
                self.writers[place] = self.make(str(self.folder / place), purge_step=purged)
            for name, value in dataclasses.asdict(row).items():
                if name not in ("iteration", "seed") and isinstance(value, int | float):
                    self.writers[place].add_scalar(name, value, row.iteration)

    def close(self) -> None:
        """Flush and close."""
        for writer in self.writers.values():
            writer.close()


def read_rows(folder: Path) -> list[Row]:
    """The rows of a folder's ``metrics.csv``; a last line that was cut off is left out.

    Raises:
        InputError: When there is no such file, or it is another one.
    """
    return read_table(folder, Row)


def read_table(folder: Path, kind: type[T]) -> list[T]:
    """The rows of ``metrics.csv`` as dataclasses of numbers and strings; a last line that was cut off is left out.

    Raises:
        InputError: When there is no such file, or it has other columns.
    """
    path, fields = folder / METRICS, dataclasses.fields(kind)
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    except OSError:
        raise InputError("folder", f"to hold {METRICS}", repr(str(folder))) from None
    if not lines or lines[0] != [field.name for field in fields]:
        raise InputError("folder", f"with a {METRICS} of this version and kind", f"other columns in {path}")
    whole = [cells for cells in lines[1:] if len(cells) == len(fields)]
    return [kind(*(_value(cell, str(f.type)) for cell, f in zip(cells, fields, strict=True))) for cells in whole]


def cells(row: DataclassInstance) -> list[str]:
    """A row as it is written, so that :func:`read_table` gives the same numbers back."""
    return [_cell(getattr(row, field.name)) for field in dataclasses.fields(row)]


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _value(cell: str, kind: str) -> Any:
    if kind == "str":
        return cell
    if not cell:
        return None
    return int(cell) if kind.startswith("int") else float(cell)
