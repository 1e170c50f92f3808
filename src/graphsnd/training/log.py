"""What is logged about every iteration: always a CSV file, event files for TensorBoard on request."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphsnd.errors import InputError, require
from graphsnd.training.rollout import RolloutBuffer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

METRICS = "metrics.csv"
T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of one iteration, from which rows are made."""

    iteration: int  # from 1
    buffer: RolloutBuffer
    numbers: Sequence[dict[str, Any]]  # reward and the learner's statistics of each run, by the names of columns
    seconds: Mapping[str, float]  # of rollout, audit, update, and what the companion counted


@dataclass(frozen=True, kw_only=True)
class Row:
    """One iteration of one run. None where nothing was measured."""

    iteration: int  # from 1
    seed: int
    reward: float  # of a step, mean over agents, environments and steps
    episodes: int  # that ended in the rollout
    solved: float | None  # in rollouts, with drawn actions: share of agents whose part was done where an episode or the
    # rollout ended; Evaluation.solved_at_end is of whole test episodes
    policy_loss: float
    value_loss: float
    entropy: float
    kl: float
    snd: float | None = None  # of the updated policies, over all pairs
    graph_snd: float | None = None  # of the same, over a sampled graph
    snd_observations: int | None = None  # pooled observations that both were measured on
    snd_seconds: float | None = None
    graph_snd_seconds: float | None = None
    behavior_seconds: float | None = None  # all policies on all of those observations, which both need
    rollout_seconds: float  # of all stacked runs together
    update_seconds: float


@dataclass(frozen=True, kw_only=True)
class ControlRow:
    """One iteration of one run. None where there is no target."""

    iteration: int  # from 1
    arm: str
    target: float | None
    seed: int
    reward: float  # of a step, mean over agents, environments and steps
    estimate: float  # the controller's, after the last step
    scale: float  # mean over the steps
    applied: float  # estimate times scale: the paper's signal, see graphsnd.control.tracking_error
    audit: float  # SND over all pairs of the policies that acted, before they learnt from it
    tracking_error: float | None  # of applied, relative
    audit_error: float | None  # of the audit, relative
    saturated: int  # steps whose scale was clipped by the bounds
    zero: int  # steps that measured no diversity
    empty: int  # steps whose draw had no pairs
    invalid: int  # steps whose measurement was not finite
    value_loss: float
    overflow: float  # largest distance of a mean from the box in a sample, mean over samples
    observations: int  # that each estimate was made on
    rollout_seconds: float  # of all stacked runs together
    policy_seconds: float  # of this arm's runs together: deviations evaluated for the estimates
    distance_seconds: float  # of this arm's runs together: drawing pairs and adding up their distances
    update_seconds: float  # of all runs together: the rest of learning
    audit_seconds: float  # of all runs together


class CsvLog:
    """``metrics.csv``, flushed after every iteration.

    Args:
        folder: Where it is.
        kind: The dataclass of its rows.
        after: Keep the rows up to this iteration, as when training resumes; 0 starts a new log.
    """

    def __init__(self, folder: Path, kind: type[Row] | type[ControlRow], *, after: int = 0) -> None:
        path = folder / METRICS
        kept = [row for row in read_rows(folder, kind) if row.iteration <= after] if after and path.exists() else []
        self.file = path.open("w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow([field.name for field in dataclasses.fields(kind)])
        self.write(kept)

    def write(self, rows: Sequence[DataclassInstance]) -> None:
        """Add rows."""
        self.writer.writerows(dataclasses.astuple(row) for row in rows)
        self.file.flush()

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class TensorBoardLog:
    """Event files, a folder for each run; needs the extra ``tensorboard``.

    Args:
        folder: Where they go.
        after: Later steps of an interrupted run are hidden from TensorBoard.
    """

    def __init__(self, folder: Path, *, after: int = 0) -> None:
        require("tensorboard", "tensorboard")
        from torch.utils.tensorboard.writer import SummaryWriter

        self.folder, self.after, self.make = folder, after, SummaryWriter
        self.writers: dict[str, Any] = {}

    def write(self, rows: Sequence[Row | ControlRow]) -> None:
        """Add every number as a scalar."""
        for row in rows:
            name = run_folder(row)
            if name not in self.writers:
                purged = self.after + 1 if self.after else None
                self.writers[name] = self.make(str(self.folder / name), purge_step=purged)
            for column, value in dataclasses.asdict(row).items():
                if column not in ("iteration", "seed") and isinstance(value, int | float):
                    self.writers[name].add_scalar(column, value, row.iteration)

    def close(self) -> None:
        """Flush and close."""
        for writer in self.writers.values():
            writer.close()


def run_folder(row: Any) -> str:
    """Return a name for the files of a row's run; without colons, which some systems do not allow there.

    Example:
        >>> from types import SimpleNamespace as Row
        >>> run_folder(Row(arm="bernoulli:0.1", target=0.12, seed=0)), run_folder(Row(seed=1))
        ('bernoulli-0.1-target-0.12-seed-0', 'seed-1')
    """
    arm, target = getattr(row, "arm", None), getattr(row, "target", None)
    parts = [arm.replace(":", "-")] if arm else []
    return "-".join([*parts, *([] if target is None else [f"target-{target:g}"]), f"seed-{row.seed}"])


def read_rows(folder: Path, kind: type[T]) -> list[T]:
    """Return the rows of a folder's ``metrics.csv``; an incomplete last line is left out.

    Args:
        folder: Of a training.
        kind: The dataclass of its rows: :class:`Row`, or :class:`ControlRow` for a controlled training.

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
    whole = [zip(fields, cells, strict=True) for cells in lines[1:] if len(cells) == len(fields)]
    return [kind(**{field.name: _from_cell(cell, str(field.type)) for field, cell in row}) for row in whole]


def _from_cell(cell: str, kind: str) -> Any:
    if kind == "str":
        return cell
    if not cell:
        return None
    return int(cell) if kind.startswith("int") else float(cell)
