from __future__ import annotations

import math

import pytest
import torch
from scipy import integrate

import graphsnd as gs


def test_hellinger_between_gaussians_is_that_of_their_densities() -> None:
    means, scales = [0.3, -0.8], [0.7, 1.9]

    def density(x: float, k: int) -> float:
        return math.exp(-(((x - means[k]) / scales[k]) ** 2) / 2) / (scales[k] * math.sqrt(2 * math.pi))

    affinity, _ = integrate.quad(lambda x: math.sqrt(density(x, 0) * density(x, 1)), -20, 20)
    loc, scale = (torch.tensor(part, dtype=torch.float64).unsqueeze(1) for part in (means, scales))
    team = gs.Gaussian(loc.unsqueeze(0), scale)
    assert float(gs.snd(team, gs.Hellinger())) == pytest.approx(math.sqrt(1 - affinity), rel=1e-9)


def test_hellinger_of_near_agents_keeps_its_digits() -> None:
    # To first order the distance is |difference| / (sqrt(8) scale).
    for step in (1e-3, 1e-7, 1e-12):
        loc = torch.tensor([[[0.0], [step]]], dtype=torch.float64)
        assert float(gs.snd(gs.Gaussian(loc, 1.0), gs.Hellinger())) == pytest.approx(step / math.sqrt(8), rel=1e-6)


def test_hellinger_of_policies_without_spread_is_zero_or_one() -> None:
    loc = torch.tensor([[[0.0, 1.0], [0.0, 1.0], [0.0, 2.0], [0.0, 1.0]]], requires_grad=True)
    scale = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.5]]], requires_grad=True)
    matrix = gs.pairwise(gs.Gaussian(loc, scale), gs.Hellinger())
    expected = torch.tensor([[0.0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]])
    assert torch.equal(matrix, expected)
    matrix.sum().backward()
    assert loc.grad is not None
    assert scale.grad is not None
    assert not loc.grad.any()
    assert not scale.grad.any()


def test_hellinger_at_extreme_scales() -> None:
    for size in (1e-200, 1e200):
        loc = size * torch.tensor([[[0.0], [1.0]]], dtype=torch.float64)
        value = float(gs.snd(gs.Gaussian(loc, torch.full((1,), size, dtype=torch.float64)), gs.Hellinger()))
        assert value == pytest.approx(math.sqrt(-math.expm1(-1 / 8)), rel=1e-12)


def test_hellinger_of_gaussians_works_where_distances_do() -> None:
    team = gs.Gaussian(torch.randn(64, 12, 2, generator=torch.Generator().manual_seed(0)), 0.5)
    exact = float(gs.snd(team, gs.Hellinger()))
    for design in ("bernoulli:0.5", "ring:4", "agents:4"):
        estimate = gs.measure(team, design=design, distance=gs.Hellinger())
        assert estimate.interval[0] <= exact <= estimate.interval[1] <= 1
    with pytest.raises(gs.InputError, match="compiled kernel"):
        gs.snd(team, gs.Hellinger(), backend="cpu")
    with pytest.raises(gs.InputError, match="to fit"):
        gs.snd(gs.MultivariateGaussian(torch.zeros(2, 3, 2), torch.eye(2)), gs.Hellinger())
