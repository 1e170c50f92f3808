from __future__ import annotations

import math

import pytest
import torch
from torch import distributions as D

import graphsnd as gs
from graphsnd.control.actions import CategoricalActions, NormalActions, TanhNormalActions, action_distribution
from graphsnd.teams import CategoricalHead, GaussianHead, TanhNormalHead


@pytest.fixture
def moments(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    loc = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    return loc, torch.rand(3, 5, 2, generator=generator, dtype=torch.float64) + 0.2


@torch.no_grad()
def draw(actions: NormalActions | TanhNormalActions | CategoricalActions, generator: torch.Generator) -> torch.Tensor:
    """Return an action for noise from the generator."""
    if isinstance(actions, CategoricalActions):
        return actions.act(torch.rand(actions.logits.shape[:-1], generator=generator))
    return actions.act(torch.randn(actions.loc.shape, generator=generator, dtype=actions.loc.dtype))


def test_normal_is_that_of_torch(moments: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator) -> None:
    ours, theirs = NormalActions(*moments), D.Independent(D.Normal(*moments), 1)
    actions = draw(ours, generator)
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())


def test_tanh_normal_is_that_of_torch(moments: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator) -> None:
    ours = TanhNormalActions(*moments)
    theirs = D.Independent(D.TransformedDistribution(D.Normal(*moments), [D.TanhTransform()]), 1)
    actions = draw(ours, generator)
    assert bool((actions.abs() < 1).all())
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(ours.entropy(), D.Independent(D.Normal(*moments), 1).entropy())


def test_tanh_normal_integrates_to_one() -> None:
    actions = torch.linspace(-1, 1, 200_001, dtype=torch.float64)[1:-1].unsqueeze(-1)
    ours = TanhNormalActions(torch.tensor([0.4]).double(), torch.tensor([0.6]).double())
    assert float(torch.trapezoid(ours.log_prob(actions).exp(), actions.squeeze(-1))) == pytest.approx(1, abs=1e-6)


def test_categorical_is_that_of_torch(generator: torch.Generator) -> None:
    logits = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64)
    ours, theirs = CategoricalActions(logits), D.Categorical(logits=logits)
    actions = draw(ours, generator)
    assert actions.shape == (3, 5)
    torch.testing.assert_close(ours.log_prob(actions), theirs.log_prob(actions))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())


def test_saturated_actions_have_finite_densities_and_gradients(generator: torch.Generator) -> None:
    loc = torch.full((1000, 2), 12.0, requires_grad=True)
    ours = TanhNormalActions(loc, torch.ones(2))
    log_prob = ours.log_prob(draw(ours, generator))
    log_prob.sum().backward()
    assert loc.grad is not None
    assert bool(torch.isfinite(log_prob).all() and torch.isfinite(loc.grad).all())
    assert bool(torch.isfinite(ours.log_prob(torch.ones(1000, 2))).all())


def test_moments_of_samples(generator: torch.Generator) -> None:
    count = 40_000
    loc, scale = torch.tensor([0.5, -1.0]), torch.tensor([0.3, 2.0])
    normal = draw(NormalActions(loc.expand(count, 2), scale.expand(count, 2)), generator)
    assert bool(((normal.mean(0) - loc).abs() < 4 * scale / math.sqrt(count)).all())
    assert bool(((normal.std(0) / scale - 1).abs() < 4 / math.sqrt(2 * count)).all())
    squashed = draw(TanhNormalActions(loc.expand(count, 2), scale.expand(count, 2)), generator)
    # Monotone maps carry medians to medians; the density at the median gives its error.
    share = (squashed < torch.tanh(loc)).double().mean(0)
    assert bool(((share - 0.5).abs() < 4 * 0.5 / math.sqrt(count)).all())
    probs = torch.tensor([0.1, 0.2, 0.7])
    drawn = draw(CategoricalActions(probs.log().expand(count, 3)), generator)
    shares = torch.bincount(drawn, minlength=3) / count
    assert bool(((shares - probs).abs() < 4 * (probs * (1 - probs) / count).sqrt()).all())


def test_modes() -> None:
    loc = torch.tensor([[0.5, -2.0]])
    assert NormalActions(loc, loc).mode() is loc
    torch.testing.assert_close(TanhNormalActions(loc, loc).mode(), loc.tanh())
    assert CategoricalActions(loc).mode().tolist() == [0]


def test_gradients_reach_the_parameters(moments: tuple[torch.Tensor, torch.Tensor], generator: torch.Generator) -> None:
    loc, scale = (moment.clone().requires_grad_() for moment in moments)
    actions = draw(TanhNormalActions(loc, scale), generator)
    for family in (NormalActions, TanhNormalActions):
        assert torch.autograd.gradcheck(lambda a, b, f=family: f(a, b).log_prob(actions), (loc, scale))
    assert torch.autograd.gradcheck(lambda a: CategoricalActions(a).entropy(), (loc,))


N = 7


def test_distribution_and_behaviour_agree(generator: torch.Generator) -> None:
    head = GaussianHead(2, batch=(3, N), mean="identity")
    head.log_std.data.normal_(generator=generator)
    output = torch.randn(3, N, 16, 2, generator=generator)
    actions = action_distribution(head, output)
    assert isinstance(actions, NormalActions)
    for run in range(3):
        alone = GaussianHead(2, batch=(N,), mean="identity")
        alone.load_state_dict({"log_std": head.log_std.data[run]})
        behavior = alone.behavior(output[run].transpose(0, 1))
        assert isinstance(behavior, gs.Gaussian)
        torch.testing.assert_close(behavior.loc.transpose(0, 1), actions.loc[run])
        torch.testing.assert_close(behavior.scale.transpose(0, 1), actions.scale[run])
    logits = action_distribution(CategoricalHead(4), torch.zeros(3, N, 16, 4))
    assert isinstance(logits, CategoricalActions)
    assert action_distribution(TanhNormalHead(2), torch.zeros(3, N, 16, 4)).loc.shape == (3, N, 16, 2)
