"""The fused objective against plain torch in float64, on a GPU; its choice everywhere."""

import pytest
import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.control.policy import spread
from graphsnd.control.team import combine
from graphsnd.teams.actions import TanhNormalActions
from graphsnd.teams.engine import Engine
from graphsnd.teams.heads import SCALE_SHIFT
from graphsnd.training.dico.objective import FusedObjective, Objective, beyond, objective_for

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
RUNS, AGENTS, FRAMES = 2, 3, 700


def _policy(kind: str) -> ControlledPolicy:
    return ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)], hidden=(8, 8), kind=kind)


def test_fused_only_where_it_does_the_same() -> None:
    policy = _policy("tanh-normal")
    assert type(objective_for(policy, 0.2, through=False)) is Objective
    policy.deviations.engine = Engine()  # any but the plain one
    assert type(objective_for(policy, 0.2, through=False)) is FusedObjective
    assert type(objective_for(policy, 0.2, through=True)) is Objective
    other = _policy("gaussian")
    other.deviations.engine = Engine()
    assert type(objective_for(other, 0.2, through=False)) is Objective


def test_furthest_is_the_largest_overflow_of_a_frame_and_says_whose() -> None:
    policy, seen, scale = _policy("tanh-normal"), torch.randn(1, 3, 20, 4), torch.tensor([9.0])
    over, agent = Objective(policy, 0.2).furthest(seen, scale)
    means = policy.parameters_of(seen, scale)[0][0].detach()
    for frame in range(20):
        outside = [float((m.abs() - 1).clamp_min(0).square().sum()) for m in means[:, frame]]
        assert float(over[0, frame]) == pytest.approx(max(outside), rel=1e-5, abs=1e-7)
        assert outside[int(agent[0, frame])] == pytest.approx(max(outside), rel=1e-5, abs=1e-7)
    assert float(over.max()) > 0


def _outputs(actions: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(actions)
    lead = (RUNS, AGENTS, FRAMES)
    common = torch.randn(*lead, 2 * actions, generator=generator) * 0.7
    deviations, noise = (torch.randn(*lead, actions, generator=generator) * 0.7 for _ in range(2))
    advantages, change = (torch.randn(lead, generator=generator) for _ in range(2))
    return [each.cuda() for each in (common, deviations, torch.tanh(noise), advantages, change)]


def _expected(common: Tensor, deviations: Tensor, scale: Tensor) -> TanhNormalActions:
    return TanhNormalActions(*combine("tanh-normal", common, spread(scale, deviations) * deviations))


@gpu
@pytest.mark.parametrize("actions", [1, 2, 3])
@pytest.mark.parametrize("per_agent", [False, True])
def test_fused_losses_and_slopes(actions: int, per_agent: bool) -> None:
    from graphsnd.kernels.gpu import learning

    common, deviations, drawn, advantages, change = _outputs(actions)
    shape = (RUNS, AGENTS) if per_agent else (RUNS,)
    scale = torch.linspace(0.3, 1.3, AGENTS * RUNS)[: 2 if not per_agent else None].view(shape).cuda()
    exact = [each.double().requires_grad_() for each in (common, deviations)]
    log_prob = _expected(exact[0], exact[1], scale.double()).log_prob(drawn.double())
    before = (log_prob.detach() + 0.3 * change).float()  # ratios on both sides of the clip
    ratio = (log_prob - before).exp()
    expected = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean((1, 2))
    rounded = [each.requires_grad_() for each in (common, deviations)]
    found = learning.losses(*rounded, drawn, before, advantages, scale, clip=0.2, shift=SCALE_SHIFT)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-6)
    weights = torch.tensor([1.0, -2.0], device="cuda")
    slopes = torch.autograd.grad((found * weights).sum(), rounded)
    for one, two in zip(slopes, torch.autograd.grad((expected * weights).sum(), exact), strict=True):
        assert float((one - two).abs().max()) < 1e-3 * float(two.abs().max())


@gpu
def test_fused_overflow() -> None:
    from graphsnd.kernels.gpu import learning

    common, deviations, *_ = _outputs(2)
    scale = torch.tensor([1.0, 2.0], device="cuda")
    over, agent = learning.outside(common, deviations, scale)
    every = beyond(_expected(common, deviations, scale).loc)
    torch.testing.assert_close(over, every.amax(1), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(every.gather(1, agent.unsqueeze(1)).squeeze(1), every.amax(1), rtol=1e-4, atol=1e-6)
    assert bool((over > 0).any())
    assert bool((over == 0).any())
