from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.behavior.gaussian import psd_sqrt


def random_covariances(rng: np.random.Generator, *shape: int) -> np.ndarray:
    factor = rng.normal(size=(*shape, shape[-1]))
    return factor @ np.swapaxes(factor, -1, -2) + 0.05 * np.eye(shape[-1])


@pytest.mark.parametrize("actions", [1, 2, 3, 5])
def test_against_pot(actions: int) -> None:
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(actions)
    loc, covariance = rng.normal(size=(1, 5, actions)), random_covariances(rng, 1, 5, actions)
    measured = gs.pairwise(gs.MultivariateGaussian(torch.from_numpy(loc), torch.from_numpy(covariance)))
    for i in range(5):
        for j in range(i):
            expected = ot.gaussian.bures_wasserstein_distance(loc[0, i], loc[0, j], covariance[0, i], covariance[0, j])
            assert float(measured[i, j]) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("actions", [1, 2, 3])
def test_close_gaussians_keep_their_distance(actions: int) -> None:
    # W2 of N(0, C) and N(0, (1+t)^2 C) is t sqrt(tr C) exactly; the textbook trace formula gives noise here.
    covariance = torch.from_numpy(random_covariances(np.random.default_rng(1), actions))
    loc = torch.zeros(1, 2, actions, dtype=torch.float64)
    t = 1e-7
    pair = torch.stack([covariance, (1 + t) ** 2 * covariance])[None]
    expected = t * float(covariance.trace()) ** 0.5
    assert float(gs.snd(gs.MultivariateGaussian(loc, pair))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("actions", [2, 3])
def test_singular_covariances(actions: int) -> None:
    # Point masses and lines: W2(N(0, vv'), delta_0) = |v|.
    v = torch.arange(1.0, actions + 1, dtype=torch.float64)
    pair = torch.stack([torch.outer(v, v), torch.zeros(actions, actions, dtype=torch.float64)])[None]
    behavior = gs.MultivariateGaussian(torch.zeros(1, 2, actions, dtype=torch.float64), pair)
    assert float(gs.snd(behavior)) == pytest.approx(float(v.norm()), rel=1e-6)


def test_orthogonal_lines() -> None:
    pair = torch.diag_embed(torch.tensor([[[1.0, 0.0], [0.0, 4.0]]], dtype=torch.float64))
    behavior = gs.MultivariateGaussian(torch.zeros(1, 2, 2, dtype=torch.float64), pair)
    assert float(gs.snd(behavior)) == pytest.approx(5**0.5, rel=1e-12)


def test_scale_broadcasts_and_takes_the_wider_precision() -> None:
    loc = torch.zeros(4, 3, 2)
    assert gs.Gaussian(loc, 0.5).scale.shape == loc.shape
    assert gs.Gaussian(loc, torch.ones(2, dtype=torch.float64)).loc.dtype == torch.float64
    assert gs.Gaussian(loc.double(), 0.1).scale[0, 0, 0].item() == 0.1
    assert gs.Gaussian(loc.half(), 0.1).scale.dtype == torch.float16


def test_psd_sqrt_gradient_at_repeated_and_zero_eigenvalues() -> None:
    matrix = torch.stack([torch.eye(3), torch.zeros(3, 3), torch.diag(torch.tensor([1.0, 1.0, 0.0]))]).double()
    matrix.requires_grad_()
    psd_sqrt(matrix).sum().backward()
    assert matrix.grad is not None
    assert matrix.grad.isfinite().all()
    torch.testing.assert_close(matrix.grad[0], torch.full((3, 3), 0.5, dtype=torch.float64))
    assert not matrix.grad[1].any()


def test_second_derivatives_are_refused_instead_of_wrong() -> None:
    matrix = torch.eye(2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(psd_sqrt(matrix).square().sum(), matrix, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_float32_rounding_is_no_reason_to_refuse_a_covariance() -> None:
    factor = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 3, 4, 1))).float()
    gs.MultivariateGaussian(torch.zeros(50, 3, 4), factor @ factor.mT)
