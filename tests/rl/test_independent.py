from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from graphsnd.kernels.threads import limit_threads
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.cuda import Stopwatch
from graphsnd.rl.independent import CentralCritic, IndependentLearner
from graphsnd.rl.rollout import Minibatch, fill_noise
from graphsnd.rl.worlds import Navigation, SimpleSpread


def _trainer(world, **changes) -> Trainer:  # type: ignore[no-untyped-def]
    settings = Settings(steps=10, environments=4, minibatch=16, hidden=(8, 8), actor_gain=1.0, **changes)
    trainer = Trainer(world, settings, seeds=(0, 1))
    for run, streams in enumerate(trainer.streams):
        fill_noise(trainer.buffer.noise[run], trainer.world.actions, streams.actions)
    trainer.rollout()
    # Away from where they acted, or every ratio would be 1 and nothing clipped.
    generator = torch.Generator().manual_seed(1)
    for networks in (_learner(trainer).policy, _learner(trainer).critic):
        networks.flat += 0.1 * torch.randn(networks.flat.shape, generator=generator)
    return trainer


def _learner(trainer: Trainer) -> IndependentLearner:
    assert isinstance(trainer.learner, IndependentLearner)
    return trainer.learner


def _samples(trainer: Trainer) -> Minibatch:
    trainer.estimate_advantages()
    return Minibatch.from_rollout(trainer.buffer, trainer.settings, trainer.policy.engine)


def _update(trainer: Trainer) -> None:
    trainer.update(Stopwatch(torch.device("cpu")))


def _parameters(trainer: Trainer) -> torch.Tensor:
    return torch.cat([_learner(trainer).policy.flat, _learner(trainer).critic.flat], -1)


@pytest.mark.parametrize("world", [Navigation(3, 4), SimpleSpread(3, 4)], ids=lambda w: w.name)
@pytest.mark.parametrize("joint", [False, True])
def test_gradient_is_that_of_plain_modules(world, joint: bool) -> None:  # type: ignore[no-untyped-def]
    """Single agents as torch.nn modules with torch.distributions, in float64, one after the other."""
    trainer = _trainer(world, joint=joint)
    rollouts = _samples(trainer)
    index = torch.stack([torch.arange(5, 21), torch.arange(20, 36)])
    learner = _learner(trainer)
    *gradients, numbers = learner.gradients(rollouts.take(index, trainer.policy.engine))
    names = ("observations", "actions", "log_probs", "advantages", "returns")
    for run in range(2):
        for agent in range(3):
            flats = [each.flat[run, agent].double().requires_grad_() for each in (learner.policy, learner.critic)]
            part = [getattr(rollouts, name)[run, agent, index[run]] for name in names]
            loss, policy = _alone(*flats, world, *part)
            expected = torch.autograd.grad(loss / 3 if joint else loss, flats)
            for found, one in zip(gradients, expected, strict=True):
                torch.testing.assert_close(found[run, agent], one.float(), rtol=2e-3, atol=2e-5)
            assert float(numbers[run, agent, 0]) == pytest.approx(policy.item(), rel=1e-3, abs=1e-5)


def _four(count: int) -> int:
    return count + -count % 4


