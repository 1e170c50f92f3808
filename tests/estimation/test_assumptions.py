from __future__ import annotations

import math

import pytest
import torch

from graphsnd.estimation.assumptions import moments


@pytest.mark.parametrize("n", [4, 5, 9, 40])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_moments_are_those_of_a_team_with_these_effects(n: int, share: float) -> None:
    generator = torch.Generator().manual_seed(n)
    a = torch.randn(n, generator=generator, dtype=torch.float64)
    a -= a.mean()
    effects = a[:, None] + a
    noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
    noise = noise + noise.T
    noise.fill_diagonal_(0)
    off = ~torch.eye(n, dtype=torch.bool)
    noise = (noise - noise.sum() / (n * (n - 1))) * off
    fit = noise.sum(1) / (n - 2)
    rest = (noise - fit[:, None] - fit) * off
    i, j = torch.triu_indices(n, n, 1)
    effects = effects * math.sqrt(share / float((effects[i, j] ** 2).mean()))
    rest = rest * math.sqrt((1 - share) / max(1e-300, float((rest[i, j] ** 2).mean())))
    x = effects[i, j] + rest[i, j]
    products = torch.outer(x, x)
    same = torch.eye(len(x), dtype=torch.bool)
    meet = ((i[:, None] == i) | (i[:, None] == j) | (j[:, None] == i) | (j[:, None] == j)) & ~same
    expected = torch.stack([products[same].mean(), products[meet].mean(), products[~meet & ~same].mean()])
    assert torch.allclose(moments(n, 1.0, share), expected, atol=1e-9)
