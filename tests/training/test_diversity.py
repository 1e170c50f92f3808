from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam
from graphsnd.training.diversity import diversity, evenly


@pytest.mark.parametrize("head", [GaussianHead(2, batch=(6,)), CategoricalHead(4)], ids=lambda h: h.name)
def test_both_measures_on_the_same_answers(head, generator: torch.Generator) -> None:  # type: ignore[no-untyped-def]
    team = StackedTeam(StackedMLP.create((6,), (3, 8, head.outputs), generator=generator), head)
    observations = torch.randn(5, 4, 3, generator=generator)
    found = diversity(team, observations, most=100, probability=0.5, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        behavior = gs.evaluate(team, observations)
    graph = gs.graphs.bernoulli(6, 0.5, seed=torch.Generator().manual_seed(3))
    assert found.snd == pytest.approx(float(gs.snd(behavior)), rel=1e-5)
    assert found.graph_snd == pytest.approx(float(gs.graph_snd(behavior, graph)), rel=1e-5)
    assert (found.observations, found.edges) == (20, graph.m)
    assert min(found.snd_seconds, found.graph_snd_seconds, found.behavior_seconds) > 0


def test_evenly_spaced() -> None:
    rows = torch.arange(1000)
    some = evenly(rows, 300)
    assert len(some) == 300 == len(set(some.tolist()))
    assert int((some[1:] - some[:-1]).max()) == 4
    assert evenly(rows, 1000) is rows
