from __future__ import annotations

import torch

from benchmarks import samples
from benchmarks.figures import samples_figure
from benchmarks.timing import Options


def test_bias() -> None:
    result = samples.measure(Options(torch.device("cpu"), quick=True))
    for row in result["bias"]:
        assert row["sliced"]["bias"] > 0  # finite samples are too far apart
        if row["samples"] > 1 and row["pair"] == "alike":
            assert abs(row["sliced_debiased"]["bias"]) < 5 * row["sliced_debiased"]["error"] < row["sliced"]["bias"]
    assert [len(rows) for rows, _ in samples.tables(result).values()] == [8]
    left, *_ = samples_figure([result]).axes
    assert left.get_title(loc="left") == "alike: distance 0"


def test_closed_forms() -> None:
    assert samples.Pair("", 3.0, 5.0, 1).wasserstein == 5
    assert samples.Pair("", 3.0, 1.0, 4).wasserstein == 3
