from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from graphsnd.behavior.behavior import embed
from graphsnd.teams import GaussianHead, TanhNormalHead
from graphsnd.teams.heads import biased_softplus

from .conftest import FEATURES, HEADS, N, stacked


def largest(behavior: gs.Behavior) -> float:
    points = embed(behavior)
    assert points.norm in (gs.behavior.points.Norm.EUCLIDEAN, gs.behavior.points.Norm.HALF_L1)
    power = 2 if points.norm is gs.behavior.points.Norm.EUCLIDEAN else 1
    return float(torch.cdist(points.values.detach(), points.values.detach(), p=power).max()) / (3 - power)


@pytest.mark.filterwarnings("ignore:Quantiles at 64 nodes")  # of the largest scale, e^2
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", list(HEADS))
def test_bound_holds_on_any_observation(kind: str, dtype: torch.dtype, generator: torch.Generator) -> None:
    team = stacked(kind, generator)
    team.network.to(dtype)
    team.head.to(dtype)
    for parameter in team.network.parameters():  # saturate, so that the extremes are reached
        parameter.data *= 3
    distance = gs.TotalVariation() if kind == "categorical" else gs.Wasserstein()
    bound = team.bound(distance)
    assert bound is not None
    most = 0.0
    for size in (0.0, 1.0, 1e3, 1e12):
        most = max(most, largest(team.evaluate(size * torch.randn(500, FEATURES, generator=generator, dtype=dtype))))
    assert most <= bound
    assert most > bound / 10


def test_bounds_in_closed_form() -> None:
    low, high = torch.full((3, 2), -torch.inf).double(), torch.full((3, 2), torch.inf).double()
    head = GaussianHead(2, batch=(3,))
    head.log_std.data[0] = math.log(0.5)
    head.log_std.data[1] = 100.0  # clamped to 2
    head.log_std.data[2] = 0.0
    expected = math.sqrt(2 * 2**2 + 2 * (math.exp(2) - 0.5) ** 2)
    assert head.bound(gs.Wasserstein(), low, high) == pytest.approx(expected, rel=1e-4)
    assert TanhNormalHead(1).bound(gs.Wasserstein(), low, high) == pytest.approx(2, rel=1e-4)
    # Two agents with outputs in [0, 1] and [3, 5]: at most 5 apart in each of two dimensions.
    low, high = torch.tensor([[0.0, 0.0], [3.0, 3.0]]).double(), torch.tensor([[1.0, 1.0], [5.0, 5.0]]).double()
    plain = GaussianHead(2, batch=(2,), mean="identity")
    assert plain.bound(gs.Wasserstein(), low, high) == pytest.approx(5 * math.sqrt(2), rel=1e-4)


@pytest.mark.parametrize("kind", list(HEADS))
def test_relu_networks_are_bounded_only_by_what_the_head_squashes(kind: str, generator: torch.Generator) -> None:
    team = stacked(kind, generator, activation="relu")
    bounded = kind in ("gaussian", "tanh-normal", "categorical")
    distance = gs.TotalVariation() if kind == "categorical" else gs.Wasserstein()
    assert (team.bound(distance) is not None) == bounded


def test_the_papers_policy(generator: torch.Generator) -> None:
    head = GaussianHead(2, batch=(N,))
    assert float(head.log_std.detach().unique()) == -0.5
    output = torch.randn(16, N, 2, generator=generator)
    behavior = head.behavior(output)
    assert isinstance(behavior, gs.Gaussian)
    torch.testing.assert_close(behavior.loc, torch.tanh(output))
    torch.testing.assert_close(behavior.scale, torch.full_like(output, math.exp(-0.5)))


def test_biased_softplus_is_torchrls() -> None:
    raw = torch.linspace(-30, 30, 201)
    torch.testing.assert_close(biased_softplus(torch.zeros(1)), torch.ones(1))
    assert float(biased_softplus(torch.tensor(-torch.inf))) == pytest.approx(0.01)
    utils = pytest.importorskip("tensordict.nn.utils")
    theirs = utils.biased_softplus(bias=1.0, min_val=0.01)(raw)
    torch.testing.assert_close(biased_softplus(raw), theirs)
