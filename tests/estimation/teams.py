from __future__ import annotations

import math

import torch

import graphsnd as gs
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

REPETITIONS = 300


def behavior(observations: int = 64, n: int = 12, seed: int = 0) -> gs.Behavior:
    """Three roles, and situations in which they differ more or less."""
    generator = torch.Generator().manual_seed(seed)
    roles = (torch.arange(n) % 3).double().view(1, n, 1)
    size = torch.rand(observations, 1, 1, generator=generator, dtype=torch.float64) + 0.5
    return gs.Deterministic(size * roles + 0.1 * torch.randn(observations, n, 2, generator=generator).double())


def policies(n: int = 12, seed: int = 0, dtype: torch.dtype = torch.float64) -> StackedTeam:
    generator = torch.Generator().manual_seed(seed)
    network = StackedMLP.create((n,), (3, 8, 4), init="linear", generator=generator)
    return StackedTeam(network.to(dtype), GaussianHead(2, mean="tanh", scale="network"))


def inside(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] <= value <= interval[1]


def at_least(hits: int, share: float) -> bool:
    """Not significantly below ``share`` over the repetitions."""
    return hits / REPETITIONS >= share - 3 * math.sqrt(share * (1 - share) / REPETITIONS)


def evaluate_one(team: StackedTeam, observations: torch.Tensor, agent: int) -> gs.Gaussian:
    rows = observations.flatten(0, -2)
    one = team.partial(rows, torch.full((len(rows), 1), agent))
    assert isinstance(one, gs.Gaussian)
    shape = (*observations.shape[:-1], 2)
    return gs.Gaussian(one.loc.reshape(shape), one.scale.reshape(shape))


def on_and_off(observations: int = 4000, n: int = 16) -> gs.Behavior:
    """Agents that differ at every other observation: which observations are seen is all that matters."""
    on = (torch.arange(observations) % 2).double().view(-1, 1, 1)
    return gs.Deterministic(on * torch.eye(n, dtype=torch.float64))
