from __future__ import annotations

import json

import pytest
import torch

from benchmarks import benchmarl, callback, curves, dico
from benchmarks.__main__ import _cell
from benchmarks.timing import Options

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("benchmarl")
QUICK = Options(torch.device("cpu"), quick=True)


def test_both_tasks_are_timed_in_turns() -> None:
    result = json.loads(json.dumps(benchmarl.measure(QUICK), allow_nan=False))
    assert [row["task"] for row in result["tasks"]] == ["VMAS", "graphsnd"]
    for row in result["tasks"]:
        assert row["iteration"]["rounds"] == 2  # of 3 iterations, the first left out
        assert row["iteration"]["min_s"] >= row["collection"]["min_s"] + row["training"]["min_s"]
    medians = [row["iteration"]["median_s"] for row in result["tasks"]]
    assert result["times_as_fast"] == pytest.approx(medians[0] / medians[1])
    for rows, columns in benchmarl.tables(result).values():
        assert all("-" not in _cell(row, column) for row in rows for column in columns)


def test_the_callback_is_a_share_of_its_iterations() -> None:
    result = json.loads(json.dumps(callback.measure(QUICK), allow_nan=False))
    without, own = result["iterations"]
    assert (without["callback"], own["callback"]) == ("without", "with")
    assert without["iteration"]["rounds"] == own["iteration"]["rounds"] == result["seconds"]["rounds"] == 3
    assert 0 < result["seconds"]["min_s"] / own["iteration"]["q3_s"] <= result["largest_share"] < 1
    assert result["share"] <= result["largest_share"]
    for rows, columns in callback.tables(result).values():
        assert all("-" not in _cell(row, column) for row in rows for column in columns)


def test_diversity_control_is_timed_against_plain_policies() -> None:
    result = json.loads(json.dumps(dico.measure(QUICK), allow_nan=False))
    assert [row["case"] for row in result["models"]][:3] == ["without", "uncontrolled", "DiCo"]
    first, free, held = result["models"][:3]
    for row in (*result["models"], limit := result["limit"]):
        assert row["training_over_without"] == row["training"]["median_s"] / first["training"]["median_s"]
    assert (
        limit["operations"] == 2 * (16 * 256 + 256 * 256 + 256 * 2) * 5 * 40 * 3**2
    )  # per pass, frame, pair of agents
    added = limit["training"]["median_s"] - free["training"]["median_s"]
    assert added == pytest.approx(limit["operations"] / limit["operations_per_second"])
    (audits,) = held["audits"]
    assert held["error"] == pytest.approx(sum(abs(audit - 0.5) for audit in audits[1:]) / 0.5 / 2)
    assert audits[0] < 0.3  # nothing was scaled yet
    assert all(abs(audit - 0.5) < 0.15 for audit in audits[1:])
    for rows, columns in dico.tables(result).values():
        timed = [column for column in columns if column not in ("collection", "error")]
        assert all(_cell(row, column) != "-" for row in rows for column in timed)


def test_a_curve_has_a_reward_for_each_iteration() -> None:
    result = json.loads(json.dumps(curves.measure(QUICK), allow_nan=False))
    assert [curve["algorithm"] for curve in result["curves"]] == ["IPPO", "MAPPO"]
    for curve in result["curves"]:
        assert len(curve["rewards"]) == result["shape"]["iterations"] == 2
    # The same seed acts with the same actors in the first iteration, and then learns from other advantages.
    (first, second), (first_central, second_central) = (curve["rewards"] for curve in result["curves"])
    assert first == first_central
    assert second != second_central
    for rows, columns in curves.tables(result).values():
        assert all(_cell(row, column) != "-" for row in rows for column in columns)
