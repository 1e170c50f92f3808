"""The range finder against geometry in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from graphsnd.rl.worlds.lidar import Lidar
from graphsnd.rl.worlds.physics import near_pairs

CPU = torch.device("cpu")


def nearest_roots(positions: np.ndarray, rays: int, reach: float, radius: float) -> np.ndarray:
    """Smaller root of |o + t u - c|^2 = r^2 for every ray, by the quadratic formula."""
    n = len(positions)
    readings = np.full((n, rays), reach)
    for i in range(n):
        for q in range(rays):
            u = np.array([math.cos(2 * math.pi * q / rays), math.sin(2 * math.pi * q / rays)])
            for j in set(range(n)) - {i}:
                w = positions[j] - positions[i]
                b, c = w @ u, w @ w - radius**2
                if b > 0 and b * b - c > 0:
                    readings[i, q] = min(readings[i, q], b - math.sqrt(b * b - c))
    return readings


@pytest.mark.parametrize(("rays", "radius", "spread"), [(12, 0.1, 0.4), (7, 0.04, 0.3), (1, 0.1, 0.05)])
def test_readings_are_the_first_intersections(rays: int, radius: float, spread: float) -> None:
    positions = torch.randn(3, 9, 2, generator=torch.Generator().manual_seed(rays)) * spread
    lidar = Lidar.make(rays, 0.35, radius, CPU)
    dense = lidar.dense(positions)
    group = torch.arange(3).repeat_interleave(9)
    sparse = lidar.sparse(positions.view(-1, 2), *near_pairs(positions.view(-1, 2), group, lidar.reach))
    assert torch.equal(dense.view(-1, rays), sparse)
    truth = np.stack([nearest_roots(one.double().numpy(), rays, 0.35, radius) for one in positions])
    np.testing.assert_allclose(dense.numpy(), truth, rtol=0, atol=2e-5)
    assert (truth < 0.35).any()


def test_blocks_of_observers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    positions = torch.randn(2, 11, 2, generator=torch.Generator().manual_seed(0)) * 0.3
    lidar = Lidar.make(12, 0.35, 0.1, CPU)
    whole = lidar.dense(positions)
    pairs = near_pairs(positions.view(-1, 2), torch.arange(2).repeat_interleave(11), lidar.reach)
    monkeypatch.setattr("graphsnd.rl.worlds.lidar.ENTRIES", 2 * 11 * 12 * 3)
    monkeypatch.setattr("graphsnd.rl.worlds.lidar.PAIRS", 7)
    assert torch.equal(lidar.dense(positions), whole)
    assert torch.equal(lidar.sparse(positions.view(-1, 2), *pairs), whole.view(-1, 12))
