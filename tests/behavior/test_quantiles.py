"""The quadrature rule: what it reaches, family by family, with the default number of nodes."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import torch
from scipy import special
from torch import distributions as D

import graphsnd as gs
from graphsnd.behavior.quantiles import TOLERANCE, estimate_error, nodes_and_weights
from tests import oracles


@pytest.mark.parametrize("count", [1, 2, 7, 32, 64, 128])
def test_rule(count: int) -> None:
    nodes, weights = nodes_and_weights(count)
    assert nodes.dtype == weights.dtype == torch.float64
    assert (nodes > 0).all()
    assert (nodes < 1).all()
    assert (nodes.diff() > 0).all()
    assert (weights > 0).all()
    assert float(weights.sum()) == pytest.approx(1, rel=1e-14)
    torch.testing.assert_close(nodes + nodes.flip(0), torch.ones_like(nodes))


@pytest.mark.parametrize("power", range(9))
def test_rule_integrates_polynomials(power: int) -> None:
    nodes, weights = nodes_and_weights(64)
    assert float((weights * nodes**power).sum()) == pytest.approx(1 / (power + 1), rel=1e-13)


def squashed(loc: list[float], scale: list[float]) -> D.Distribution:
    normal = D.Normal(torch.tensor([loc], dtype=torch.float64).T[None], torch.tensor([scale], dtype=torch.float64).T)
    return D.TransformedDistribution(normal, [D.TanhTransform()])


def integrate(loc: list[float], scale: list[float]) -> float:
    """Return the 2-Wasserstein distance behind the tanh, on a fine grid."""
    grid = np.linspace(-8.2, 8.2, 200_001)
    weights = np.exp(-(grid**2) / 2)
    one, two = (np.tanh(m + s * grid) for m, s in zip(loc, scale, strict=True))
    return np.sqrt((weights * (one - two) ** 2).sum() / weights.sum())


# Relative error allowed with the default nodes: 1e-6 for the policies one meets, and what is reached outside of them.
@pytest.mark.parametrize(
    ("loc", "scale", "tolerance"),
    [
        ([0.0, 0.0], [1.0, 0.5], 1e-8),
        ([0.0, 0.5], [0.1, 0.2], 1e-8),
        ([0.0, 0.0], [1e-3, 2e-3], 1e-8),
        ([0.5, -0.5], [1.0, 0.5], 1e-8),
        ([1.0, -1.0], [2.0, 1.0], 1e-8),
        ([3.0, 3.0], [0.1, 0.2], 1e-6),
        ([0.0, 0.0], [3.0, 1.0], 1e-6),
        ([0.0, 1.0], [5.0, 5.0], 1e-5),
        ([0.0, 0.0], [10.0, 1.0], 2e-3),  # nearly a coin toss: two steps in the quantile function
    ],
)
@pytest.mark.filterwarnings("ignore:Quantiles at 64 nodes")
def test_tanh_normal(loc: list[float], scale: list[float], tolerance: float) -> None:
    measured = float(gs.snd(gs.from_distribution(squashed(loc, scale))))
    assert measured == pytest.approx(integrate(loc, scale), rel=tolerance)


@pytest.mark.parametrize("loc", [[0.0, 0.0], [0.0, 1.0], [5.0, -10.0]])
@pytest.mark.parametrize("scale", [[20.0, 20.5], [20.0, 2.0], [100.0, 50.0]])
def test_ten_nodes_per_scale_resolve_the_step(loc: list[float], scale: list[float]) -> None:
    d, expected = squashed(loc, scale), integrate(loc, scale)
    assert float(gs.snd(gs.from_distribution(d, nodes=int(10 * max(scale))))) == pytest.approx(expected, rel=0.01)
    with pytest.warns(UserWarning, match="64 nodes are too coarse"):
        gs.from_distribution(d)


@pytest.mark.parametrize(
    ("one", "two", "tolerance"),
    [
        ((2.0, 3.0), (3.0, 2.0), 1e-8),
        ((1.0, 1.0), (5.0, 5.0), 1e-8),
        ((0.5, 0.5), (1.0, 1.0), 1e-8),
        ((50.0, 20.0), (20.0, 50.0), 1e-8),
        ((50.0, 50.0), (60.0, 60.0), 1e-8),
        ((1000.0, 1000.0), (1000.0, 1100.0), 1e-8),
        ((0.05, 2.0), (2.0, 0.05), 1e-8),
        ((0.1, 0.1), (0.5, 0.5), 1e-6),
    ],
)
def test_beta(one: tuple[float, float], two: tuple[float, float], tolerance: float) -> None:
    a, b = torch.tensor([one, two], dtype=torch.float64).T.reshape(2, 1, 2, 1)
    quantiles = oracles.beta_quantiles(a[0, :, 0].numpy(), b[0, :, 0].numpy())
    expected = oracles.wasserstein_1d(*quantiles)
    measured = float(gs.snd(gs.from_distribution(D.Beta(a, b))))
    assert measured == pytest.approx(expected, rel=tolerance)


# Levels u and 1 - u, evenly spaced far into both tails, and the weights of an integral over u.
STRETCH = np.linspace(-6.2, 6.2, 4001)
LEVELS = special.expit(2.5 * np.sinh(STRETCH)), special.expit(-2.5 * np.sinh(STRETCH))
FINE = LEVELS[0] * LEVELS[1] * 2.5 * np.cosh(STRETCH) * (STRETCH[1] - STRETCH[0])
CONCENTRATIONS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.3, 1.0, 5.0, 50.0)
TAILS = (2.02, 2.05, 2.1, 2.2, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0, 3.2, 3.5, 4.0, 6.0, 30.0)


def log(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The logarithm of u, also where v = 1 - u is far below the rounding of 1."""
    return np.where(u < v, np.log(u), np.log1p(-np.minimum(v, 0.5)))


