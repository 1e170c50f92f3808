from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.plots.study import Study


def test_the_truth_is_snd(small: Study) -> None:
    snd = float(gs.snd(small.team.behavior))
    assert small.exact.estimate.value == pytest.approx(snd, rel=1e-5)
    assert float(small.contributions.mean()) == pytest.approx(snd, rel=1e-5)
    torch.testing.assert_close(small.contributions, gs.contributions(small.team.behavior))


def test_sampled_graphs_estimate_snd_and_their_interval_covers_it(small: Study) -> None:
    assert len(small.sampled) == 3
    for one in small.sampled:
        low, high = one.estimate.interval
        assert one.estimate.target == "SND"
        assert low <= small.exact.estimate.value <= high
        assert one.estimate.value == pytest.approx(float(gs.graph_snd(small.team.behavior, one.graph)), rel=1e-5)
        # The mean of many draws is near the truth: within five standard errors of that mean.
        spread = float(one.redraws.std()) / len(one.redraws) ** 0.5
        assert abs(float(one.redraws.mean()) - small.exact.estimate.value) < 5 * spread


def test_local_graphs_do_not_claim_to_estimate_it(small: Study) -> None:
    for one in small.local:
        assert one.estimate.target == "Graph-SND"
        assert len(one.redraws) == 0


def test_the_tree_finds_the_roles(small: Study) -> None:
    assert small.recovered > 0.7
    assert sorted(small.tree.order.tolist()) == list(range(24))
