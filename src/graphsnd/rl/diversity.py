"""Diversity during training, as equation (1) defines it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.metric import graph_snd, snd
from graphsnd.rl.cuda import Stopwatch
from graphsnd.rl.independent import IndependentPolicy
from graphsnd.rl.log import Outcome, Row
from graphsnd.rl.roles import Companion
from graphsnd.rl.settings import Settings
from graphsnd.rl.streams import hashed
from graphsnd.teams import StackedTeam

GRAPHS = 100  # separates the seeds of sampled graphs from those of the streams


class DiversityLog(Companion):
    """What happens beside independent learning: SND is measured now and then, on the observations of the rollout.

    Args:
        policy: The actors of all runs.
        seeds: One for each run.
        settings: When, and on how much, diversity is measured.
    """

    def __init__(self, policy: IndependentPolicy, seeds: Sequence[int], settings: Settings) -> None:
        self.policy, self.seeds, self.settings = policy, seeds, settings
        self.warm = False

    def rows(self, outcome: Outcome, measure: bool | None = None) -> list[Row]:
        """Return a row for each run, with the diversity of the updated policies where it is due.

        Args:
            outcome: Outcome of the iteration.
            measure: Whether to measure diversity; by the settings when None.
        """
        due = self._is_due(outcome.iteration) if measure is None else measure
        measured = self.measure(outcome) if due else [{}] * len(self.seeds)
        counts = zip(outcome.buffer.done.sum((1, 2)).tolist(), outcome.buffer.solved.tolist(), strict=True)
        return [
            Row(
                iteration=outcome.iteration,
                seed=seed,
                episodes=episodes,
                solved=solved / agents if agents else None,
                rollout_seconds=outcome.seconds["rollout"],
                update_seconds=outcome.seconds["update"],
                **numbers,
                **diversity,
            )
            for seed, numbers, diversity, (episodes, (solved, agents)) in zip(
                self.seeds, outcome.numbers, measured, counts, strict=True
            )
        ]

    def measure(self, outcome: Outcome) -> list[dict[str, Any]]:
        """Return the diversity of every run on the observations of the last rollout, by the names of columns."""
        if not self.warm:
            # Kernels are compiled by their first call, which is no part of what they cost.
            self.warm = True
            self._measure(0, outcome)
        return [self._measure(run, outcome) for run in range(len(self.seeds))]

    def _measure(self, run: int, outcome: Outcome) -> dict[str, Any]:
        return measure_diversity(
            self.policy.team(run),
            outcome.buffer.observations[run],
            most=self.settings.diversity_observations,
            probability=self.settings.diversity_probability,
            # Of the iteration, not of a stream: one measurement more must not change the next.
            generator=hashed(self.seeds[run], GRAPHS, outcome.iteration),
        )

    def _is_due(self, iteration: int) -> bool:
        every = self.settings.diversity_every
        return every > 0 and (iteration in (1, self.settings.iterations) or iteration % every == 0)


@torch.no_grad()
def measure_diversity(
    team: StackedTeam, observations: Tensor, *, most: int, probability: float, generator: torch.Generator
) -> dict[str, Any]:
    """Measure a team on observations that all agents made together.

    Every policy answers every observation, whichever agent made it. (The paper's log compared policies on different
    observations, each on its own.)

    Args:
        team: The policies.
        observations: ``[..., features]``, pooled.
        most: Largest number of observations, evenly spaced.
        probability: Probability of a pair in the Bernoulli graph.
        generator: For the graph, on the CPU.

    Returns:
        SND over all pairs and over the graph, and the seconds that they took, by the names of columns in
        :class:`~graphsnd.rl.log.Row`.

    Example:
        >>> from graphsnd.teams import GaussianHead, StackedMLP
        >>> seeded = torch.Generator().manual_seed(0)
        >>> team = StackedTeam(StackedMLP.create((4,), (3, 2), generator=seeded), GaussianHead(2, batch=(4,)))
        >>> seen = torch.randn(50, 3, generator=seeded)
        >>> diversity = measure_diversity(team, seen, most=40, probability=1.0, generator=seeded)
        >>> diversity["snd_observations"], diversity["snd"] == diversity["graph_snd"]
        (40, True)
    """
    pooled, watch = pool_observations(observations, most), Stopwatch(team.device)
    with watch("behavior"):
        behavior = team.evaluate(pooled)
    with watch("snd"):
        exact = snd(behavior)
    with watch("graph_snd"):
        graph = graphs.bernoulli(team.agents, probability, seed=generator, device=team.device)
        sparse = graph_snd(behavior, graph)
    seconds = {f"{name}_seconds": each for name, each in watch.read().items()}
    return {"snd": float(exact), "graph_snd": float(sparse), "snd_observations": len(pooled), **seconds}


def pool_observations(seen: Tensor, most: int) -> Tensor:
    """Return at most ``most`` observations of all agents, evenly over time and over agents: ``[rows, features]``.

    Args:
        seen: ``[..., agents, features]``, in the order of time.
        most: How many. Agents take turns: equal steps through all rows could meet the same agent every time.

    Example:
        >>> pool_observations(torch.arange(12).view(4, 3, 1), 4).flatten()
        tensor([0, 4, 8, 9])
    """
    rows, agents = seen.reshape(-1, seen.shape[-1]), seen.shape[-2]
    if len(rows) <= most:
        return rows
    turn = torch.arange(most, device=rows.device)
    return rows.index_select(0, turn * len(rows) // most // agents * agents + turn % agents)