def gauss(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.where(u < v, special.ndtri(u), -special.ndtri(v))


# Parameters of agents, and the quantile function at u = 1 - v, by other code than graphsnd's.
FAMILIES = {
    "beta": (
        D.Beta,
        list(product(CONCENTRATIONS, CONCENTRATIONS)),
        lambda u, v, a, b: np.where(u < v, special.betaincinv(a, b, u), 1 - special.betaincinv(b, a, v)),
    ),
    "tanh": (
        lambda loc, scale: D.TransformedDistribution(D.Normal(loc, scale), [D.TanhTransform()]),
        list(product((0.0, 0.5, 2.0, 5.0), (0.1, 1.0, 3.0, 5.0, 6.0, 6.5, 7.0, 7.5, 8.0, 9.0, 10.0, 15.0, 20.0))),
        lambda u, v, loc, scale: np.tanh(loc + scale * gauss(u, v)),
    ),
    "kumaraswamy": (
        D.Kumaraswamy,
        list(product(CONCENTRATIONS, CONCENTRATIONS)),
        lambda u, v, a, b: (-np.expm1(log(v, u) / b)) ** (1 / a),
    ),
    "pareto": (D.Pareto, list(product((1.0, 2.0), TAILS)), lambda u, v, scale, alpha: scale * v ** (-1 / alpha)),
    "generalized-pareto": (
        D.GeneralizedPareto,
        list(product((0.0, 1.0), (1.0,), (-1.0, -0.2, *(1 / alpha for alpha in TAILS if alpha > 2.05)))),
        lambda u, v, loc, scale, tail: loc + scale * np.expm1(-tail * np.log(v)) / tail,
    ),
    "log-normal": (
        D.LogNormal,
        list(product((0.0, 1.0), (0.1, 0.5, 1.0, 1.5, 1.8, 2.0, 2.1, 2.2, 2.5, 3.0, 4.0))),
        lambda u, v, loc, scale: np.exp(loc + scale * gauss(u, v)),
    ),
    "weibull": (
        D.Weibull,
        list(product((1.0, 2.0), (0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 1.0, 3.0, 50.0))),
        lambda u, v, scale, shape: scale * (-log(v, u)) ** (1 / shape),
    ),
    "gumbel": (
        D.Gumbel,
        list(product((0.0, 1.0), (0.01, 0.1, 1.0, 10.0))),
        lambda u, v, loc, scale: loc - scale * np.log(-log(u, v)),
    ),
    "laplace": (
        D.Laplace,
        list(product((0.0, 1.0), (0.01, 0.1, 1.0, 10.0))),
        lambda u, v, loc, scale: loc + scale * np.where(u < v, np.log(2 * u), -np.log(2 * v)),
    ),
}


@pytest.mark.parametrize("nodes", [32, 64])
@pytest.mark.parametrize("family", FAMILIES)
def test_errors_above_a_percent_are_warned_of(family: str, nodes: int) -> None:
    make, grid, quantiles = FAMILIES[family]
    parameters = np.array(
        [*grid, *((*each[:-1], 1.01 * each[-1]) for each in grid)]
    ).T  # and agents that act nearly alike
    d = make(*(torch.from_numpy(each).reshape(1, -1, 1) for each in parameters))
    coarse = gs.from_distribution(d, nodes=nodes, validate=False)
    estimates = estimate_error(coarse.values).flatten().numpy()  # type: ignore[attr-defined]
    exact = quantiles(*LEVELS, *parameters[..., None])
    sizes = np.sqrt(exact**2 @ FINE)
    measured = gs.pairwise(coarse).numpy()
    for one in range(len(exact)):
        expected = np.sqrt((exact - exact[one]) ** 2 @ FINE)
        counts = expected > 1e-4 * np.maximum(sizes, sizes[one])
        off = np.abs(measured[one, counts] / expected[counts] - 1)
        missed = (off > TOLERANCE) & (np.maximum(estimates, estimates[one])[counts] <= TOLERANCE)
        assert not missed.any(), (parameters[:, one], parameters[:, counts][:, missed])
    if (estimates > TOLERANCE).any():
        with pytest.warns(UserWarning, match=f"{nodes} nodes are too coarse.*off by about {estimates.max():.0%}"):
            gs.from_distribution(d, nodes=nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.from_distribution(d, nodes=nodes, validate=False)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agents_that_hardly_vary_are_not_warned_of(dtype: torch.dtype, scale: float) -> None:
    # Rounded to a few different numbers near 1, or underflown to 0 when squared, they look like steps.
    loc, deviation = torch.tensor([[[20.0], [30.0], [9.0]]], dtype=dtype), torch.tensor([1.0, 1e-9, 0.0], dtype=dtype)
    saturated = D.TransformedDistribution(
        D.Normal(loc, deviation[:, None], validate_args=False),
        [D.TanhTransform(), D.AffineTransform(0.0, scale)],
        validate_args=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.from_distribution(saturated)


def test_quantiles_by_hand() -> None:
    # Two uniforms on [0, 1] and [1, 2] are a translation apart.
    nodes, _ = nodes_and_weights(16)
    values = torch.stack([nodes, nodes + 1])[None, :, None]
    behavior = gs.Quantiles(values)
    assert (behavior.agents, behavior.observations) == (2, 1)
    assert float(gs.snd(behavior)) == pytest.approx(1, rel=1e-12)
