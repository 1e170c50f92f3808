from __future__ import annotations

from pathlib import Path

import pytest

from graphsnd import InputError
from graphsnd.training import ControlSettings, ControlTask, Run
from paper.cells import Cells
from paper.control.logs import gather_runs, list_missing, name_sources, select_study, split_runs
from paper.experiment import Scale
from tests.paper.control_rows import noisy, row, write_training

FULL, SPARSE = Run("complete", 0.12, 0), Run("bernoulli:0.1", 0.12, 0)
TASK = ControlTask(10, (0.12, 0.15), ("complete", "bernoulli:0.1"), (0, 1, 2), settings=ControlSettings(iterations=20))


def test_folders_tell_what_shares_the_seconds(tmp_path: Path) -> None:
    rows = [row(i, run) for i in (1, 2) for run in TASK.runs()]
    write_training(tmp_path / "n10" / "a" / "b", rows)
    write_training(tmp_path / "n10" / "c", rows)
    cells = Cells(tmp_path / "work", results=tmp_path)
    histories, folders = gather_runs(Scale.PAPER, TASK, cells, "n10")
    assert name_sources(folders, tmp_path) == ("results/n10/a/b", "results/n10/c")
    assert len(histories) == 2 * 12
    first = histories[0]
    assert (first.together, first.alike, first.iterations) == (12, 6, 2)
    parts = {"rollout": 0.5, "update": 1, "policies": 0.5, "distances": 0.25, "audit": 0.05}
    assert first.seconds() == pytest.approx(parts)
    with pytest.raises(InputError, match="logs of controlled training below none/"):
        gather_runs(Scale.PAPER, TASK, cells, "none")


def test_missing_runs_are_named() -> None:
    task = ControlTask(10, (0.12,), ("complete", "bernoulli:0.1"), settings=ControlSettings(iterations=20))
    histories = split_runs(noisy(SPARSE, 7))
    assert list_missing(histories, task) == [
        "complete, target 0.12, seed 0",
        "bernoulli:0.1, target 0.12, seed 0",
    ]
    assert list_missing(split_runs(noisy(FULL, 20) + noisy(SPARSE, 20)), task) == []


def test_runs_that_saw_other_observations_are_no_part_of_the_study() -> None:
    main = split_runs(noisy(FULL, 20) + noisy(SPARSE, 20))
    whole = split_runs(noisy(FULL, 12, level=1.1, observations=40_960))
    assert select_study([*main, *whole]) == main
    with pytest.raises(InputError, match="every run once"):
        select_study([*main, *main])
