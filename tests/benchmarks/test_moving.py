from __future__ import annotations

import pytest
import torch

from benchmarks import moving
from benchmarks.timing import Options


def test_the_fixed_graph_has_as_many_edges_and_the_ratio_is_that_of_medians() -> None:
    result = moving.measure(Options(torch.device("cpu"), quick=True))
    [row] = result["moving"]
    graphs = moving.knn(torch.rand(2, 64, 20, 2, generator=torch.Generator().manual_seed(0))[0], moving.K)
    assert row["edges"] == round(graphs.m / 64)
    medians = {name: times["median_s"] for name, times in row["contestants"].items()}
    assert row["moving_to_fixed"] == pytest.approx(medians["moving"] / medians["fixed"])
    [(rows, columns)] = moving.tables(result).values()
    assert all(column.split(".")[-1] in rows[0] | rows[0]["contestants"] for column in columns)
