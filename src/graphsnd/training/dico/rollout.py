"""Acting at a scale: fill the memory with what all agents of all runs saw, did and earned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.teams import CategoricalHead, Head, StackedMLP, TanhNormalHead
from graphsnd.training.dico.settings import ControlSettings
from graphsnd.training.episodes import Episodes
from graphsnd.training.sampling import act, noise_shape, to_world
from graphsnd.worlds import World


@dataclass(frozen=True, eq=False)
class Memory:
    """One rollout: R runs, T steps, E environments, N agents. Allocated once, written in every iteration."""

    observations: Tensor  # [R, T, E, N, f], before the step
    actions: Tensor  # [R, T, E, N, k]; int64 [R, T, E, N] when discrete
    log_probs: Tensor  # [R, T, E, N]
    values: Tensor  # [R, T + 1, E, N], of the observations; the last are those after the rollout
    rewards: Tensor  # [R, T, E, N]
    done: Tensor  # [R, T, E] bool
    noise: Tensor  # [R, T, E, N, k], or [R, T, E, N] when discrete
    scale: Tensor  # [R], at which the policies act

    @classmethod
    def empty(cls, world: World, settings: ControlSettings, policy: ControlledPolicy) -> Memory:
        """Room for one rollout."""
        lead = (policy.batch[0], settings.steps, settings.environments, world.agents)
        shape, device = noise_shape(head_of(policy)), world.device
        zeros = torch.zeros(lead, device=device)
        return cls(
            observations=torch.zeros(*lead, world.observation_features, device=device),
            actions=torch.zeros(*lead, *shape, device=device, dtype=torch.float32 if shape else torch.int64),
            log_probs=zeros,
            values=torch.zeros(lead[0], lead[1] + 1, *lead[2:], device=device),
            rewards=zeros.clone(),
            done=torch.zeros(lead[:3], dtype=torch.bool, device=device),
            noise=torch.zeros(*lead, *shape, device=device),
            scale=torch.ones(lead[0], device=device),
        )


def head_of(policy: ControlledPolicy) -> Head:
    """A head that says which noise the policy's actions need."""
    actions = policy.deviations.sizes[-1]
    return CategoricalHead(actions) if policy.kind == "categorical" else TanhNormalHead(actions)


@torch.no_grad()
def collect(world: World, policy: ControlledPolicy, critics: StackedMLP, episodes: Episodes, memory: Memory) -> None:
    """Act for as many steps as ``memory`` has room for. Episodes run on from one rollout to the next.

    A function of tensors alone, so it can be captured. What was seen last in an episode is not needed: the time limit
    counts as its end, as in the reference.

    Args:
        world: Where to act.
        policy: Who acts.
        critics: Whose values are stored.
        episodes: Where environments stand, and fresh ones.
        memory: Written, apart from ``noise`` and ``scale``, which are read.
    """
    runs, steps, count = memory.done.shape
    engine = policy.deviations.engine
    state, seen = episodes.state, episodes.observations
    for t in range(steps):
        rows = seen.unflatten(0, (runs, count))
        by_agent = engine.prepare(rows.transpose(1, 2))
        distribution = policy.distribution(by_agent, memory.scale)
        drawn = act(distribution, memory.noise[:, t].transpose(1, 2))
        actions = drawn.transpose(1, 2)
        memory.observations[:, t] = rows
        memory.actions[:, t] = actions
        memory.log_probs[:, t] = distribution.log_prob(drawn).transpose(1, 2)
        memory.values[:, t] = _values(critics, by_agent)
        state, step = world.step(state, to_world(actions.flatten(0, 1), world.actions))
        done = step.terminated | step.truncated
        memory.rewards[:, t] = step.rewards.unflatten(0, (runs, count))
        memory.done[:, t] = done.view(runs, count)
        state, seen = episodes.replace(state, step.observations, done)
    memory.values[:, steps] = _values(critics, seen.unflatten(0, (runs, count)).transpose(1, 2))
    episodes.keep(state, seen)


def _values(critics: StackedMLP, by_agent: Tensor) -> Tensor:
    """``[runs, environments, agents]``."""
    return critics(by_agent).squeeze(-1).transpose(1, 2)
