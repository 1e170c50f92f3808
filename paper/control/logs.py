"""Logs of controlled training from several folders, run by run, and which runs of a study are not there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphsnd.errors import InputError
from graphsnd.training.checkpoint import CHECKPOINT, DESCRIPTION
from graphsnd.training.dico import ControlRow, ControlTask, control, read_control_rows
from graphsnd.training.dico.task import Run
from graphsnd.training.log import METRICS
from paper.cells import Cells

ABOUT = "about.json"


@dataclass(frozen=True, eq=False)
class History:
    """One run from its first iteration to its last."""

    run: Run
    rows: list[ControlRow]  # by iteration
    together: int  # runs that were trained together with it, which share the seconds of rollout, update and audit
    alike: int  # those among them with the same arm, which share the seconds of its estimates
    task: ControlTask | None  # of that training; None where its folder does not say

    @property
    def steps(self) -> int | None:
        """Optimiser steps of an iteration, an estimate each."""
        return None if self.task is None else self.task.settings.optimiser_steps

    @property
    def observations(self) -> int:
        """That an estimate looked at."""
        return self.rows[-1].observations

    @property
    def iterations(self) -> int:
        """That are done."""
        return self.rows[-1].iteration


def describe(run: Run) -> str:
    """A run in words.

    Example:
        >>> describe(Run("bernoulli:0.1", 0.12, 2))
        'bernoulli:0.1, target 0.12, seed 2'
    """
    return ", ".join([run.arm, *([] if run.target is None else [f"target {run.target:g}"]), f"seed {run.seed}"])


def of_training(rows: Sequence[ControlRow], task: ControlTask | None = None) -> list[History]:
    """The runs of one training.

    Args:
        rows: As :func:`~graphsnd.training.dico.read_control_rows` gives them.
        task: What it was made from, where that is known.
    """
    found: dict[Run, list[ControlRow]] = {}
    for row in rows:
        found.setdefault(Run(row.arm, row.target, row.seed), []).append(row)
    arms = Counter(run.arm for run in found)
    return [
        History(run, sorted(mine, key=lambda row: row.iteration), len(found), arms[run.arm], task)
        for run, mine in found.items()
    ]


def read_folder(folder: Path) -> list[History]:
    """The runs of one training's folder; its settings are in ``settings.json``, or in ``about.json``."""
    return of_training(read_control_rows(folder), _task(folder))


def folders(root: Path) -> list[Path]:
    """Folders with a log, at any depth, by name.

    Raises:
        InputError: When there is none.
    """
    found = sorted(path.parent for path in root.rglob(METRICS)) if root.is_dir() else []
    if not found:
        fix = "Run another scale, or fetch the results/ of the repository."
        raise InputError("results", f"with logs of controlled training below {root.name}/", f"none in {root}", fix)
    return found


def usual(histories: Sequence[History]) -> tuple[list[History], list[History]]:
    """Runs of the study itself, and those whose estimates saw another number of observations than most.

    Raises:
        InputError: When a run is there twice.
    """
    counts = Counter(history.observations for history in histories)
    most = max(counts, key=lambda count: (counts[count], -count))
    main = [history for history in histories if history.observations == most]
    for run, times in Counter(history.run for history in main).items():
        if times > 1:
            raise InputError("results", "with every run once", f"{describe(run)} {times} times")
    return main, [history for history in histories if history.observations != most]


def missing(rows: Sequence[ControlRow], wanted: Sequence[Run], *, iterations: int) -> list[str]:
    """Runs that are not there, or not to their end, each in words.

    Args:
        rows: Of all logs.
        wanted: The whole study.
        iterations: Of a run that is finished.

    Example:
        >>> missing([], [Run("full", 0.1, 0)], iterations=167)
        ['full, target 0.1, seed 0']
    """
    done = Counter[Run]()
    for row in rows:
        run = Run(row.arm, row.target, row.seed)
        done[run] = max(done[run], row.iteration)
    part = {run: f" ({done[run]} of {iterations} iterations)" if done[run] else "" for run in wanted}
    return [describe(run) + part[run] for run in wanted if done[run] < iterations]


def trained(
    task: ControlTask, cells: Cells, name: str, *, step: Callable[[str], None] | None = None
) -> tuple[list[History], Path]:
    """Train a task in a folder of its own, or go on where it was stopped.

    Args:
        task: What to train.
        cells: Where its folder is.
        name: Of the folder.
        step: Told about every iteration; the cells' own when None.

    Returns:
        Its runs, and the folder, which holds the checkpoint.

    Raises:
        InputError: When the folder holds another training.
        KeyboardInterrupt: After Ctrl-C, once the training has saved where it was.
    """
    folder = cells.folder(name)
    say = cells.step if step is None else step
    say(name)
    found = control(
        task, folder, resume=(folder / CHECKPOINT).exists(),
        report=lambda rows, _: say(f"{name}, iteration {rows[0].iteration} of {task.settings.iterations}"),
    )  # fmt: skip
    if not found.finished:
        raise KeyboardInterrupt
    return read_folder(folder), folder


def _task(folder: Path) -> ControlTask | None:
    """What a folder's training was made from, where it says."""
    for path, key in ((folder / DESCRIPTION, None), (folder / ABOUT, "task")):
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            found = found if key is None else found.get(key)
            if found is not None:
                return ControlTask.from_dict(found, path)
    return None
