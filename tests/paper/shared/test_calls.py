from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

import graphsnd as gs
from paper.shared.calls import Answers, all_pairs, distance, fused_call, loop_call, loop_mean, some_pairs


@pytest.fixture
def team() -> gs.Gaussian:
    generator = torch.Generator().manual_seed(0)
    loc = torch.randn(3, 11, 6, 2, generator=generator, dtype=torch.float64)
    return gs.Gaussian(loc, torch.rand(6, 2, generator=generator, dtype=torch.float64) + 0.1)


def test_distances_are_those_of_the_metric(team: gs.Gaussian) -> None:
    expected = gs.pairwise(team)
    answers = Answers.of(team)
    assert answers.loc.shape == answers.scale.shape == (6, 33, 2)
    for i in range(6):
        for j in range(6):
            assert distance(answers, i, j) == pytest.approx(float(expected[i, j]), rel=1e-12, abs=1e-15)


def test_means_are_snd_and_graph_snd(team: gs.Gaussian) -> None:
    apart = partial(distance, Answers.of(team))
    assert loop_mean(apart, all_pairs(6).tolist()) == pytest.approx(float(gs.snd(team)), rel=1e-12)
    graph = gs.graphs.bernoulli(6, 0.5, seed=1)
    assert loop_mean(apart, graph.edges.tolist()) == pytest.approx(float(gs.graph_snd(team, graph)), rel=1e-12)
    assert loop_mean(apart, []) == 0.0


def test_some_pairs_has_the_moments_of_bernoulli() -> None:
    pairs, generator, draws, p = all_pairs(20), np.random.default_rng(3), 400, 0.3
    assert {tuple(pair) for pair in pairs.tolist()} == {(i, j) for j in range(20) for i in range(j)}
    seen = np.zeros((20, 20))
    for _ in range(draws):
        for i, j in some_pairs(pairs, p, generator):
            seen[i, j] += 1
    share = seen[pairs[:, 0], pairs[:, 1]] / draws
    assert seen.sum() == pytest.approx(share.sum() * draws)  # none outside the pairs
    spread = (p * (1 - p) / draws) ** 0.5
    assert share.mean() == pytest.approx(p, abs=4 * spread / len(pairs) ** 0.5)
    assert np.abs(share - p).max() < 5 * spread
    assert some_pairs(pairs, 1.0, generator) == pairs.tolist()


def test_calls_return_the_pairs_they_looked_at() -> None:
    seen: list[object] = []
    assert loop_call(lambda pairs: seen.append(pairs) or 0.0, lambda: [[0, 1], [1, 2]])() == 2
    assert seen == [[[0, 1], [1, 2]]]
    team = gs.Deterministic(torch.rand(3, 5, 2))
    assert fused_call(team)() == 10
    assert fused_call(team, lambda: gs.graphs.uniform(5, 4, seed=0))() == 4
