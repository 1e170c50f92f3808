from __future__ import annotations

import torch

from benchmarks import graphs
from benchmarks.timing import Options


def test_every_builder_is_timed() -> None:
    result = graphs.measure(Options(torch.device("cpu"), quick=True))
    assert [(row["n"], row["degree"]) for row in result["graphs"]] == [(50, 5), (100, 10)]
    for row in result["graphs"]:
        assert row["edges"] == row["n"] * row["degree"] // 2
        assert set(row["builders"]) == {"bernoulli", "uniform", "random_regular", "knn"}
    [(rows, columns)] = graphs.tables(result).values()
    assert rows == result["graphs"]
    assert "builders.knn" in columns
