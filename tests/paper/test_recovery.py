"""Recovery against a loop, and clusters that a graph hides."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from paper.experiment import Outcome, Scale
from paper.propositions import clusters, random_team
from paper.recovery import EXPERIMENT, hide_clusters, recover
from paper.runner import Cells


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells") / "cells"))


def test_all_routes_against_a_loop() -> None:
    team = random_team(4, torch.Generator().manual_seed(0))
    points = torch.cat([team.loc, team.scale], -1).numpy()
    gaps = [np.linalg.norm(points[:, i] - points[:, j], axis=1).mean() for i in range(4) for j in range(i)]
    routes = recover(team)
    assert {(route.route, route.kernel) for route in routes} >= {("matrix", "reference"), ("direct", "cpu")}
    for route in routes:
        assert route.snd == pytest.approx(np.mean(gaps), rel=1e-13)
        assert route.graph_snd == pytest.approx(np.mean(gaps), rel=1e-13)


def test_the_smoke_run_holds_together(outcome: Outcome) -> None:
    numbers = outcome.numbers
    assert numbers["largest_error"].value < 1e-15
    assert numbers["snd_growth"].value > 1
    assert numbers["nonnegativity_failures"].value == numbers["distances_beyond_edges"].value == 0
    assert max(numbers["automorphism_error"].value, numbers["partition_error"].value) < 1e-14
    assert 0.5 <= numbers["knn_edges_share"].value <= 1
    assert outcome.data.propositions.renaming.other > 0.01


def test_two_clusters_are_hidden_from_edges_within() -> None:
    model = random_team(4, torch.Generator().manual_seed(2))
    team, labels = clusters(model, 6, 0)
    gap = gs.pairwise(team).numpy()
    same = labels[:, None] == labels[None]
    upper = np.triu(np.ones_like(gap, dtype=bool), 1)
    assert gap[upper & same.numpy()].max() < 0.05 * gap[upper & ~same.numpy()].min()
    assert gap[~same.numpy()].mean() == pytest.approx(gs.pairwise(model).max().item(), rel=0.05)
    hidden = hide_clusters(model, 300)
    assert hidden.share < 0.1
    assert abs(hidden.sampled - 1) < 2 * hidden.half_width < 0.2
