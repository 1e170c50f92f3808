from __future__ import annotations

import pytest
import torch


@pytest.mark.gpu
@pytest.mark.parametrize("features", [1, 4, 33])
def test_the_gpu_limit_sums_the_distances_it_counts(features: int) -> None:
    from benchmarks.limit_gpu import LANES, Limit

    limit = Limit(torch.device("cuda"), features, steps=50, programs=3)
    assert limit.pairs == 50 * LANES * 3
    lanes = torch.arange(LANES).double() * 0.001 + torch.arange(features).unsqueeze(1) * 0.25
    away = lanes.unsqueeze(0) - torch.arange(50).double().reshape(-1, 1, 1) * 0.001
    truth = away.square().sum(dim=1).sqrt().sum().float()
    torch.testing.assert_close(limit().cpu(), truth.expand(3), rtol=1e-4, atol=0)
