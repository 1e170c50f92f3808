from __future__ import annotations

import pytest
import torch

from benchmarks import projections
from benchmarks.timing import Options


def test_two_directions_in_the_plane_are_timed_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projections, "DIRECTIONS", (2,))
    result = projections.measure(Options(torch.device("cpu"), quick=True))
    [row] = result["projections"]
    assert row["times_faster_than_exact"] > 0
    assert row["rmse"] < row["bound"]
    assert result["shapes"].keys() == projections.example_clouds(8, 2).keys()
    [(rows, columns)] = projections.tables(result).values()
    assert all(column in row for row in rows for column in columns)
