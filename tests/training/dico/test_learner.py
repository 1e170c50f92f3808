from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import Tensor

from graphsnd.control import State, measure_points
from graphsnd.designs import Complete
from graphsnd.training.dico import ControlSettings, ControlTask, ControlTrainer
from graphsnd.training.dico.frames import Frames, shown
from graphsnd.training.dico.stopwatch import Stopwatch

TINY = ControlSettings(
    environments=3, steps=6, passes=2, minibatch=10, hidden=(8,), observations=20, audit_observations=30, iterations=4,
    learning_rate=1e-3,
)  # fmt: skip
WATCH = Stopwatch(torch.device("cpu"))


def _trainer(*estimators: str, settings: ControlSettings = TINY, **options: object) -> ControlTrainer:
    task = ControlTask(4, (0.1,), estimators or ("complete",), settings=settings)
    return ControlTrainer(dataclasses.replace(task, **options))  # type: ignore[arg-type]


def _batch(trainer: ControlTrainer, frames: int = 10) -> Frames:
    trainer.step()
    index = torch.arange(frames).expand(len(trainer.runs), -1)
    return Frames.of(trainer.memory, trainer.settings).take(index)


def test_one_estimate_for_each_step_and_it_sees_the_right_observations() -> None:
    trainer = _trainer()
    batch = _batch(trainer)
    learner = trainer.learner
    before, calls = learner.states[0], int(learner.states[0].steps)
    assert calls == trainer.settings.optimiser_steps == 4
    frame, agent = shown(10, 4, 20)
    rows = batch.observations[:, agent, frame]
    measured = measure_points(Complete(), learner.policy.deviation(rows)).value
    expected = 0.99 * before.estimate + 0.01 * measured
    scale = learner.control(batch, torch.arange(10).unsqueeze(0), [torch.Generator()], WATCH)
    assert scale.tolist() == pytest.approx((0.1 / expected).tolist(), rel=1e-9)
    assert int(learner.states[0].steps) == calls + 1


def test_shown_observations_are_distinct_and_spread() -> None:
    for frames, agents, count in ((7, 3, 5), (7, 3, 14), (4, 5, 99)):
        frame, agent = shown(frames, agents, count)
        pairs = set(zip(frame.tolist(), agent.tolist(), strict=True))
        assert len(pairs) == len(frame) == min(count, frames * agents)
        assert agent.bincount(minlength=agents).max() - agent.bincount(minlength=agents).min() <= 2


def test_policy_loss_is_the_clipped_objective() -> None:
    trainer = _trainer()
    batch = _batch(trainer)
    scale = trainer.learner.scale()
    found = trainer.learner.objective.losses(batch, scale)
    loc, sigma = (part.double() for part in trainer.learner.policy.parameters_of(batch.observations, scale))
    normal = torch.distributions.Normal(loc, sigma)
    squashed = torch.distributions.TransformedDistribution(normal, [torch.distributions.TanhTransform()])
    ratio = (squashed.log_prob(batch.actions.double()).sum(-1) - batch.log_probs).exp()
    one, two = ratio * batch.advantages, ratio.clamp(0.8, 1.2) * batch.advantages
    assert float(found) == pytest.approx(float(-torch.minimum(one, two).mean()), rel=1e-4, abs=1e-7)


def test_the_time_limit_ends_a_return() -> None:
    settings = TINY.replace(steps=7, gamma=0.9, gae_lambda=1.0)
    trainer = _trainer(settings=settings, options={"food_radius": 3.0, "share_reward": True, "horizon": 5, "n_food": 4})
    trainer.step()
    # All food is eaten in the first step of every episode, which ends it.
    assert bool(trainer.memory.done.all())
    frames = Frames.of(trainer.memory, settings)
    torch.testing.assert_close(frames.returns, torch.full_like(frames.returns, 4.0))
    trainer = _trainer(settings=settings, options={"food_radius": 1e-6, "horizon": 5})
    trainer.step()
    assert trainer.memory.done[0, :, 0].nonzero().flatten().tolist() == [4]
    frames = Frames.of(trainer.memory, settings)
    returns = frames.returns.unflatten(2, (7, 3))
    assert float(returns[0, :, 4].abs().max()) == pytest.approx(0.0, abs=1e-6)
    assert float(returns[0, :, 6].abs().min()) > 0  # the end of the rollout is not an end


def test_means_are_pulled_into_the_box() -> None:
    trainer = _trainer(settings=TINY.replace(action_learning_rate=1e-2))
    batch, learner = _batch(trainer), trainer.learner
    assert learner.rested
    with torch.no_grad():
        learner.policy.deviations.biases[-1].fill_(4.0)
    one = torch.ones(1)

    def longest() -> Tensor:
        loc = learner.policy.parameters_of(batch.observations, one)[0]
        return (loc - loc.clamp(-1, 1)).norm(dim=-1).amax(1).mean()

    before = float(longest())
    for _ in range(20):
        learner._pull_inside(batch.observations, one)
    assert float(longest()) < 0.95 * before
    assert not learner.rested
    assert not learner.inside.at_rest()


