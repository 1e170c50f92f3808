from __future__ import annotations

import math

import pytest
import torch

from benchmarks import samples
from benchmarks.figures import samples_figure
from benchmarks.timing import Options


def test_bias() -> None:
    result = samples.measure(Options(torch.device("cpu"), quick=True))
    for row in result["bias"]:
        assert row["sliced"]["bias"] > 0  # finite samples are too far apart
        if row["samples"] > 1:
            assert abs(row["sliced_debiased"]["bias"]) < row["sliced"]["bias"]
            assert abs(row["energy_square"]["bias"]) < 5 * row["energy_square"]["error"] + 0.01
    assert [len(rows) for rows, _ in samples.tables(result).values()] == [8, 8]
    left, *_ = samples_figure([result]).axes
    assert left.get_title(loc="left") == "alike: distance 0"


def test_closed_forms() -> None:
    assert samples.Pair("", 3.0, 5.0, 1).wasserstein == 5
    assert samples.Pair("", 0.0, 1.0, 3).energy == pytest.approx(0, abs=1e-7)
    # Far away, the energy distance is the root of twice the distance, less the two spreads.
    own = 2 * 2 / math.sqrt(math.pi)
    assert samples.Pair("", 1e3, 1.0, 1).energy == pytest.approx(math.sqrt(2e3 - own), rel=1e-9)
    torch.manual_seed(0)
    one, two = torch.randn(2, 400_000, 3)
    pair = samples.Pair("", 0.5, 2.0, 3)
    shifted = 2 * torch.randn(400_000, 3) + torch.tensor([0.5, 0, 0])
    lengths = [(one - shifted).norm(dim=-1).mean(), (one - two).norm(dim=-1).mean()]
    assert pair.energy**2 == pytest.approx(float(2 * lengths[0] - 3 * lengths[1]), abs=0.02)
