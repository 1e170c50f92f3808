"""Logs of controlled training from several folders, run by run, and the missing runs of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from graphsnd.rl import Task
from graphsnd.rl.log import Row, Run, read_rows
from paper.runner import Cells, Stacks, gather_stacks, train_cell
from paper.shared.rollouts import one_thread

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class History:
    """One run from its first iteration to its last."""

    run: Run
    rows: list[Row]  # by iteration

    @property
    def iterations(self) -> int:
        """Number of finished iterations."""
        return self.rows[-1].iteration


def split_runs(rows: Iterable[Row]) -> list[History]:
    """Return the runs of one training from the rows of its log."""
    runs = group_by(rows, lambda row: Run(row.arm or "", row.target, row.seed))
    return [History(run, sorted(mine, key=lambda row: row.iteration)) for run, mine in runs.items()]


def gather_runs(stacks: Stacks, cells: Cells) -> tuple[list[History], list[Path]]:
    """Return the runs of a study's stacks and the folders of their logs; see :func:`~paper.runner.gather_stacks`."""
    folders = gather_stacks(stacks, cells)
    return read_histories(folders), folders


def train_small(task: Task, cells: Cells) -> tuple[list[History], list[Path]]:
    """Train a small study on this machine, or continue a stopped one; return its runs and its folder.

    Raises:
        InputError: When the folder holds another training.
        KeyboardInterrupt: After Ctrl-C, once the training has saved a checkpoint.
    """
    with one_thread():
        train_cell(task, cells, "study")
    return read_histories([cells.folder("study")]), [cells.folder("study")]


def read_histories(folders: Iterable[Path]) -> list[History]:
    """Return the runs from the logs of these folders."""
    return [history for folder in folders for history in split_runs(read_rows(folder))]


def name_sources(folders: Iterable[Path], cells: Cells) -> tuple[str, ...]:
    """Return the names of the folders that lie in the results."""
    roots = {cells.out, cells.results}
    kept = [folder.relative_to(root) for folder in folders for root in roots if folder.is_relative_to(root)]
    return tuple(f"results/{folder.as_posix()}" for folder in kept)


def list_missing(histories: Iterable[History], task: Task) -> list[str]:
    """Return the missing and unfinished runs of a task, each in words."""
    done = {history.run: history.iterations for history in histories}
    return [describe(run) for run in task.runs() if done.get(run, 0) < task.settings.iterations]


def describe(run: Run) -> str:
    """Return a run in words.

    Example:
        >>> describe(Run("bernoulli:0.1", 0.12, 2))
        'bernoulli:0.1, target 0.12, seed 2'
    """
    return ", ".join([run.arm, *([] if run.target is None else [f"target {run.target:g}"]), f"seed {run.seed}"])


def group_by(values: Iterable[V], key: Callable[[V], K]) -> dict[K, list[V]]:
    """Return values by their key, in the order in which keys first appear."""
    groups: dict[K, list[V]] = {}
    for value in values:
        groups.setdefault(key(value), []).append(value)
    return groups
