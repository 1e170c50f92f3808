"""Rollouts: fill the buffer with observations, actions and rewards of all agents of all runs.

Noise for a whole rollout is one draw for each run. The loop over steps is then a function of tensors alone: it can be
captured, and the actions of a run do not depend on the runs beside it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.rl.episodes import Bank
from graphsnd.rl.method import Critic, Policy
from graphsnd.rl.ppo import compute_gae, normalise
from graphsnd.rl.settings import Settings
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Continuous, Discrete
from graphsnd.teams.engine import Engine, take_rows


@dataclass(frozen=True, eq=False)
class RolloutBuffer:
    """One rollout: R runs, T steps, E environments, N agents. Allocated once, written in every iteration."""

    observations: Tensor  # [R, T, E, N, f], before the step
    actions: Tensor  # [R, T, E, N, k] as drawn, not clipped; int64 [R, T, E, N] when discrete
    log_probs: Tensor  # [R, T, E, N], of those actions
    values: Tensor  # [R, T + 1, E, N], of the observations; the last are those after the rollout
    final_values: Tensor | None  # [R, T, E, N], after the step, before a reset; None where time limits end returns
    rewards: Tensor  # [R, T, E, N]
    terminated: Tensor  # [R, T, E] bool
    done: Tensor  # [R, T, E] bool, terminated or truncated
    solved: Tensor  # [R, 2], agents at their goal where an episode or the rollout ended, and agents there
    noise: Tensor  # [R, T, E, N, k], or [R, T, E, N] when discrete
    advantages: Tensor  # [R, T, E, N], not normalised

    @classmethod
    def empty(cls, world: World, settings: Settings, runs: int) -> RolloutBuffer:
        """Allocate room for one rollout."""
        lead = (runs, settings.steps, settings.environments, world.agents)
        shape = noise_shape(world.actions)

        def zeros(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=world.device)

        return cls(
            observations=zeros(*lead, world.observation_features),
            actions=zeros(*lead, *shape, dtype=torch.float32 if shape else torch.int64),
            log_probs=zeros(*lead),
            values=zeros(runs, settings.steps + 1, *lead[2:]),
            final_values=zeros(*lead) if settings.bootstrap_time_limits else None,
            rewards=zeros(*lead),
            terminated=zeros(*lead[:3], dtype=torch.bool),
            done=zeros(*lead[:3], dtype=torch.bool),
            solved=zeros(runs, 2),
            noise=zeros(*lead, *shape),
            advantages=zeros(*lead),
        )

    def estimate_advantages(self, settings: Settings) -> None:
        """Write ``advantages``. Where time limits are not bootstrapped, every end of an episode ends the return."""
        final, ended = self.final_values, self.terminated
        if final is None:
            final, ended = self.values[:, 1:], self.done
        factors = {"gamma": settings.gamma, "gae_lambda": settings.gae_lambda}
        self.advantages.copy_(compute_gae(self.rewards, self.values, final, ended, self.done, **factors))

    @property
    def episodes(self) -> Tensor:
        """The episode of each observation, int64 ``[R, T, E, N]``; environments of a run share no numbers."""
        ends = self.done.long()
        before = ends.cumsum(1) - ends  # that ended before the step
        numbers = before * ends.shape[2] + torch.arange(ends.shape[2], device=ends.device)
        return numbers.unsqueeze(-1).expand(self.observations.shape[:-1])

    def by_run(self, part: Tensor) -> Tensor:
        """Return ``[R * E, ...]``, as worlds have it, as ``[R, E, ...]``."""
        return part.unflatten(0, (self.done.shape[0], self.done.shape[2]))


@dataclass(frozen=True, eq=False)
class Minibatch:
    """S samples of R runs and N agents, agents first, as networks read them. A whole rollout is the largest one."""

    observations: Tensor  # [R, N, S, f], prepared by the networks' engine
    actions: Tensor  # [R, N, S, k], or int64 [R, N, S]
    log_probs: Tensor  # [R, N, S], when the actions were drawn
    advantages: Tensor  # [R, N, S]
    returns: Tensor  # [R, N, S]

    @classmethod
    def from_rollout(cls, buffer: RolloutBuffer, settings: Settings, engine: Engine) -> Minibatch:
        """Return all samples of a rollout: steps and environments in one axis."""
        advantages = normalise(buffer.advantages) if settings.normalise_advantages else buffer.advantages
        returns = buffer.advantages + buffer.values[:, :-1]
        rest = (buffer.actions, buffer.log_probs, advantages, returns)
        seen = engine.prepare(_by_agent(buffer.observations)).contiguous()
        return cls(seen, *(_by_agent(part).contiguous() for part in rest))

    def copy_(self, other: Minibatch) -> None:
        """Copy other samples into the same memory."""
        for part in dataclasses.fields(self):
            getattr(self, part.name).copy_(getattr(other, part.name))

    def take(self, index: Tensor, engine: Engine) -> Minibatch:
        """Return samples int64 ``[R, m]`` of every run, the same for all its agents."""
        rest = (self.actions, self.log_probs, self.advantages, self.returns)
        return Minibatch(engine.take_rows(self.observations, index), *(take_rows(part, index) for part in rest))


def _by_agent(part: Tensor) -> Tensor:
    """Return ``[R, T, E, N, ...]`` as ``[R, N, T * E, ...]``."""
    return part.flatten(1, 2).transpose(1, 2)


@torch.no_grad()
def collect(
    world: World,
    policy: Policy,
    critic: Critic,
    episodes: Bank,
    buffer: RolloutBuffer,
    *,
    restart: bool,
    wait: bool,
    steps: int | None = None,
) -> None:
    """Act until the buffer is full.

    Runs are folded into the world's environments. Actions are stored as they were drawn together with their own
    probability; the world clips what it is given. Where an episode ends, the value of its last observation is stored
    before the environment is reset, unless time limits end returns.

    Args:
        world: World to act in.
        policy: Policies that act.
        critic: Critic whose values are stored.
        episodes: State of the environments, and fresh ones.
        buffer: Written, apart from ``noise``, which is read.
        restart: Whether all episodes start again.
        wait: Whether the host may check if an episode ended, to save work. Not inside a CUDA graph.
        steps: Fewer than the buffer holds, to warm up.
    """
    steps = steps or buffer.done.shape[1]
    buffer.solved.zero_()
    state, seen = episodes.restart() if restart else (episodes.state, episodes.observations)

    def values() -> Tensor:
        return critic.values(policy.prepare(buffer.by_run(seen).transpose(1, 2))).transpose(1, 2)

    with policy.frozen(), critic.frozen():
        for t in range(steps):
            actions = _act(policy, critic, seen, buffer, t)
            state, step = world.step(state, actions)
            done = step.terminated | step.truncated
            buffer.rewards[:, t] = buffer.by_run(step.rewards)
            buffer.terminated[:, t] = buffer.by_run(step.terminated)
            buffer.done[:, t] = buffer.by_run(done)
            seen, last = step.observations, t == steps - 1
            if last or not wait or bool(done.any()):
                _count_solved(world, state, buffer, done | last)
                if buffer.final_values is not None:
                    buffer.final_values[:, t] = values()
                state, seen = episodes.replace(state, seen, done)
        buffer.values[:, steps] = values()
    episodes.keep(state, seen)


def _act(policy: Policy, critic: Critic, seen: Tensor, buffer: RolloutBuffer, t: int) -> Tensor:
    """Store observations, actions and values of one step; return the actions, ``[R * E, N, ...]``."""
    rows = buffer.by_run(seen)
    inputs = policy.prepare(rows.transpose(1, 2))
    distribution = policy.distribution(inputs)
    drawn = distribution.act(buffer.noise[:, t].transpose(1, 2))
    actions = drawn.transpose(1, 2)
    buffer.observations[:, t] = rows
    buffer.actions[:, t] = actions
    buffer.log_probs[:, t] = distribution.log_prob(drawn).transpose(1, 2)
    buffer.values[:, t] = critic.values(inputs).transpose(1, 2)
    return actions.flatten(0, 1)


def _count_solved(world: World, state: object, buffer: RolloutBuffer, ended: Tensor) -> None:
    solved = world.solved(state)
    if solved is not None:
        flags = buffer.by_run(ended)
        buffer.solved[:, 0] += (solved.sum(-1) * ended).view_as(flags).sum(-1)
        buffer.solved[:, 1] += flags.sum(-1) * world.agents


def noise_shape(space: Continuous | Discrete) -> tuple[int, ...]:
    """Return the shape of the noise of one action: one number per dimension, a single one when actions are discrete."""
    return () if isinstance(space, Discrete) else (space.features,)


def fill_noise(noise: Tensor, space: Continuous | Discrete, generator: torch.Generator) -> None:
    """Draw in place: uniform where actions are discrete, normal elsewhere."""
    draw = noise.uniform_ if isinstance(space, Discrete) else noise.normal_
    draw(generator=generator)
