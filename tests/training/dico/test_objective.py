"""The fused objective against plain torch in float64, on a GPU; its choice everywhere."""

import pytest
import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.control.policy import spread
from graphsnd.control.team import combine
from graphsnd.kernels.networks import engine_for
from graphsnd.teams.actions import TanhNormalActions
from graphsnd.teams.engine import Engine
from graphsnd.teams.heads import SCALE_FLOOR, SCALE_SHIFT
from graphsnd.training.dico.frames import Frames
from graphsnd.training.dico.objective import FusedObjective, Objective, beyond, objective_for

RUNS, AGENTS, FRAMES = 2, 3, 700


class Joined(Engine):
    """As the fused engine says of itself."""

    fused = True


def _policy(kind: str) -> ControlledPolicy:
    return ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)], hidden=(8, 8), kind=kind)


def test_fused_only_where_it_does_the_same() -> None:
    policy = _policy("tanh-normal")
    assert type(objective_for(policy, 0.2, through=False)) is Objective
    policy.deviations.engine = Joined()
    assert type(objective_for(policy, 0.2, through=False)) is FusedObjective
    assert type(objective_for(policy, 0.2, through=True)) is Objective
    other = _policy("gaussian")
    other.deviations.engine = Joined()
    assert type(objective_for(other, 0.2, through=False)) is Objective


def test_furthest_is_the_largest_overflow_of_a_frame_and_says_whose() -> None:
    seen = torch.randn(1, 3, 20, 4, generator=torch.Generator().manual_seed(1))
    policy, scale = _policy("tanh-normal"), torch.tensor([9.0])
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


@pytest.mark.gpu
@pytest.mark.parametrize("actions", [1, 2, 3])
def test_fused_losses_and_slopes(actions: int) -> None:
    from graphsnd.kernels.gpu import learning

    common, deviations, drawn, advantages, change = _outputs(actions)
    scale = torch.linspace(0.3, 1.3, AGENTS * RUNS).view(RUNS, AGENTS).cuda()
    exact = [each.double().requires_grad_() for each in (common, deviations)]
    log_prob = _expected(exact[0], exact[1], scale.double()).log_prob(drawn.double())
    before = (log_prob.detach() + 0.3 * change).float()  # ratios on both sides of the clip
    ratio = (log_prob - before).exp()
    expected = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean((1, 2))
    rounded = [each.requires_grad_() for each in (common, deviations)]
    constants = learning.Constants(0.2, SCALE_SHIFT, SCALE_FLOOR)
    found = learning.losses(*rounded, drawn, before, advantages, scale, constants)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-6)
    weights = torch.tensor([1.0, -2.0], device="cuda")
    slopes = torch.autograd.grad((found * weights).sum(), rounded)
    for one, two in zip(slopes, torch.autograd.grad((expected * weights).sum(), exact), strict=True):
        assert float((one - two).abs().max()) < 1e-3 * float(two.abs().max())


@pytest.mark.gpu
def test_fused_overflow() -> None:
    from graphsnd.kernels.gpu import learning

    common, deviations, *_ = _outputs(2)
    scale = torch.tensor([1.0, 2.0], device="cuda")
    over, agent = learning.furthest(common, deviations, scale.unsqueeze(1).expand(RUNS, AGENTS))
    every = beyond(_expected(common, deviations, scale).loc)
    torch.testing.assert_close(over, every.amax(1), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(every.gather(1, agent.unsqueeze(1)).squeeze(1), every.amax(1), rtol=1e-4, atol=1e-6)
    assert bool((over > 0).any())
    assert bool((over == 0).any())


@pytest.mark.gpu
def test_fused_and_plain_objective_of_one_policy() -> None:
    policy = ControlledPolicy.create(
        AGENTS, 10, 2, generators=[torch.Generator().manual_seed(run) for run in range(RUNS)], hidden=(64, 64),
        device="cuda",
    )  # fmt: skip
    device, networks = torch.device("cuda"), (policy.shared, policy.deviations)
    engine = engine_for([each.sizes for each in networks], device, bfloat16=True)
    for network in networks:
        network.engine = engine
    fused, plain = objective_for(policy, 0.2, through=False), Objective(policy, 0.2)
    assert type(fused) is FusedObjective
    generator = torch.Generator().manual_seed(5)
    lead, scale = (RUNS, AGENTS, FRAMES), torch.tensor([0.5, 2.0], device=device)
    seen = engine.prepare(torch.randn(*lead, 10, generator=generator).to(device))
    actions = torch.tanh(torch.randn(*lead, 2, generator=generator)).to(device)
    advantages, returns = (torch.randn(lead, generator=generator).to(device) for _ in range(2))
    before = policy.distribution(seen, scale).log_prob(actions).detach() + 0.1 * returns
    batch = Frames(seen, seen[..., :2], actions, before, advantages, returns)
    losses = [each.losses(batch, scale) for each in (fused, plain)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-6)
    slopes = [torch.autograd.grad(each.sum(), list(policy.parameters())) for each in losses]
    for one, two in zip(*slopes, strict=True):
        assert float((one - two).norm()) < 1e-2 * float(two.norm())  # bfloat16 products on both sides
    (over, agent), (expected, whose) = (each.furthest(seen, 5 * scale) for each in (fused, plain))
    torch.testing.assert_close(over, expected, rtol=1e-4, atol=1e-6)
    assert bool((agent == whose)[expected > 1e-3].all())
    assert bool((expected > 1e-3).any())
