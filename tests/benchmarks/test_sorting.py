from __future__ import annotations

import math

import pytest
import torch

from benchmarks import sorting
from benchmarks.timing import Options


def test_the_time_is_per_n_log_n_and_observation() -> None:
    result = sorting.measure(Options(torch.device("cpu"), quick=True))
    assert [row["n"] for row in result["sorted"]] == [100, 1000]
    for row in result["sorted"]:
        work = row["n"] * math.log2(row["n"]) * row["observations"]
        assert row["ns_per_n_log2_n"] == pytest.approx(1e9 * row["time"]["median_s"] / work)
    [(rows, columns)] = sorting.tables(result).values()
    assert all(column in row for row in rows for column in columns)
