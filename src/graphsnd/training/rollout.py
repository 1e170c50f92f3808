"""Acting: fill the memory with what all agents of all runs saw, did and earned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.training.columns import columns
from graphsnd.training.episodes import Episodes
from graphsnd.training.policies import Policies
from graphsnd.training.sampling import act, noise_shape, to_world
from graphsnd.training.settings import Settings
from graphsnd.worlds import Discrete, Step, World


@dataclass(frozen=True, eq=False)
class Memory:
    """One rollout: R runs, T steps, E environments, N agents. Allocated once, written in every iteration."""

    observations: Tensor  # [R, T, E, N, f], before the step
    actions: Tensor  # [R, T, E, N, k] as drawn, not clipped; int64 [R, T, E, N] when discrete
    log_probs: Tensor  # [R, T, E, N], of those actions
    values: Tensor  # [R, T + 1, E, N], of the observations; the last are those after the rollout
    final_values: Tensor  # [R, T, E, N], after the step but before a reset; only read where the episode ended
    rewards: Tensor  # [R, T, E, N]
    terminated: Tensor  # [R, T, E] bool
    done: Tensor  # [R, T, E] bool, terminated or truncated
    solved: Tensor  # [R, 2], agents that had done their part where an episode or the rollout ended, and agents there
    noise: Tensor  # [R, T, E, N, k], or [R, T, E, N] when discrete

    @classmethod
    def empty(cls, world: World, settings: Settings, policies: Policies) -> Memory:
        """Room for one rollout."""
        runs, steps, count = policies.batch[0], settings.steps, settings.environments
        lead = (runs, steps, count, world.agents)

        def room(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=world.device)

        discrete = isinstance(world.actions, Discrete)
        actions = room(*lead, dtype=torch.long) if discrete else room(*lead, policies.head.actions)
        return cls(
            observations=room(*lead, world.observation_features),
            actions=actions,
            log_probs=room(*lead),
            values=room(runs, steps + 1, count, world.agents),
            final_values=room(*lead),
            rewards=room(*lead),
            terminated=room(runs, steps, count, dtype=torch.bool),
            done=room(runs, steps, count, dtype=torch.bool),
            solved=room(runs, 2),
            noise=room(*lead, *noise_shape(policies.head)),
        )


@torch.no_grad()
def collect(world: World, policies: Policies, episodes: Episodes, memory: Memory, *, restart: bool, wait: bool) -> None:
    """Act for as many steps as ``memory`` has room for.

    Runs are folded into the world's environments. Actions are stored as they were drawn together with their own
    probability; the world clips what it is given. Where an episode ends, the value of what was seen last is stored
    before the environment begins anew.

    Args:
        world: Where to act.
        policies: Who acts.
        episodes: Where environments stand, and fresh ones.
        memory: Written, apart from ``noise``, which is read.
        restart: Whether all episodes begin anew.
        wait: Whether the host may look at whether an episode ended, to spare work. Not inside a captured program.
    """
    steps = memory.done.shape[1]
    memory.solved.zero_()
    state, seen = episodes.restart() if restart else (episodes.state, episodes.observations)
    with policies.whole.frozen():
        for t in range(steps):
            actions = _decide(policies, seen, memory, t)
            state, step = world.step(state, to_world(actions, world.actions))
            done = step.terminated | step.truncated
            _note(step, done, memory, t)
            seen, last = step.observations, t == steps - 1
            if last or not wait or bool(done.any()):
                _count_solved(world, state, memory, done | last)
                memory.final_values[:, t] = _values(policies, _by_run(seen, memory))
                state, seen = episodes.replace(state, seen, done)
        memory.values[:, steps] = _values(policies, _by_run(seen, memory))
    episodes.keep(state, seen)


def _decide(policies: Policies, seen: Tensor, memory: Memory, t: int) -> Tensor:
    """Store what was seen and what is done about it; the actions, ``[R * E, N, ...]``."""
    rows = _by_run(seen, memory)
    inputs = columns(rows)
    distribution = policies.whole.distribution(inputs)
    drawn = act(distribution, memory.noise[:, t].transpose(1, 2).flatten(0, 1))
    actions = _by_row(drawn, policies)
    memory.observations[:, t] = rows
    memory.actions[:, t] = actions
    memory.log_probs[:, t] = _by_row(distribution.log_prob(drawn), policies)
    memory.values[:, t] = _by_row(policies.whole.values(inputs), policies)
    return actions.flatten(0, 1)


def _note(step: Step, done: Tensor, memory: Memory, t: int) -> None:
    memory.rewards[:, t] = _by_run(step.rewards, memory)
    memory.terminated[:, t] = _by_run(step.terminated, memory)
    memory.done[:, t] = _by_run(done, memory)


def _count_solved(world: World, state: object, memory: Memory, ended: Tensor) -> None:
    solved = world.solved(state)
    if solved is not None:
        flags = ended.view(memory.solved.shape[0], -1)
        memory.solved[:, 0] += (solved.sum(-1) * ended).view_as(flags).sum(-1)
        memory.solved[:, 1] += flags.sum(-1) * world.agents


def _by_run(part: Tensor, memory: Memory) -> Tensor:
    """``[R * E, ...]`` as ``[R, E, ...]``."""
    return part.unflatten(0, (memory.done.shape[0], memory.done.shape[2]))


def _by_row(part: Tensor, policies: Policies) -> Tensor:
    """``[runs * agents, rows, ...]`` as ``[runs, rows, agents, ...]``."""
    return part.unflatten(0, policies.batch).transpose(1, 2)


def _values(policies: Policies, rows: Tensor) -> Tensor:
    return _by_row(policies.whole.values(columns(rows)), policies)
