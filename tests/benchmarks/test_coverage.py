from __future__ import annotations

import pytest
import torch
from scipy import stats

from benchmarks import coverage
from benchmarks.timing import Options


def test_coverage_counts_hits() -> None:
    result = coverage.measure(Options(torch.device("cpu"), quick=True))
    assert {row["design"] for row in result["coverage"]} >= {*coverage.DRAWN, *coverage.REDRAWN}
    for row in result["coverage"]:
        assert 0 < row["given"] <= 1 or row["kind"] == "asymptotic"
        assert row["covered"] is None or 0 <= row["covered"] <= row["at_most"] <= 1
    [(rows, columns)] = coverage.tables(result).values()
    assert all(column in row for row in rows for column in columns)


def test_the_bound_on_the_coverage_is_the_binomial_one() -> None:
    row = coverage._count([(0.0, 1.0)] * 90 + [(1.0, 2.0)] * 10, 0.5)
    assert (row["covered"], row["given"]) == (0.9, 1.0)
    assert stats.binom.cdf(90, 100, row["at_most"]) == pytest.approx(0.01)


def test_repetitions_without_an_interval_are_counted_apart() -> None:
    assert coverage._count([(0.0, 1.0), None, None, None], 0.5)["given"] == 0.25
    assert coverage._count([None], 0.5)["covered"] is None
