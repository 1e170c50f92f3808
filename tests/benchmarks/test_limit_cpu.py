from __future__ import annotations

import torch

from benchmarks.limit_cpu import LANES, Limit

CPU = torch.device("cpu")


def test_the_cpu_limit_sums_the_distances_it_counts() -> None:
    limit = Limit(CPU, steps=50)
    assert limit.pairs == 50 * LANES * limit.threads
    moved = torch.arange(50).float() * 0.001
    away = torch.from_numpy(limit._lanes).unsqueeze(0) - moved.reshape(-1, 1, 1)
    torch.testing.assert_close(limit()[0], away.square().sum(dim=1).sqrt().sum(dim=0), rtol=1e-5, atol=0)


def test_more_features_are_more_squares() -> None:
    limit, lanes = Limit(CPU, 12, steps=50), torch.from_numpy(Limit(CPU, steps=1)._lanes)
    moved = torch.arange(50).reshape(-1, 1, 1) * 0.001
    squares = [(lanes.unsqueeze(0) - moved - k / 4).square().sum(dim=1) for k in range(3)]
    expected = (squares[0] + squares[1] + squares[2].sqrt()).sum(dim=0)
    torch.testing.assert_close(limit()[0], expected, rtol=1e-5, atol=0)
