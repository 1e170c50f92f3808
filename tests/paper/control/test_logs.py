from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from graphsnd.rl.log import Run
from paper.control.logs import gather_runs, list_missing, name_sources, split_runs
from paper.runner import Cells
from tests.paper.control_rows import noisy, row, write_training
from tests.training import control_settings, control_task

FULL, SPARSE = Run("complete", 0.12, 0), Run("bernoulli:0.1", 0.12, 0)
TASK = control_task(
    10, (0.12, 0.15), ("complete", "bernoulli:0.1"), (0, 1, 2), settings=control_settings(iterations=20)
)


def test_folders_tell_what_shares_the_seconds(tmp_path: Path) -> None:
    stacks = {"n10/a/b": TASK, "n10/c": replace(TASK, seeds=(3, 4, 5)), "n10/none": TASK}
    for name, task in list(stacks.items())[:2]:
        write_training(tmp_path / name, [row(i, run) for i in (1, 2) for run in task.runs()])
    cells = Cells(tmp_path / "work", results=tmp_path)
    histories, folders = gather_runs(stacks, cells)
    assert name_sources(folders, cells) == ("results/n10/a/b", "results/n10/c")
    assert len(histories) == 2 * 12
    first = histories[0]
    assert (first.alike, first.iterations, first.metric_seconds) == (6, 2, 0.25)


def test_missing_runs_are_named() -> None:
    task = control_task(10, (0.12,), ("complete", "bernoulli:0.1"), settings=control_settings(iterations=20))
    histories = split_runs(noisy(SPARSE, 7))
    assert list_missing(histories, task) == [
        "complete, target 0.12, seed 0",
        "bernoulli:0.1, target 0.12, seed 0",
    ]
    assert list_missing(split_runs(noisy(FULL, 20) + noisy(SPARSE, 20)), task) == []
