from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.controlled import ControlledLearner, can_fuse, largest_overflow, policy_losses
from graphsnd.rl.ppo import Adam
from graphsnd.rl.rollout import Minibatch
from graphsnd.teams.engine import PLAIN, Engine
from tests.training import TINY, control_of, control_task


def _trainer(*designs: str, settings: Settings = TINY, **options: object) -> Trainer:
    task = control_task(4, (0.1,), designs or ("complete",), settings=settings)
    return dataclasses.replace(task, **options).make_trainer()  # type: ignore[arg-type]


def _learner(trainer: Trainer) -> ControlledLearner:
    assert isinstance(trainer.learner, ControlledLearner)
    return trainer.learner


def _batch(trainer: Trainer, samples: int = 10) -> Minibatch:
    trainer.step()
    index = torch.arange(samples).expand(len(trainer.seeds), -1)
    return Minibatch.from_rollout(trainer.buffer, trainer.settings, PLAIN).take(index, PLAIN)


class Joined(Engine):
    """As the fused engine says of itself."""

    fused = True


def _policy(kind: str) -> ControlledPolicy:
    return ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)], hidden=(8, 8), kind=kind)


def test_fused_only_where_it_does_the_same() -> None:
    policy = _policy("tanh-normal")
    assert not can_fuse(policy, differentiable=False)
    policy.deviations.engine = Joined()
    assert can_fuse(policy, differentiable=False)
    assert not can_fuse(policy, differentiable=True)
    other = _policy("gaussian")
    other.deviations.engine = Joined()
    assert not can_fuse(other, differentiable=False)


def test_the_largest_overflow_of_a_sample_and_whose_it_is() -> None:
    seen = torch.randn(1, 3, 20, 4, generator=torch.Generator().manual_seed(1))
    policy, scale = _policy("tanh-normal"), torch.tensor([9.0])
    over, agent = largest_overflow(policy, seen, scale)
    means = policy.parameters_of(seen, scale)[0][0].detach()
    for sample in range(20):
        outside = [float((m.abs() - 1).clamp_min(0).square().sum()) for m in means[:, sample]]
        assert float(over[0, sample]) == pytest.approx(max(outside), rel=1e-5, abs=1e-7)
        assert outside[int(agent[0, sample])] == pytest.approx(max(outside), rel=1e-5, abs=1e-7)
    assert float(over.max()) > 0


def test_policy_loss_is_the_clipped_objective() -> None:
    trainer = _trainer()
    batch = _batch(trainer)
    scale = control_of(trainer).scale()
    found = policy_losses(_learner(trainer).policy, batch, scale, 0.2)
    loc, sigma = (part.double() for part in _learner(trainer).policy.parameters_of(batch.observations, scale))
    normal = torch.distributions.Normal(loc, sigma)
    squashed = torch.distributions.TransformedDistribution(normal, [torch.distributions.TanhTransform()])
    ratio = (squashed.log_prob(batch.actions.double()).sum(-1) - batch.log_probs).exp()
    one, two = ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages
    assert float(found) == pytest.approx(float(-torch.minimum(one, two).mean()), rel=1e-4, abs=1e-7)


def _is_at_rest(adam: Adam) -> bool:
    """Return whether all gradients so far were 0."""
    return not any(bool(square.any()) for _, square in adam.moments)


def test_means_are_pulled_into_the_box() -> None:
    trainer = _trainer(settings=TINY.replace(action_learning_rate=1e-2))
    batch, learner = _batch(trainer), _learner(trainer)
    assert _is_at_rest(learner.box_adam)
    with torch.no_grad():
        learner.policy.deviations.biases[-1].fill_(4.0)
    one = torch.ones(1)

    def longest() -> Tensor:
        loc = learner.policy.parameters_of(batch.observations, one)[0]
        return (loc - loc.clamp(-1, 1)).norm(dim=-1).amax(1).mean()

    before = float(longest())
    for _ in range(20):
        learner.pull_inside(batch.observations, one)
    assert float(longest()) < 0.95 * before
    assert not _is_at_rest(learner.box_adam)


@pytest.mark.parametrize("shape", [(), (2,)])
def test_gradient_of_the_overflow_is_that_of_all_rows(shape: tuple[int, ...]) -> None:
    trainer = _trainer(seeds=(0, 1))
    batch, policy = _batch(trainer), _learner(trainer).policy
    with torch.no_grad():
        policy.deviations.biases[-1].copy_(torch.linspace(-1.2, 1.2, 16).view(2, 4, 1, 2))
    scale = torch.linspace(0.8, 1.1, max(1, torch.Size(shape).numel())).view(shape)
    loc = policy.parameters_of(batch.observations, scale)[0]
    over, agent = (loc - loc.detach().clamp(-1, 1)).square().sum(-1).max(1)
    outside = over.detach() > 0
    assert 0.1 < float(outside.float().mean()) < 1  # some frames have an agent outside, some none
    one = torch.autograd.grad(over.mean(1).sum(), list(policy.parameters()))
    found = policy.means_of(batch.observations, agent, outside, scale)
    torch.testing.assert_close(
        found[outside], loc.transpose(1, 2).gather(2, agent[..., None, None].expand(-1, -1, 1, 2)).squeeze(2)[outside]
    )
    beyond = (found - found.detach().clamp(-1, 1)).square().sum(-1) * outside
    two = torch.autograd.grad(beyond.mean(1).sum(), list(policy.parameters()))
    for expected, each in zip(one, two, strict=True):
        torch.testing.assert_close(each, expected, rtol=1e-5, atol=1e-8)


def test_both_ways_to_pull_means_inside_agree() -> None:
    sparse, dense = _trainer(), _trainer()
    for trainer, pull in ((sparse, "pull_inside"), (dense, "pull_all_inside")):
        batch, learner = _batch(trainer), _learner(trainer)
        with torch.no_grad():
            learner.policy.deviations.biases[-1].copy_(torch.linspace(-1.2, 1.2, 8).view(1, 4, 1, 2))
        for _ in range(3):
            getattr(learner, pull)(batch.observations, torch.ones(1))
    for name, part in sparse.learner.tensors().items():
        torch.testing.assert_close(part, dense.learner.tensors()[name], rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("bfloat16", [False, True])
def test_captured_steps_learn_the_same(bfloat16: bool) -> None:
    settings = TINY.replace(hidden=(64, 64), bfloat16=bfloat16)  # else TF32
    task = control_task(4, (0.1,), ("complete", "bernoulli:0.5", "agents:2", "knn:2"), settings=settings)
    captured, called = (task.make_trainer("cuda", capture=capture) for capture in (True, False))
    for _ in range(3):
        rows = [trainer.step() for trainer in (captured, called)]
    assert captured.captured
    assert all(step.graph.graph is not None for step in captured.captured.values())
    for one, two in zip(*rows, strict=True):
        assert (one.audit, one.estimate) == pytest.approx((two.audit, two.estimate), rel=1e-4)
    for name, part in captured.learner.tensors().items():
        torch.testing.assert_close(part, called.learner.tensors()[name], rtol=1e-3, atol=1e-5, msg=name)
