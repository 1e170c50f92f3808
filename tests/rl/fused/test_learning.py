"""The fused loss, overflow and Adam against plain torch in float64, on a GPU."""

import pytest
import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.control.actions import TanhNormalActions
from graphsnd.control.networks import combine
from graphsnd.rl.controlled import can_fuse, largest_overflow, policy_losses, squared_overflow
from graphsnd.rl.fused import choose_engine
from graphsnd.rl.rollout import Minibatch

RUNS, AGENTS, SAMPLES = 2, 3, 700
RATE, EPSILON = 1e-2, 1e-5


def _outputs(actions: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(actions)
    lead = (RUNS, AGENTS, SAMPLES)
    common = torch.randn(*lead, 2 * actions, generator=generator) * 0.7
    deviations, noise = (torch.randn(*lead, actions, generator=generator) * 0.7 for _ in range(2))
    advantages, change = (torch.randn(lead, generator=generator) for _ in range(2))
    return [each.cuda() for each in (common, deviations, torch.tanh(noise), advantages, change)]


def _expected(common: Tensor, deviations: Tensor, scale: Tensor) -> TanhNormalActions:
    return TanhNormalActions(*combine("tanh-normal", common, deviations, scale[..., None, None]))


@pytest.mark.gpu
@pytest.mark.parametrize("actions", [1, 2, 3])
def test_fused_losses_and_slopes(actions: int) -> None:
    from graphsnd.rl.fused import learning

    common, deviations, drawn, advantages, change = _outputs(actions)
    scale = torch.linspace(0.3, 1.3, AGENTS * RUNS).view(RUNS, AGENTS).cuda()
    exact = [each.double().requires_grad_() for each in (common, deviations)]
    log_prob = _expected(exact[0], exact[1], scale.double()).log_prob(drawn.double())
    before = (log_prob.detach() + 0.3 * change).float()  # ratios on both sides of the clip
    ratio = (log_prob - before).exp()
    expected = -torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean((1, 2))
    rounded = [each.requires_grad_() for each in (common, deviations)]
    found = learning.clipped_losses(*rounded, drawn, before, advantages, scale, 0.2)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-6)
    weights = torch.tensor([1.0, -2.0], device="cuda")
    slopes = torch.autograd.grad((found * weights).sum(), rounded)
    for one, two in zip(slopes, torch.autograd.grad((expected * weights).sum(), exact), strict=True):
        assert float((one - two).abs().max()) < 1e-3 * float(two.abs().max())


@pytest.mark.gpu
def test_fused_overflow() -> None:
    from graphsnd.rl.fused import learning

    common, deviations, *_ = _outputs(2)
    scale = torch.tensor([1.0, 2.0], device="cuda").unsqueeze(1).expand(RUNS, AGENTS)
    over, agent = learning.largest_overflow(common, deviations, scale)
    every = squared_overflow(_expected(common, deviations, scale).loc)
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
    engine = choose_engine([each.sizes for each in networks], device, bfloat16=True)
    for network in networks:
        network.engine = engine
    assert can_fuse(policy, differentiable=False)
    generator = torch.Generator().manual_seed(5)
    lead, scale = (RUNS, AGENTS, SAMPLES), torch.tensor([0.5, 2.0], device=device)
    seen = engine.prepare(torch.randn(*lead, 10, generator=generator).to(device))
    actions = torch.tanh(torch.randn(*lead, 2, generator=generator)).to(device)
    advantages, returns = (torch.randn(lead, generator=generator).to(device) for _ in range(2))
    before = policy.distribution(seen, scale).log_prob(actions).detach() + 0.1 * returns
    batch = Minibatch(seen, actions, before, advantages, returns)
    losses = [policy_losses(policy, batch, scale, 0.2, fused=fused) for fused in (True, False)]
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-6)
    slopes = [torch.autograd.grad(each.sum(), list(policy.parameters())) for each in losses]
    for one, two in zip(*slopes, strict=True):
        assert float((one - two).norm()) < 1e-2 * float(two.norm())  # bfloat16 products on both sides
    (over, agent), (expected, whose) = (
        largest_overflow(policy, seen, 5 * scale, fused=fused) for fused in (True, False)
    )
    torch.testing.assert_close(over, expected, rtol=1e-4, atol=1e-6)
    assert bool((agent == whose)[expected > 1e-3].all())
    assert bool((expected > 1e-3).any())


@pytest.mark.gpu
@pytest.mark.parametrize("form", ["dense", "narrow", "transposed", "one network", "one run"])
def test_fused_step_reads_gradients_as_networks_leave_them(form: str) -> None:
    from graphsnd.rl.fused.learning import adam_step

    generator = torch.Generator().manual_seed(1)
    runs, networks = (1 if form == "one run" else 2), (1 if form == "one network" else 3)
    slope = torch.randn(runs, networks, 12, 7, generator=generator).cuda()
    slope = {"narrow": slope[:, :, :10], "transposed": slope.mT}.get(form, slope)
    assert slope.is_contiguous() == (form not in ("narrow", "transposed"))
    begin, mean, square = (torch.rand(slope.shape, generator=generator).cuda() for _ in range(3))
    factors = torch.linspace(0.2, 0.9, runs).cuda()
    clipped = (slope * factors.view(-1, 1, 1, 1)).double()
    first, second = 0.9 * mean.double() + 0.1 * clipped, 0.999 * square.double() + 0.001 * clipped.square()
    root = (second / (1 - 0.999**7)).sqrt()
    expected = begin.double() - RATE * first / (1 - 0.9**7) / (root + EPSILON)
    steps = torch.tensor(7.0).cuda()
    adam_step(
        [begin], [slope], [(mean, square)], factors, steps, learning_rate=RATE, betas=(0.9, 0.999), epsilon=EPSILON
    )
    for one, two in ((begin, expected), (mean, first), (square, second)):
        torch.testing.assert_close(one.double(), two, rtol=1e-5, atol=1e-6)
