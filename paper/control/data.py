"""All of a control study that its figure and its numbers need, ready for JSON, from whatever runs there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsnd.training.dico import ControlTask
from graphsnd.training.dico.task import Run
from paper.cells import Cells
from paper.control.actions import read_actions
from paper.control.costs import by_arm, metric_speedups
from paper.control.logs import History, folders, missing, read_folder, usual
from paper.control.pairs import REFERENCE, against, same_start
from paper.control.study import beside, curves, late, over_seeds, settling

PROTOCOL = ("environments", "steps", "passes", "minibatch", "learning_rate", "hidden", "tau", "observations")


@dataclass(frozen=True)
class Study:
    """Which runs a study has, and which of their iterations count."""

    runs: tuple[Run, ...]
    iterations: int
    window: int

    @classmethod
    def of(cls, task: ControlTask, window: int) -> Study:
        """All runs of a task."""
        return cls(tuple(task.runs()), task.settings.iterations, window)


def assemble(study: Study, histories: Sequence[History]) -> dict[str, Any]:
    """Everything about the runs that are finished, and the names of those that are not.

    Args:
        study: What there should be. Arms beside its own are taken in as they are.
        histories: What there is.

    Returns:
        Ready for JSON; see the keys below. Nothing stands in for what is missing.
    """
    main, others = usual(histories)
    done = [history for history in main if history.iterations >= study.iterations]
    runs = [late(history, study.window) for history in done]
    arms = list(dict.fromkeys(history.run.arm for history in done))
    rows = [row for history in main for row in history.rows]
    compared = [arm for arm in arms if arm != REFERENCE]
    found: dict[str, Any] = {
        "iterations": study.iterations,
        "window": study.window,
        "arms": arms,
        "targets": sorted({history.run.target for history in done if history.run.target is not None}),
        "seeds": sorted({history.run.seed for history in done}),
        "wanted": len(study.runs),
        "wanted_targets": len({run.target for run in study.runs if run.target is not None}),
        "wanted_seeds": len({run.seed for run in study.runs}),
        "missing": missing(rows, study.runs, iterations=study.iterations),
        "protocol": protocol(done),
        "runs": runs,
        "cells": over_seeds(runs),
        "settling": _settling(done),
        "pairs": [pair for arm in compared if (pair := against(runs, arm)) is not None],
        "start": {arm: start for arm in compared if (start := same_start(runs, arm)) is not None},
        "costs": by_arm(done),
        "metric_speedups": {arm: metric_speedups(done, arm, REFERENCE) for arm in compared},
        "curves": curves(done),
        "beside": beside(others, main, study.window),
    }
    return found


def committed(cells: Cells, place: str) -> tuple[list[History], list[dict[str, Any]], tuple[str, ...]]:
    """Read what was committed below a folder of the results.

    Args:
        cells: Of the experiment.
        place: Such as ``"control/n50"``.

    Returns:
        Runs, what their actions were measured to be, and the folders that were read.

    Raises:
        InputError: When there is nothing.
    """
    found = folders(cells.results / Path(place))
    histories = [history for folder in found for history in read_folder(folder)]
    actions = [action for folder in found for action in read_actions(folder)]
    sources = tuple(f"results/{folder.relative_to(cells.results).as_posix()}" for folder in found)
    return histories, actions, sources


def protocol(histories: Sequence[History]) -> dict[str, Any] | None:
    """Settings of the training that say how much was run; None where its folder does not tell."""
    task = next((history.task for history in histories if history.task is not None), None)
    if task is None:
        return None
    settings = {name: getattr(task.settings, name) for name in PROTOCOL}
    shown = next(history.observations for history in histories if history.task is not None)
    return {"agents": task.agents, **settings, "optimiser_steps": task.settings.optimiser_steps, "shown": shown}


def _settling(histories: Sequence[History]) -> list[dict[str, Any]]:
    found = []
    for arm, target in dict.fromkeys((history.run.arm, history.run.target) for history in histories):
        if target is not None:
            mine = [history for history in histories if (history.run.arm, history.run.target) == (arm, target)]
            found.append({"arm": arm, "target": target, "iteration": settling(mine)})
    return found
