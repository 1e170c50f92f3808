"""The log of a training: ``metrics.csv``, and optionally TensorBoard and Weights & Biases."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from graphsnd.errors import InputError, require
from graphsnd.files import append, naming, write_whole
from graphsnd.rl.rollout import RolloutBuffer

METRICS = "metrics.csv"
Log = Callable[[Mapping[str, float], int], None]  # takes numbers by name, and the iteration
Open = Callable[[Path, str, int], tuple[Log, Callable[[], None]]]  # returns a function to log, and one to close


@dataclass(frozen=True)
class Run:
    """One team that is trained.

    Example:
        >>> from graphsnd.rl import Task
        >>> Task("dispersion", 4, target=(0.1, "unconstrained"), design="matching", seeds=(7,)).runs()
        [Run(arm='matching', target=0.1, seed=7), Run(arm='unconstrained', target=None, seed=7)]
    """

    arm: str  # with control: the design, or a target that is a word; empty for independent policies
    target: float | None  # None where nothing is controlled
    seed: int  # of its weights, environments and draws


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result of one iteration, from which rows are made."""

    iteration: int  # from 1
    buffer: RolloutBuffer
    numbers: Sequence[dict[str, Any]]  # reward and the learner's statistics of each run, by the names of columns
    seconds: Mapping[str, float]  # of rollout, audit, update, and what the companion counted


@dataclass(frozen=True, kw_only=True)
class Row:
    """One iteration of one run. None where nothing was measured; such columns are left out of the file.

    Example:
        >>> from graphsnd.rl import Settings, Task
        >>> settings = Settings(steps=8, environments=4, minibatch=16)
        >>> row = Task("navigation", 3, settings=settings).make_trainer().step()[0]
        >>> row.iteration, row.seed, row.snd > 0, row.snd_observations
        (1, 0, True, 96)
        >>> row = Task("navigation", 3, target=0.1, settings=settings).make_trainer().step()[0]
        >>> row.arm, row.target, row.audit > 0
        ('complete', 0.1, True)
    """

    iteration: int  # from 1
    arm: str | None = None  # with control: the design, unconstrained, homogeneous, or seek:LOW:HIGH
    target: float | None = None  # SND at which the team is held
    seed: int  # seed of the run
    reward: float  # reward per step, mean over agents, environments and steps
    episodes: int | None = None  # episodes that ended in the rollout
    solved: float | None = None  # share of agents that had done their part when an episode or the rollout ended, with
    # sampled actions; Evaluation.solved_at_end measures whole test episodes
    policy_loss: float | None = None  # clipped loss of PPO, mean over gradient steps, as are the next three
    value_loss: float  # loss of the critics
    entropy: float | None = None  # entropy of the policies
    kl: float | None = None  # divergence of the acting policies from those of the step, estimated from the actions
    snd: float | None = None  # SND of the updated policies, over all pairs
    graph_snd: float | None = None  # Graph-SND of the same policies, over a sampled graph
    snd_observations: int | None = None  # pooled observations of both measurements
    snd_seconds: float | None = None  # distances over all pairs
    graph_snd_seconds: float | None = None  # drawing the graph, and distances of its edges
    behavior_seconds: float | None = None  # evaluating all policies on these observations, for both
    level: float | None = None  # SND at which the team was held in the rollout, if a controller seeks the level
    clear: int | None = None  # 1 once rewards differed between levels by more than noise, else 0
    estimate: float | None = None  # the controller's estimate after the last step
    scale: float | None = None  # scale, mean over the steps
    applied: float | None = None  # estimate times scale: the paper's signal, see graphsnd.control.tracking_error
    audit: float | None = None  # SND over all pairs of the acting policies, before they learn from the rollout
    tracking_error: float | None = None  # relative error of applied
    audit_error: float | None = None  # relative error of the audit
    local_audit: float | None = None  # Graph-SND on the graphs of neighbours that the arm holds
    local_error: float | None = None  # relative error of the local audit
    saturated: int | None = None  # steps whose scale was clipped by the bounds
    zero: int | None = None  # steps that measured no diversity
    empty: int | None = None  # steps whose draw had no pairs
    invalid: int | None = None  # steps whose measurement was not finite
    overflow: float | None = None  # largest distance of a mean from the box in a sample, mean over samples
    observations: int | None = None  # observations of each estimate
    rollout_seconds: float  # all stacked runs together
    policy_seconds: float | None = None  # this arm's runs together: evaluating deviations for the estimates
    distance_seconds: float | None = None  # this arm's runs together: drawing pairs and adding up distances
    update_seconds: float  # all runs together: the rest of learning
    audit_seconds: float | None = None  # all runs together


FIELDS = {field.name: field for field in dataclasses.fields(Row)}


