from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from benchmarks import budget
from benchmarks.designs import PAPER, compare_designs, random_observations, random_team
from benchmarks.report_budget_tables import coverage_table, designs_table, projections_table, tolerance_table
from benchmarks.report_designs import designs_figure

CPU = torch.device("cpu")
PLAN = budget.Plan((12,), 32, 4, (16,), 100, 6, ((20, 8, 2, (2,)),), 2, 0.0)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("teams") / "seed-0"
    random_team(12, 3, CPU).save(folder)
    save_file({"observations": random_observations(40, 4, CPU)}, folder / "observations.safetensors")
    names: list[str] = []
    found = budget.measure(PLAN, CPU, teams=[Path(folder)], step=names.append)
    assert len(names) == budget.parts(PLAN, [folder])
    return json.loads(json.dumps(found, allow_nan=False))


def test_every_design_is_compared_with_the_paper(result: dict) -> None:
    assert [row["team"] for row in result["designs"]] == ["random", "trained"]
    for row in result["designs"]:
        assert row["designs"][0]["name"] == PAPER
        assert row["designs"][0]["rmse_gain"] == 1.0
        assert row["designs"][-1]["matched"]
        for one in row["designs"]:
            assert one["rmse"] >= abs(one["bias"])
            assert one["distances"] == one["pairs"] * one["observations"]
            assert one["rmse_interval"][0] <= one["rmse"] <= one["rmse_interval"][1]


def test_tables_and_figure_show_everything(result: dict) -> None:
    assert designs_table(result["designs"][0]).row_count == len(result["designs"][0]["designs"]) + 1
    assert tolerance_table(result["tolerance"]).row_count == 1
    assert projections_table(result["projections"]).row_count == 1
    assert coverage_table(result["coverage"]).row_count == len(result["coverage"])
    figure = designs_figure([result])
    assert len(figure.axes) == 2
    for ax in figure.axes:
        assert ax.get_xlabel()
        assert ax.get_xscale() == ax.get_yscale() == "log"


def test_the_matched_design_reaches_the_papers_error() -> None:
    row = compare_designs(
        random_team(40, 0, CPU), random_observations(512, 1, CPU), label="random", draws=60, seed=0, rounds=2, seconds=0
    )
    paper, matched = row["designs"][0], row["designs"][-1]
    assert matched["rmse"] < 1.4 * paper["rmse"]
    assert matched["fewer_evaluations"] > 10
    assert matched["fewer_distances"] > 50
    fresh = next(one for one in row["designs"] if one["name"] == "fresh circulant of degree 2")
    assert fresh["rmse_gain"] > 4


def test_coverage_counts_hits(result: dict) -> None:
    for row in result["coverage"]:
        assert 0 <= row["covered"] <= 1
        assert row["repetitions"] == 6
        assert row["relative_half_width"] > 0
