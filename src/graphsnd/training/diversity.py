"""Diversity during training, as equation (1) defines it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.metric import graph_snd, snd
from graphsnd.teams import StackedTeam


@dataclass(frozen=True)
class Diversity:
    """SND over all pairs and over a sampled graph, of one team on the same observations."""

    snd: float
    graph_snd: float
    behavior_seconds: float  # all policies on all observations
    snd_seconds: float  # all pairs
    graph_snd_seconds: float  # drawing the graph, and its pairs
    observations: int
    edges: int


@torch.no_grad()
def diversity(
    team: StackedTeam, observations: Tensor, *, most: int, probability: float, generator: torch.Generator
) -> Diversity:
    """Measure a team on observations that all agents made together.

    Every policy answers every observation, whoever made it. (The paper's log compared policies on different
    observations, each on its own.)

    Args:
        team: The policies.
        observations: ``[..., features]``, pooled.
        most: Use at most so many, evenly spaced.
        probability: Of a pair in the Bernoulli graph.
        generator: For the graph, on the CPU.

    Returns:
        The two measures and what they cost. The device is waited for before every clock is read.

    Example:
        >>> from graphsnd.teams import GaussianHead, StackedMLP
        >>> seeded = torch.Generator().manual_seed(0)
        >>> team = StackedTeam(StackedMLP.create((4,), (3, 2), generator=seeded), GaussianHead(2, batch=(4,)))
        >>> found = diversity(team, torch.randn(50, 3, generator=seeded), most=40, probability=1.0, generator=seeded)
        >>> found.observations, found.snd == found.graph_snd
        (40, True)
    """
    pooled = evenly(observations, most)
    start = _now(team.device)
    behavior = team.evaluate(pooled)
    answered = _now(team.device)
    exact = snd(behavior)
    counted = _now(team.device)
    graph = graphs.bernoulli(team.agents, probability, seed=generator, device=team.device)
    sparse = graph_snd(behavior, graph)
    end = _now(team.device)
    return Diversity(
        snd=float(exact),
        graph_snd=float(sparse),
        behavior_seconds=answered - start,
        snd_seconds=counted - answered,
        graph_snd_seconds=end - counted,
        observations=len(pooled),
        edges=graph.m,
    )


def evenly(seen: Tensor, most: int) -> Tensor:
    """At most ``most`` observations of all agents, evenly over time and over agents: ``[rows, features]``.

    Args:
        seen: ``[..., agents, features]``, in the order of time.
        most: How many. Agents take turns: equal steps through all rows could meet the same agent every time.

    Example:
        >>> evenly(torch.arange(12).view(4, 3, 1), 4).flatten()
        tensor([0, 4, 8, 9])
    """
    rows, agents = seen.reshape(-1, seen.shape[-1]), seen.shape[-2]
    if len(rows) <= most:
        return rows
    turn = torch.arange(most, device=rows.device)
    return rows.index_select(0, turn * len(rows) // most // agents * agents + turn % agents)


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter()
