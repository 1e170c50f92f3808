from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import graphsnd as gs
from benchmarks import designs
from benchmarks.designs import PAPER, SamplingPlan, compare_designs, measure_errors, random_observations, random_team
from benchmarks.timing import Options

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("teams") / "seed-0"
    random_team(12, 3, CPU).save(folder)
    save_file({"observations": random_observations(40, 4, CPU)}, folder / "observations.safetensors")
    measured = designs.measure(Options(CPU, quick=True, teams=(Path(folder),)))
    return json.loads(json.dumps(measured, allow_nan=False))


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


def test_tables_show_everything(result: dict) -> None:
    *compared, (tolerance, _) = designs.tables(result).values()
    assert [len(rows) for rows, _ in compared] == [len(row["designs"]) + 1 for row in result["designs"]]
    assert tolerance == result["tolerance"]


def test_the_matched_design_reaches_the_papers_error() -> None:
    team, observations = random_team(40, 0, CPU), random_observations(512, 1, CPU)
    row = compare_designs(team, observations, Options(CPU, quick=True), label="random", draws=60)
    paper, matched = row["designs"][0], row["designs"][-1]
    assert matched["rmse"] < 1.4 * paper["rmse"]
    assert matched["fewer_evaluations"] > 10
    assert matched["fewer_distances"] > 50
    fresh = next(one for one in row["designs"] if one["name"] == "ring:2")
    assert fresh["rmse_gain"] > 4


def test_draws_without_an_edge_are_counted() -> None:
    seeded = torch.Generator().manual_seed(0)
    loc = torch.randn(4, 2, generator=seeded) + 0.7 * torch.randn(10, 4, 2, generator=seeded)
    behavior = gs.Gaussian(loc, torch.ones(2))
    errors = measure_errors(
        behavior, SamplingPlan(gs.designs.Bernoulli(0.1)), float(gs.snd(behavior)), draws=40, seed=0
    )
    assert 0 < errors.empty_draws < 40
