from __future__ import annotations

import pytest
import torch

from benchmarks.limit_cpu import LANES, Limit


@pytest.mark.parametrize("features", [4, 12])
def test_the_cpu_limit_sums_the_distances_it_counts(features: int) -> None:
    limit = Limit(torch.device("cpu"), features, steps=50)
    assert limit.pairs == 50 * LANES * limit.threads
    points = (torch.arange(50) * 0.001).unsqueeze(1) + torch.arange(0, features / 16, 0.25).repeat_interleave(4)
    away = torch.from_numpy(limit._lanes).repeat(features // 4, 1).unsqueeze(0) - points.unsqueeze(2)
    torch.testing.assert_close(limit()[0], away.square().sum(dim=1).sqrt().sum(dim=0), rtol=1e-5, atol=0)
