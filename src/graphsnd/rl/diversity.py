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
from graphsnd.rl.log import Outcome, Row, Run
from graphsnd.rl.method import Companion
from graphsnd.rl.settings import Settings
from graphsnd.rl.streams import SAMPLED_GRAPHS, hashed
from graphsnd.teams import StackedTeam


class DiversityLog(Companion):
    """Measures SND every few iterations beside independent learning, on the observations of the rollout.

    Args:
        policy: The actors of all runs.
        seeds: Seed of each run.
        settings: Settings, which say how often and on how many observations diversity is measured.
    """

    def __init__(self, policy: IndependentPolicy, seeds: Sequence[int], settings: Settings) -> None:
        self.policy, self.settings = policy, settings
        self.runs = [Run("", None, seed) for seed in seeds]
        self.warm = False

    def team(self, run: int, *, about: dict[str, Any] | None = None) -> StackedTeam:
        """Return a copy of the actors of one run."""
        return self.policy.team(run, about)

    def choose(self, part: Tensor) -> Tensor:
        """Return at most ``diversity_observations`` rows, evenly over time and over agents."""
        rows, agents, most = part.flatten(1, 3), part.shape[3], self.settings.diversity_observations
        if rows.shape[1] <= most:
            return rows
        # Agents alternate: equal steps through all rows could meet the same agent every time.
        place = torch.arange(most, device=rows.device)
        return rows.index_select(1, place * rows.shape[1] // most // agents * agents + place % agents)

    def rows(self, outcome: Outcome) -> list[Row]:
        """Return a row for each run, with the diversity of the updated policies where it is due."""
        every, iteration = self.settings.diversity_every, outcome.iteration
        due = every > 0 and (iteration in (1, self.settings.iterations) or iteration % every == 0)
        measured = self.measure(outcome) if due else [{}] * len(self.runs)
        counts = zip(outcome.buffer.done.sum((1, 2)).tolist(), outcome.buffer.solved.tolist(), strict=True)
        return [
            Row(
                iteration=iteration,
                seed=run.seed,
                episodes=episodes,
                solved=solved / agents if agents else None,
                rollout_seconds=outcome.seconds["rollout"],
                update_seconds=outcome.seconds["update"],
                **numbers,
                **diversity,
            )
            for run, numbers, diversity, (episodes, (solved, agents)) in zip(
                self.runs, outcome.numbers, measured, counts, strict=True
            )
        ]

    def measure(self, outcome: Outcome) -> list[dict[str, Any]]:
        """Return the diversity of every run on the observations of the last rollout, by the names of columns."""
        chosen, probability = self.choose(outcome.buffer.observations), self.settings.diversity_probability
        if not self.warm:
            # The first call compiles kernels, which must not count as their cost.
            self.warm = True
            measure_diversity(self.team(0), chosen[0], probability=probability, generator=hashed(0))
        # Seeded by the iteration, not by a stream: an additional measurement must not change the next.
        generators = [hashed(run.seed, SAMPLED_GRAPHS, outcome.iteration) for run in self.runs]
        return [
            measure_diversity(self.team(place), chosen[place], probability=probability, generator=generator)
            for place, generator in enumerate(generators)
        ]


@torch.no_grad()
def measure_diversity(
    team: StackedTeam, observations: Tensor, *, probability: float, generator: torch.Generator
) -> dict[str, Any]:
    """Measure a team on observations that all agents made together.

    Every policy answers every observation, whichever agent made it. (The paper's log compared policies on different
    observations, each on its own.)

    Args:
        team: The policies.
        observations: ``[observations, features]``, pooled.
        probability: Probability of a pair in the Bernoulli graph.
        generator: Generator of the graph, on the CPU.

    Returns:
        SND over all pairs and over the graph, and the seconds that they took, by the names of columns in
        :class:`~graphsnd.rl.log.Row`.

    Example:
        >>> from graphsnd.teams import GaussianHead, StackedMLP
        >>> seeded = torch.Generator().manual_seed(0)
        >>> team = StackedTeam(StackedMLP.create((4,), (3, 2), generator=seeded), GaussianHead(2, batch=(4,)))
        >>> seen = torch.randn(50, 3, generator=seeded)
        >>> diversity = measure_diversity(team, seen, probability=1.0, generator=seeded)
        >>> diversity["snd_observations"], diversity["snd"] == diversity["graph_snd"]
        (50, True)
    """
    watch = Stopwatch(team.device)
    with watch("behavior"):
        behavior = team.evaluate(observations)
    with watch("snd"):
        exact = snd(behavior)
    with watch("graph_snd"):
        graph = graphs.bernoulli(team.agents, probability, seed=generator, device=team.device)
        sparse = graph_snd(behavior, graph)
    seconds = {f"{name}_seconds": each for name, each in watch.read().items()}
    return {"snd": float(exact), "graph_snd": float(sparse), "snd_observations": len(observations), **seconds}
