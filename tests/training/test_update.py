from __future__ import annotations

import pytest
import torch

from graphsnd.training import Settings, Trainer
from graphsnd.training.update import Adam, cut, gradients, rollouts_of
from graphsnd.worlds import Navigation, SimpleSpread


def test_adam_is_torchs(generator: torch.Generator) -> None:
    mine = torch.randn(4, 5, generator=generator)
    theirs = mine.clone().requires_grad_()
    optimizer = torch.optim.Adam([theirs], lr=3e-3)
    adam = Adam(mine)
    for scale in (1.0, 1e-3, 10.0, 1.0, 0.0, 1e-8):
        gradient = scale * torch.randn(4, 5, generator=generator)
        theirs.grad = gradient.clone()
        optimizer.step()
        adam.step(mine, gradient, 3e-3)
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("joint", [False, True])
def test_cut_is_torchs_for_each_agent_or_run(joint: bool, generator: torch.Generator) -> None:
    gradient = torch.randn(2, 3, 40, generator=generator) * torch.tensor([0.01, 1.0, 5.0]).view(3, 1)
    expected = gradient.clone()
    for run in range(2):
        for group in [expected[run]] if joint else list(expected[run]):
            leaf = torch.zeros_like(group).requires_grad_()
            leaf.grad = group
            torch.nn.utils.clip_grad_norm_([leaf], 0.5)
    torch.testing.assert_close(cut(gradient, 0.5, joint=joint), expected, rtol=1e-4, atol=1e-6)


def _trainer(world, **changes) -> Trainer:  # type: ignore[no-untyped-def]
    settings = Settings(steps=10, environments=4, minibatch=16, hidden=(8, 8), actor_gain=1.0, **changes)
    trainer = Trainer(world, settings, seeds=(0, 1))
    trainer._draw()
    trainer.rollout()
    # Away from where they acted, or every ratio would be 1 and nothing clipped.
    trainer.policies.flat += 0.1 * torch.randn(trainer.policies.flat.shape, generator=torch.Generator().manual_seed(1))
    return trainer


@pytest.mark.parametrize("world", [Navigation(3, 4), SimpleSpread(3, 4)], ids=lambda w: w.name)
@pytest.mark.parametrize("joint", [False, True])
def test_gradient_is_that_of_plain_modules(world, joint: bool) -> None:  # type: ignore[no-untyped-def]
    """Single agents as torch.nn modules with torch.distributions, in float64, one after the other."""
    trainer = _trainer(world, joint=joint)
    settings, rollouts = trainer.settings, rollouts_of(trainer.memory, trainer.settings)
    index = torch.stack([torch.arange(5, 21), torch.arange(20, 36)])
    found, numbers = gradients(trainer.policies, rollouts.take(index), settings)
    for run in range(2):
        for agent in range(3):
            flat = trainer.policies.flat[run, agent].double().requires_grad_()
            part = [getattr(rollouts, n)[run, index[run], agent] for n in
                    ("observations", "actions", "log_probs", "advantages", "returns")]  # fmt: skip
            loss, policy = _alone(flat, world, *part)
            (expected,) = torch.autograd.grad(loss / 3 if joint else loss, flat)
            torch.testing.assert_close(found[run, agent], expected.float(), rtol=2e-3, atol=2e-5)
            assert float(numbers[run, agent, 0]) == pytest.approx(policy.item(), rel=1e-3, abs=1e-5)


def _four(count: int) -> int:
    return count + -count % 4


def _alone(flat, world, seen, actions, old, advantage, returns):  # type: ignore[no-untyped-def]
    at = 0  # every piece begins at a multiple of 4

    def network(out: int) -> torch.Tensor:
        nonlocal at
        hidden = seen.double()
        for last, (a, b) in ((False, (world.observation_features, 8)), (False, (8, 8)), (True, (8, out))):
            weight, bias = flat[at : at + a * b].view(b, a), flat[at + _four(a * b) :][:b]
            hidden = torch.nn.functional.linear(hidden, weight, bias)
            hidden = hidden if last else hidden.tanh()
            at += _four(a * b) + _four(b)
        return hidden

    if world.name == "navigation":
        output, value = network(2), network(1).squeeze(-1)
        distribution = torch.distributions.Normal(output.tanh(), flat[at : at + 2].exp())
        log_prob, entropy = distribution.log_prob(actions.double()).sum(-1), distribution.entropy().sum(-1)
    else:
        output, value = network(5), network(1).squeeze(-1)
        discrete = torch.distributions.Categorical(logits=output)
        log_prob, entropy = discrete.log_prob(actions), discrete.entropy()
    ratio = (log_prob - old.double()).exp()
    assert bool(((ratio - 1).abs() > 0.2).any())
    gained = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return -gained + 0.5 * 0.5 * (value - returns).square().mean() - 0.01 * entropy.mean(), -gained


def test_no_agent_weighs_on_another() -> None:
    """Another agent's rewards change its own parameters and nobody else's, to the bit."""
    one, two = (_trainer(Navigation(3, 4)) for _ in range(2))
    two.memory.rewards[0, :, :, 1] *= 50
    one.learn()
    two.learn()
    same = (one.policies.flat == two.policies.flat).all(-1)
    assert same.tolist() == [[True, False, True], [True, True, True]]


def test_a_joint_norm_does_weigh() -> None:
    one, two = (_trainer(Navigation(3, 4), joint=True) for _ in range(2))
    two.memory.rewards[0, :, :, 1] *= 50
    one.learn()
    two.learn()
    same = (one.policies.flat == two.policies.flat).all(-1)
    assert not same[0].any()
    assert bool(same[1].all())


def test_blocks_do_not_change_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _trainer(Navigation(3, 4))
    monkeypatch.setattr("graphsnd.training.policies.CACHED", 8 * 16 * 2)
    two = _trainer(Navigation(3, 4))
    assert (len(one.policies.blocks), len(two.policies.blocks)) == (1, 3)
    one.learn()
    two.learn()
    torch.testing.assert_close(one.policies.flat, two.policies.flat, rtol=1e-4, atol=1e-6)


def test_tanh_normal_policies_learn_too() -> None:
    trainer = _trainer(Navigation(3, 4), policy="tanh-normal")
    before = trainer.policies.flat.clone()
    trainer.learn()
    assert bool(torch.isfinite(trainer.policies.flat).all())
    assert bool((trainer.policies.flat != before).any(-1).all())
