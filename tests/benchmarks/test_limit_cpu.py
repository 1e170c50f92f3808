from __future__ import annotations

import torch

from benchmarks.limit_cpu import LANES, Limit

CPU = torch.device("cpu")
MOVED = (torch.arange(50) * 0.001).unsqueeze(1) + torch.arange(4)  # 50 steps of four points


def test_the_cpu_limit_sums_the_distances_it_counts() -> None:
    limit = Limit(CPU, steps=50)
    assert limit.pairs == 4 * 50 * LANES * limit.threads
    away = torch.from_numpy(limit._lanes).unsqueeze(0) - MOVED.reshape(-1, 1, 1)
    torch.testing.assert_close(limit()[0], away.square().sum(dim=1).sqrt().sum(dim=0), rtol=1e-5, atol=0)


def test_more_features_are_more_squares() -> None:
    limit, lanes = Limit(CPU, 12, steps=50), torch.from_numpy(Limit(CPU, steps=1)._lanes)
    squares = [(lanes.unsqueeze(0) - MOVED.reshape(-1, 1, 1) - k / 4).square().sum(dim=1) for k in range(3)]
    expected = (squares[0] + squares[1] + squares[2].sqrt()).sum(dim=0)
    torch.testing.assert_close(limit()[0], expected, rtol=1e-5, atol=0)
