from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import adaptive
from benchmarks.timing import Options

RESULTS = Path(adaptive.__file__).parent / "results" / "adaptive" / "cpu-2-cores.json"


def test_designs_are_compared_on_teams_and_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    result = adaptive.measure(Options(torch.device("cpu"), quick=True))
    by_design = {row["design"]: row for row in result["adaptive"] if row["team"] == "four tight roles"}
    assert by_design["ring"]["gain"] == 1
    assert by_design["adaptive, 16 observations"]["gain"] > 1.5
    assert by_design["adaptive, 16 observations"]["after_belief"] < by_design["adaptive, 16 observations"]["gain"]
    assert by_design["agents"]["factor"] > 0
    assert [row["iteration"] for row in result["training"]] == [2]
    for rows, columns in adaptive.tables(result).values():
        assert all(column in row for row in rows for column in columns)


def test_measured_factors_are_below_the_stated_ones() -> None:
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = [row for row in result["adaptive"] if "worst_factor" in row]
    assert len(rows) > 20
    # Measured over thousands of draws, to a few percent.
    assert all(row["factor"] < 1.05 * row["worst_factor"] for row in rows)
