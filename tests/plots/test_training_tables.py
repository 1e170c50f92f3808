from __future__ import annotations

import dataclasses
import io

import numpy as np
import pytest
from rich.console import Console

from graphsnd.plots.training_tables import control_table, iteration_describer, training_table
from graphsnd.rl.log import Row
from tests.plots.training_rows import control_rows, training_rows


def test_table_has_a_line_for_each_seed() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(training_table(training_rows()))
    text = console.export_text()
    assert "solved: in rollouts" in text
    assert "+0.3000" in text
    assert "+2.4000" in text
    assert "0.8200" in text
    assert len([line for line in text.splitlines() if line.strip()[:1] in tuple("012")]) == 3


@pytest.mark.parametrize("seed", [10_000, 2**60])
def test_the_table_shows_whole_numbers_on_80_columns(seed: int) -> None:
    rows = [dataclasses.replace(row, seed=seed + row.seed, reward=-123.4567) for row in training_rows()]
    rows = [dataclasses.replace(row, snd=12.3456, graph_snd=12.6543) for row in rows]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(training_table(rows))
    text = console.export_text()
    assert "…" not in text
    assert text.count("-123.4567") == 6
    assert text.count("12.3456") == text.count("12.6543") == text.count("50%") == 3


def test_what_is_held_locally_is_off_by_the_mean_over_seeds() -> None:
    rows = [dataclasses.replace(row, local_audit=0.05 + 0.05 * row.seed) for row in control_rows(("knn:1", 0.1))]
    assert "0.1000, 50.00% off" in str(control_table(rows).caption)  # 0.05 and 0.15


def test_the_table_has_late_means_over_seeds() -> None:
    rows = control_rows(("full", 0.1), ("unconstrained", None))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(control_table(rows))
    text = console.export_text()
    late = np.mean([0.2 / i for i in range(3, 13)])  # the last 10 of 12 iterations
    assert f"{0.11 + late:.4f}" in text
    off = np.mean([abs(0.01 * s + late) / 0.1 for s in (0, 2)])
    assert f"{off:.2%}" in text
    assert "1.00%" in text
    assert "…" not in text
    assert text.count("unconstrained") == 1


def test_a_line_says_of_which_iteration_its_diversity_is() -> None:
    def row(iteration: int, snd: float | None) -> Row:
        numbers = {"reward": 0.5, "solved": 0.72, "snd": snd, "graph_snd": snd}
        return dataclasses.replace(training_rows()[0], iteration=iteration, **numbers)

    describe = iteration_describer(100)
    assert "SND" not in describe([row(1, None)])
    assert "SND 0.2500  Graph-SND 0.2500  50 frames/s" in describe([row(2, 0.2), row(2, 0.3)])
    assert "Graph-SND 0.2500 (of iteration 2)  50" in describe([row(3, None), row(3, None)])
    found = "reward +0.5000  solved in rollouts 72%  SND 0.4000  Graph-SND 0.4000  50 frames/s"
    assert describe([row(25, 0.4)]) == found


def test_a_line_says_how_far_held_runs_are_off_and_what_went_wrong() -> None:
    rows = [dataclasses.replace(row, zero=1) for row in control_rows(("full", 0.1), ("unconstrained", None))[:4]]
    errors = np.mean([abs(row.audit - 0.1) / 0.1 for row in rows if row.target is not None])
    text = iteration_describer(96)(rows)
    assert text == f"reward +0.0100  audit error {errors:.1%}  tracking error 1.0%  zero 4  32 frames/s"
