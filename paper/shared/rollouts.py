"""Rollouts of a team, and its behaviour on them: on the observations of all agents, and each policy on its own."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Gaussian
from graphsnd.control.actions import NormalActions, action_distribution
from graphsnd.errors import InputError
from graphsnd.kernels.threads import limit_threads
from graphsnd.rl.rollout import fill_noise, noise_shape
from graphsnd.rl.streams import hashed
from graphsnd.rl.worlds import World
from graphsnd.teams import StackedTeam

PICKS = 7  # tells the stream that picks observations from the one of the episodes


@torch.no_grad()
def observe(team: StackedTeam, world: World, *, steps: int, seed: int) -> Tensor:
    """Return the observations of all agents in a rollout in which the team explores as it does in training.

    Args:
        team: Team of policies; agent i of the world acts by policy i.
        world: World to act in. No new episode begins within the steps.
        steps: Steps of the rollout.
        seed: Seed of the episodes and of the actions.

    Returns:
        The observations before each step, ``[steps, environments, agents, features]``.

    Example:
        >>> from graphsnd.rl import Trainer
        >>> from graphsnd.rl.worlds import SimpleSpread
        >>> world = SimpleSpread(3, 2)
        >>> observe(Trainer(world).team(0), world, steps=4, seed=0).shape
        torch.Size([4, 2, 3, 18])
    """
    episodes, actions = hashed(seed), hashed(seed, 1, device=world.device)
    state = world.spawn(episodes)
    seen, kept = world.observe(state), []
    noise = torch.zeros(seen.shape[1], seen.shape[0], *noise_shape(world.actions), device=world.device)
    for _ in range(steps):
        kept.append(seen)
        fill_noise(noise, world.actions, actions)
        moves = action_distribution(team.head, team.network(seen.transpose(0, 1))).act(noise)
        state, step = world.step(state, moves.transpose(0, 1))
        seen = step.observations
    return torch.stack(kept)


def pooled(seen: Tensor, most: int, *, seed: int = 0) -> Tensor:
    """Return the observations of all agents, steps and environments; a random choice where there are too many.

    Evenly spaced rows could all belong to the same agent, if the spacing is a multiple of the number of agents.

    Example:
        >>> pooled(torch.zeros(5, 2, 3, 18), 20).shape
        torch.Size([20, 18])
    """
    rows = seen.reshape(-1, seen.shape[-1])
    if len(rows) <= most:
        return rows
    places = torch.randperm(len(rows), generator=hashed(seed, PICKS))[:most].sort().values
    return rows.index_select(0, places.to(rows.device))


@torch.no_grad()
def on_own(team: StackedTeam, seen: Tensor, most: int) -> Behavior:
    """Return every policy's behaviour on its own observations only, which is *not* what equation (1) compares.

    Code that measures SND during training often does this: policy i answers o_i and policy j answers o_j at the same
    step, and the distance between the two outputs is taken for a difference of policies. Even identical policies
    then have a distance above 0. This function is here to show how large it is.

    Args:
        team: Gaussian policies.
        seen: Observations from :func:`observe`.
        most: Largest number of steps and environments to use, evenly spaced.

    Example:
        >>> from graphsnd import snd
        >>> from graphsnd.teams import GaussianHead, StackedMLP
        >>> one = StackedMLP.create((1,), (18, 2), generator=torch.Generator().manual_seed(0))
        >>> twins = StackedMLP([w.repeat(2, 1, 1) for w in one.weights], [b.repeat(2, 1, 1) for b in one.biases])
        >>> float(snd(on_own(StackedTeam(twins, GaussianHead(2, batch=(2,))), torch.rand(4, 3, 2, 18), 12))) > 0
        True
    """
    rows = seen.flatten(0, 1)
    rows = rows[:: max(1, len(rows) // most)][:most]
    answers = action_distribution(team.head, team.network(rows.transpose(0, 1)))
    assert isinstance(answers, NormalActions)
    loc, scale = (part.transpose(0, 1) for part in torch.broadcast_tensors(answers.loc, answers.scale))
    return Gaussian(loc, scale)


def as_gaussian(behavior: Behavior) -> Gaussian:
    """Return the behaviour as diagonal Gaussians, or raise."""
    if not isinstance(behavior, Gaussian):
        raise InputError("team", "of Gaussian policies", repr(behavior))
    return behavior


# A context in which torch has one thread. Products of these networks are small: a second thread gains little, loses
# much if its core is busy, and would make the last digits depend on the number of cores.
one_thread = partial(limit_threads, 1)