@pytest.mark.parametrize("shape", [(), (2,), (2, 4)])
def test_gradient_of_the_overflow_is_that_of_all_rows(shape: tuple[int, ...]) -> None:
    trainer = _trainer(seeds=(0, 1))
    batch, policy = _batch(trainer), trainer.learner.policy
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
    for trainer, pull in ((sparse, "_pull_inside"), (dense, "_pull_all")):
        batch, learner = _batch(trainer), trainer.learner
        with torch.no_grad():
            learner.policy.deviations.biases[-1].copy_(torch.linspace(-1.2, 1.2, 8).view(1, 4, 1, 2))
        for _ in range(3):
            getattr(learner, pull)(batch.observations, torch.ones(1))
    for name, part in sparse.learner.tensors().items():
        torch.testing.assert_close(part, dense.learner.tensors()[name], rtol=1e-4, atol=1e-6, msg=name)


def test_leaving_the_rested_optimiser_out_changes_nothing() -> None:
    one, two = _trainer(), _trainer()
    two.learner.rested = False
    for trainer in (one, two):
        trainer.step()
        trainer.step()
    assert one.learner.rested
    batch = _batch(one), _batch(two)
    for trainer, some in zip((one, two), batch, strict=True):
        with torch.no_grad():
            trainer.learner.policy.deviations.biases[-1].fill_(4.0)
        trainer.learner._pull_inside(some.observations, torch.ones(1))  # after the rest, the first real step
    assert not one.learner.rested
    for name, part in one.learner.tensors().items():
        assert torch.equal(part, two.learner.tensors()[name]), name


def test_minibatches_are_gathered_from_contiguous_frames() -> None:
    trainer = _trainer()
    trainer.step()
    frames = Frames.of(trainer.memory, trainer.settings)
    for part in dataclasses.fields(frames):
        assert getattr(frames, part.name).is_contiguous(), part.name


def test_a_training_saved_before_bfloat16_goes_on_without_it() -> None:
    saved = _trainer().task.to_dict()
    assert ControlTask.from_dict(saved, Path("x")).settings.bfloat16
    del saved["settings"]["bfloat16"]
    assert not ControlTask.from_dict(saved, Path("x")).settings.bfloat16


def test_each_gradient_is_cut_by_the_norm_of_its_run() -> None:
    trainer = _trainer(seeds=(0, 1))
    optimiser = trainer.learner.critic
    optimiser.longest = 1.0
    loss = sum((10.0**run * part[run]).sum() for part in optimiser.parameters for run in range(2))
    assert isinstance(loss, Tensor)
    optimiser.step(loss)
    norms = [
        torch.sqrt(sum((optimiser.adam.state[p]["exp_avg"][run] / 0.1).square().sum() for p in optimiser.parameters))  # type: ignore[arg-type]
        for run in range(2)
    ]
    assert [float(norm) for norm in norms] == pytest.approx([1.0, 1.0], rel=1e-4)


def test_gradients_through_the_estimate_change_learning() -> None:
    stopped, through = (_trainer(settings=TINY.replace(through=flag, tau=0.5)) for flag in (False, True))
    for trainer in (stopped, through):
        trainer.step()
    name = "policy.deviations.weights.0"
    assert not torch.equal(stopped.tensors()[name], through.tensors()[name])


def test_states_are_kept_by_arm() -> None:
    trainer = _trainer("complete", "bernoulli:0.5", "agents:2", "knn:2")
    rows = trainer.step()
    assert [row.arm for row in rows] == ["complete", "bernoulli:0.5", "agents:2", "knn:2"]
    assert all(isinstance(state, State) and bool(state.begun.all()) for state in trainer.learner.states)
    assert len({round(row.estimate, 9) for row in rows}) == 4


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("bfloat16", [False, True])
def test_recorded_steps_learn_the_same(bfloat16: bool) -> None:
    settings = TINY.replace(hidden=(64, 64), bfloat16=bfloat16)
    task = ControlTask(4, (0.1,), ("complete", "bernoulli:0.5", "agents:2", "knn:2"), settings=settings)
    recorded, called = (ControlTrainer(task, "cuda", capture=capture) for capture in (True, False))
    for _ in range(3):
        rows = [trainer.step() for trainer in (recorded, called)]
    programs = [each.program for each in recorded.learner.recorded.values()]
    assert programs
    assert all(program.graph is not None for program in programs)
    for one, two in zip(*rows, strict=True):
        assert (one.audit, one.estimate) == pytest.approx((two.audit, two.estimate), rel=1e-4)
    for name, part in recorded.learner.tensors().items():
        torch.testing.assert_close(part, called.learner.tensors()[name], rtol=1e-3, atol=1e-5, msg=name)
