from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.diversity import measure_diversity
from graphsnd.rl.worlds import Navigation
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam


@pytest.mark.parametrize("head", [GaussianHead(2, batch=(6,)), CategoricalHead(4)], ids=lambda h: h.name)
def test_both_measures_on_the_same_answers(head, generator: torch.Generator) -> None:  # type: ignore[no-untyped-def]
    team = StackedTeam(StackedMLP.create((6,), (3, 8, head.outputs), generator=generator), head)
    observations = torch.randn(5, 4, 3, generator=generator)
    seeded = torch.Generator().manual_seed(3)
    found = measure_diversity(team, observations.flatten(0, 1), probability=0.5, generator=seeded)
    with torch.no_grad():
        behavior = gs.evaluate(team, observations)
    graph = gs.graphs.bernoulli(6, 0.5, seed=torch.Generator().manual_seed(3))
    assert found["snd"] == pytest.approx(float(gs.snd(behavior)), rel=1e-5)
    assert found["graph_snd"] == pytest.approx(float(gs.graph_snd(behavior, graph)), rel=1e-5)
    assert found["snd_observations"] == 20
    assert min(found["snd_seconds"], found["graph_snd_seconds"], found["behavior_seconds"]) > 0


@pytest.mark.parametrize(
    ("frames", "agents", "most"), [(4096, 100, 4096), (50, 7, 300), (6, 5, 4), (9, 4, 18), (3, 2, 6)]
)
def test_observations_are_spread_over_time_and_agents(frames: int, agents: int, most: int) -> None:
    seen = torch.stack(torch.meshgrid(torch.arange(frames), torch.arange(agents), indexing="ij"), -1)
    settings = Settings(steps=2, environments=1, diversity_observations=most)
    (some,) = Trainer(Navigation(2, 1), settings).companion.choose(seen.view(1, frames, 1, agents, 2))
    assert len(torch.unique(some, dim=0)) == most
    counts = [torch.bincount(some[:, column], minlength=size) for column, size in ((0, frames), (1, agents))]
    assert all(int(count.max() - count.min()) <= 1 for count in counts)
