from __future__ import annotations

import torch

from benchmarks import coverage
from benchmarks.timing import Options


def test_coverage_counts_hits() -> None:
    result = coverage.measure(Options(torch.device("cpu"), quick=True))
    for row in result["coverage"]:
        assert 0 <= row["covered"] <= 1
        assert row["repetitions"] == 10
        assert row["relative_half_width"] > 0
    [(rows, columns)] = coverage.tables(result).values()
    assert all(column in row for row in rows for column in columns)
