from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from paper.propositions import random_team
from paper.shared.draws import indicators, many_bernoulli


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_means_over_the_pairs_of_many_graphs_are_those_of_the_metric() -> None:
    team, source = random_team(6, generator()), generator(1)
    drawn = [gs.graphs.uniform(6, 4, seed=source) for _ in range(20)]
    means = indicators(drawn) @ gs.pairwise(team, graph=gs.graphs.complete(6)) / 4
    assert means.tolist() == pytest.approx([float(gs.graph_snd(team, graph)) for graph in drawn], abs=1e-14)


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.75])
def test_many_graphs_at_once_are_bernoulli(p: float) -> None:
    chosen = many_bernoulli(5, p, 20_000, generator(6)).numpy()
    assert set(np.unique(chosen)) == {0.0, 1.0}
    assert stats.chisquare(chosen.sum(0), axis=None).pvalue > 1e-4  # no pair is preferred
    edges = np.bincount(chosen.sum(1).astype(int), minlength=11)
    expected = 20_000 * stats.binom.pmf(range(11), 10, p)
    often = expected > 5
    assert ((edges - expected)[often] ** 2 / expected[often]).sum() < stats.chi2.ppf(0.9999, often.sum())