def _alone(actor, critic, world, seen, actions, old, advantage, returns):  # type: ignore[no-untyped-def]
    def network(flat: torch.Tensor, out: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs, and the parameters that are left."""
        at, hidden = 0, seen.double()  # every piece begins at a multiple of 4
        for last, (a, b) in ((False, (world.observation_features, 8)), (False, (8, 8)), (True, (8, out))):
            weight, bias = flat[at : at + a * b].view(a, b).T, flat[at + _four(a * b) :][:b]
            hidden = torch.nn.functional.linear(hidden, weight, bias)
            hidden = hidden if last else hidden.tanh()
            at += _four(a * b) + _four(b)
        return hidden, flat[at:]

    if world.name == "navigation":
        output, log_std = network(actor, 2)
        distribution = torch.distributions.Normal(output.tanh(), log_std[:2].exp())
        log_prob, entropy = distribution.log_prob(actions.double()).sum(-1), distribution.entropy().sum(-1)
    else:
        discrete = torch.distributions.Categorical(logits=network(actor, 5)[0])
        log_prob, entropy = discrete.log_prob(actions), discrete.entropy()
    value = network(critic, 1)[0].squeeze(-1)
    ratio = (log_prob - old.double()).exp()
    assert bool(((ratio - 1).abs() > 0.2).any())
    gained = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    return -gained + 0.5 * 0.5 * (value - returns).square().mean() - 0.01 * entropy.mean(), -gained


OWN, ALL = [[True, False, True], [True] * 3], [[False] * 3, [True] * 3]


@pytest.mark.parametrize(("joint", "same"), [(False, OWN), (True, ALL)])
def test_only_a_joint_norm_lets_agents_affect_each_other(joint: bool, same: list[list[bool]]) -> None:
    """Else an agent's rewards change its own parameters and no others, to the bit; those of another run never."""
    one, two = (_trainer(Navigation(3, 4), joint=joint) for _ in range(2))
    two.buffer.rewards[0, :, :, 1] *= 50
    _update(one)
    _update(two)
    assert (_parameters(one) == _parameters(two)).all(-1).tolist() == same


def test_blocks_do_not_change_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _trainer(Navigation(3, 4))
    monkeypatch.setattr("graphsnd.rl.independent.CACHED", 8 * 16 * 2)
    two = _trainer(Navigation(3, 4))
    assert (len(_learner(one).policy.blocks), len(_learner(two).critic.blocks)) == (1, 3)
    _update(one)
    _update(two)
    torch.testing.assert_close(_parameters(one), _parameters(two), rtol=1e-4, atol=1e-6)


def test_threads_do_not_change_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit: a block is one thread's work, whatever their number."""
    monkeypatch.setattr("graphsnd.rl.independent.CACHED", 8 * 16 * 2)
    trainer = _trainer(Navigation(3, 4))
    batch = _samples(trainer).take(torch.arange(16).expand(2, -1), trainer.policy.engine)
    learner, found = _learner(trainer), {}
    for threads, apart in ((1, 1), (2, 2), (3, 3), (4, 1)):  # three blocks
        with limit_threads(threads), learner.update():
            assert learner.threads == apart
            assert torch.get_num_threads() == threads // apart
            found[threads] = learner.gradients(batch)
    for threads in (2, 3):
        assert all(map(torch.equal, found[threads], found[1]))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_central_critic_gives_the_team_the_value_of_a_plain_loop(activation: str) -> None:
    """Neuron by neuron in float64, on the observations of all agents side by side."""
    trainer = _trainer(SimpleSpread(3, 4), critic="central", activation=activation)
    critic = trainer.critic
    assert isinstance(critic, CentralCritic)
    seen = trainer.buffer.observations[:, 2].transpose(1, 2)  # [runs, agents, rows, features]
    values = critic.values(trainer.policy.prepare(seen)).detach()
    assert values.shape == (2, 3, 4)
    assert critic.flat.shape[:2] == (2, 1)
    function = math.tanh if activation == "tanh" else lambda x: max(x, 0.0)
    for run in range(2):
        for row in range(4):
            value = _central_loop(critic.flat[run, 0], seen[run, :, row], function)
            for agent in range(3):
                assert float(values[run, agent, row]) == pytest.approx(value, rel=1e-4, abs=1e-5)


def _central_loop(flat: torch.Tensor, seen: torch.Tensor, function: Callable[[float], float]) -> float:
    """One value; ``seen`` is ``[agents, features]``."""
    numbers, at = flat.double().tolist(), 0
    hidden = [number for agent in seen.double().tolist() for number in agent]
    for last, width in ((False, 8), (False, 8), (True, 1)):
        size, outputs = len(hidden), []
        for unit in range(width):
            weights = numbers[at + unit : at + size * width : width]
            bias = numbers[at + _four(size * width) + unit]
            outputs.append(sum(w * x for w, x in zip(weights, hidden, strict=True)) + bias)
        at += _four(size * width) + _four(width)
        hidden = outputs if last else [function(output) for output in outputs]
    return hidden[0]


@pytest.mark.parametrize("joint", [False, True])
def test_the_gradient_of_a_central_critic_is_that_of_the_mean_error_of_all_agents(joint: bool) -> None:
    """Against differences of the loss in float64, and independent critics leave the actors' gradients alone."""
    world = Navigation(3, 4)
    trainer, plain = (_trainer(world, joint=joint, critic=critic) for critic in ("central", "independent"))
    index = torch.stack([torch.arange(5, 21), torch.arange(20, 36)])
    batch = _samples(trainer).take(index, trainer.policy.engine)
    _learner(plain).policy.flat.copy_(_learner(trainer).policy.flat)
    actor, gradient, numbers = _learner(trainer).gradients(batch)
    assert torch.equal(actor, _learner(plain).gradients(batch)[0])

    def loss(run: int, flat: torch.Tensor) -> float:
        rows = range(batch.returns.shape[2])
        values = torch.tensor(
            [_central_loop(flat, batch.observations[run, :, row], math.tanh) for row in rows], dtype=torch.float64
        )
        return float(0.5 * (values - batch.returns[run].double()).square().mean())

    generator = torch.Generator().manual_seed(3)
    for run in range(2):
        flat = _learner(trainer).critic.flat[run, 0].double()
        assert float(numbers[run, 1, 1]) == pytest.approx(loss(run, flat), rel=1e-4)
        for _ in range(3):
            way = torch.randn(flat.shape, generator=generator, dtype=torch.float64)
            slope = (loss(run, flat + 1e-5 * way) - loss(run, flat - 1e-5 * way)) / 2e-5
            found = float(gradient[run, 0].double() @ way)
            assert found == pytest.approx(trainer.settings.value_coefficient * slope, rel=1e-3, abs=1e-5)  # type: ignore[attr-defined]


def test_a_central_critic_has_a_norm_of_its_own() -> None:
    """However large the critic's gradient is, actors take the same steps."""
    one, two = (_trainer(Navigation(3, 4), critic="central", value_coefficient=v) for v in (0.5, 5e6))
    for trainer in (one, two):
        _learner(trainer).learn(_samples(trainer).take(torch.arange(16).expand(2, -1), trainer.policy.engine))
    assert torch.equal(_learner(one).policy.flat, _learner(two).policy.flat)
