"""The teams of the ablation: fresh and trained, on the observations of all and, as in the paper, each on its own."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from graphsnd.behavior import Behavior, Deterministic, Gaussian
from graphsnd.errors import InputError
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from graphsnd.teams.files import OBSERVATIONS as SEEN
from graphsnd.teams.files import load
from paper.shared.rollouts import on_own

POLICY_SEED, OBSERVATION_SEED, NOISE_SEED, OBSERVATIONS = 42, 43, 44, 4096
FEATURES, HIDDEN, ACTIONS = 18, 64, 2
HEAD_GAIN = 0.01  # of a fresh PPO actor


def initial_team(n: int, *, observations: int = OBSERVATIONS, own: bool = False) -> Behavior:
    """Freshly initialised policies 18-64-64-2 on observations uniform in [-1, 1]^18.

    Orthogonal weights, tanh, means squashed to [-1, 1], a standard deviation of exp(-0.5) for everybody.

    Args:
        n: Number of agents.
        observations: Shared by all of them.
        own: Show each policy observations of its own instead, so many each. That is the paper's protocol and not
            equation (1): see :func:`paper.shared.rollouts.on_own`.

    Example:
        >>> initial_team(5, observations=16)
        Gaussian(agents=5, observations=16)
    """
    generator = torch.Generator().manual_seed(POLICY_SEED)
    sizes = (FEATURES, HIDDEN, HIDDEN, ACTIONS)
    network = StackedMLP.create((n,), sizes, generator=generator, head_gain=HEAD_GAIN)
    team = StackedTeam(network, GaussianHead(ACTIONS, batch=(n,)))
    if own:
        return noise_of_its_own(team, observations, seed=OBSERVATION_SEED)
    with torch.no_grad():
        return team.evaluate(_uniform((observations, FEATURES), OBSERVATION_SEED))


def trained_team(folder: Path, *, observations: int = OBSERVATIONS, own: bool = False) -> Behavior:
    """A trained team on what it saw when its diversity was last measured, pooled over all agents.

    Args:
        folder: Of the team, with ``observations.safetensors``.
        observations: At most so many of them.
        own: Show each policy uniform noise of its own instead, as the paper's panel of trained policies does.
    """
    team = load(folder)
    if own:
        return noise_of_its_own(team, observations, seed=NOISE_SEED)
    with torch.no_grad():
        return team.evaluate(load_file(folder / SEEN)["observations"][:observations])


def noise_of_its_own(team: StackedTeam, observations: int, *, seed: int) -> Behavior:
    """Every policy on observations of its own, uniform in [-1, 1]."""
    return on_own(team, _uniform((observations, 1, team.agents, team.network.sizes[0]), seed), observations)


def mean_actions(behavior: Behavior) -> Tensor:
    """What every agent does on average over the observations, ``[n, actions]``."""
    if isinstance(behavior, Gaussian):
        actions = behavior.loc
    elif isinstance(behavior, Deterministic):
        actions = behavior.actions
    else:
        raise InputError("behaviors", "with mean actions: Gaussian or Deterministic", repr(behavior))
    return actions.detach().flatten(0, -3).double().mean(dim=0)


def _uniform(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