class CsvLog:
    """``metrics.csv``, which grows by whole iterations; a line that a crash has cut is recognised when it is read.

    Args:
        folder: Folder of the log.
        after: Keep the rows up to this iteration, as when training resumes; 0 starts a new log.
    """

    def __init__(self, folder: Path, *, after: int = 0) -> None:
        self.folder, self.path = folder, folder / METRICS
        self._start([row for row in read_rows(folder) if row.iteration <= after] if after else [])

    def write(self, rows: Sequence[Row]) -> None:
        """Add rows; the file is written again where they have columns that it lacks."""
        if not set(_columns(rows)) <= set(self.columns):
            self.close()
            self._start([*read_rows(self.folder), *rows])
            return
        with naming(self.path):
            append(self.descriptor, _to_lines(_cells(rows, self.columns)).encode())

    def flush(self) -> None:
        """Wait until all rows are on the disk."""
        with naming(self.path):
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Close the file."""
        with naming(self.path):
            os.close(self.descriptor)

    def _start(self, rows: Sequence[Row]) -> None:
        self.columns = _columns(rows)
        write_rows(self.folder, rows)
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))


def run_folder(row: Row | Run) -> str:
    """Return a name for the files of a run; without colons, which some systems do not allow there.

    Example:
        >>> run_folder(Run("bernoulli:0.1", 0.12, 0))
        'bernoulli-0.1-target-0.12-seed-0'
    """
    held = "" if row.target is None else f"target-{row.target!r}".removesuffix(".0")
    return "-".join(filter(None, [(row.arm or "").replace(":", "-"), held, f"seed-{row.seed}"]))


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of a folder's ``metrics.csv``; a last line that was cut is left out.

    Args:
        folder: Folder of a training.

    Raises:
        InputError: When there is no such file, it has other columns, or a line is damaged and the next ones are not.

    Example:
        >>> import tempfile
        >>> from graphsnd.rl import Settings, Task, train
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     task = Task("navigation", 2, settings=Settings(steps=4, environments=2, iterations=2))
        ...     _ = train(task, Path(folder))
        ...     [(row.iteration, row.seed) for row in read_rows(Path(folder))]
        [(1, 0), (2, 0)]
    """
    folder = Path(folder)
    rows = list(_read_lines(folder))
    while rows and rows[-1] is None:
        rows.pop()
    if None in rows:
        line = f"line {rows.index(None) + 2} of {folder / METRICS}, which is not"
        raise InputError("metrics.csv", "with the numbers of a row in every line", line)
    return cast(list[Row], rows)


def write_rows(folder: Path, rows: Sequence[Row]) -> None:
    """Write a ``metrics.csv`` of these rows, and replace an existing one."""
    columns = _columns(rows)
    write_whole(folder / METRICS, _to_lines([columns, *_cells(rows, columns)]))


def merge_logs(folders: Iterable[Path], runs: Sequence[str], out: Path) -> None:
    """Write the rows of several folders to one ``metrics.csv``, by iteration and then in the order of ``runs``."""
    order = {name: place for place, name in enumerate(runs)}
    rows = [row for folder in folders for row in read_rows(folder)]
    write_rows(out, sorted(rows, key=lambda row: (row.iteration, order[run_folder(row)])))


def check_complete(folder: Path, runs: Sequence[str], iteration: int) -> None:
    """Raise unless ``metrics.csv`` has every iteration up to ``iteration`` for every run, in order.

    Args:
        folder: Folder of a training.
        runs: Names by :func:`run_folder`, in order.
        iteration: Iteration of a checkpoint.
    """
    rows = [(row.iteration, run_folder(row)) for row in read_rows(folder) if row.iteration <= iteration]
    expected = list(product(range(1, iteration + 1), runs))
    if rows != expected:
        first = next(wanted for wanted, row in zip_longest(expected, rows) if wanted != row)
        lack = "other runs" if first is None else f"no iteration {first[0]} of {first[1]} in its place"
        fix = f"Bring back {folder / METRICS}, or train in another folder: a log with gaps is not continued."
        raise InputError("metrics.csv", f"with all iterations up to the checkpoint's {iteration}", lack, fix)


def _read_lines(folder: Path) -> Iterator[Row | None]:
    """Yield the row of every line after the first; None for one that is not whole."""
    path = folder / METRICS
    try:
        # A byte that is no text spoils its own line only. What follows the last line end was cut.
        lines = path.read_bytes().decode(errors="replace").split("\n")[:-1]
    except OSError:
        raise InputError("folder", f"to hold {METRICS}", repr(str(folder))) from None
    heads = lines[0].rstrip("\r").split(",") if lines else []
    if not set(_columns([])) <= set(heads) <= FIELDS.keys():
        raise InputError("folder", f"with a {METRICS} of a training", f"other columns in {path}")
    for line in lines[1:]:
        try:
            cells = next(csv.reader([line]), [])
            named = {name: _from_cell(cell, str(FIELDS[name].type)) for name, cell in zip(heads, cells, strict=True)}
        except (csv.Error, ValueError):
            yield None
        else:
            yield Row(**named)


def _from_cell(cell: str, kind: str) -> Any:
    if not cell and kind.endswith("None"):
        return None
    if kind.startswith("str"):
        return cell
    return int(cell) if kind.startswith("int") else float(cell)


def _columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns that rows have, in the order of :class:`Row`; those of every training where there are none."""
    needed = (name for name, each in FIELDS.items() if each.default is dataclasses.MISSING)
    found = set(needed).union(name for row in rows for name, value in vars(row).items() if value is not None)
    return [name for name in FIELDS if name in found]


def _cells(rows: Sequence[Row], columns: Sequence[str]) -> list[list[Any]]:
    return [[getattr(row, name) for name in columns] for row in rows]


def _to_lines(rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def open_tensorboard(folder: Path, name: str, after: int) -> tuple[Log, Callable[[], None]]:
    """Write event files to ``folder/tensorboard/name``; TensorBoard hides later steps of an interrupted run."""
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
        self.logs: list[tuple[str, Log]] = []
        for kind in kinds:
            for name in runs:
                log, close = LOGGERS[kind](folder, name, after)
                closing.callback(close)
                self.logs.append((name, log))

    def write(self, rows: Sequence[Row]) -> None:
        """Log every number of every row."""
        named = {run_folder(row): row for row in rows}
        for name, log in self.logs:
            numbers = {key: value for key, value in vars(named[name]).items() if isinstance(value, int | float)}
            del numbers["seed"]
            log(numbers, int(numbers.pop("iteration")))
