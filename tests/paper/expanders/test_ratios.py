from __future__ import annotations

import itertools
import math
import statistics

import pytest
import torch

import graphsnd as gs
from paper.expanders.facts import look
from paper.expanders.ratios import DELTA, Distances, compare, summarise


def distances(n: int = 9) -> Distances:
    points = torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return Distances.of(torch.cdist(points, points))


def test_identical_agents_have_no_ratio() -> None:
    row = compare(Distances.of(torch.zeros(6, 6)), gs.graphs.random_regular(6, 3, seed=0), family="regular", degree=3)
    assert (row.ratio, row.reciprocal, row.predicted, row.difference) == (None, None, None, 0.0)
    assert summarise([row]) == []


def test_effects_alone() -> None:
    a = torch.arange(6, dtype=torch.float64)
    matrix = (a[:, None] + a) * ~torch.eye(6, dtype=torch.bool)
    found = Distances.of(matrix)
    assert found.effect_share == pytest.approx(1)
    row = compare(found, gs.graphs.random_regular(6, 3, seed=0), family="regular", degree=3, seed=0)
    assert row.ratio == pytest.approx(1)
    assert row.predicted == pytest.approx(0, abs=1e-9)


def test_forwarding_is_left_out_on_request_and_a_fixed_graph_has_no_prediction() -> None:
    team, graph = distances(), gs.graphs.circulant(9, shifts=[1, 2])
    row = compare(team, graph, family="ring", degree=4, forwarding=False)
    assert row.connected
    assert row.forwarding_upper is None
    assert row.predicted is None
    full = compare(team, graph, family="ring", degree=4)
    assert full.forwarding_upper is not None
    assert full.distortion_high == pytest.approx(18 / 36 * min(full.forwarding_upper, full.integral_upper or 1e9))


def test_the_summary_of_several() -> None:
    team = distances(10)
    rows = [
        compare(team, gs.graphs.uniform(10, 15, seed=s), family="uniform", degree=3, seed=s, forwarding=False)
        for s in range(4)
    ]
    (found,) = summarise(rows)
    ratios = torch.tensor([row.ratio for row in rows], dtype=torch.float64)
    assert (found.graphs, found.smallest, found.largest) == (4, float(ratios.min()), float(ratios.max()))
    assert found.spread == pytest.approx(float((ratios - 1).square().mean().sqrt()))


def test_bad_graphs() -> None:
    team = distances()
    empty = gs.Graph(9, torch.empty(0, 2, dtype=torch.int64))
    weighted = gs.Graph(9, torch.tensor([[0, 1]]), torch.tensor([2.0]))
    for graph in (gs.graphs.complete(5), empty, weighted):
        with pytest.raises(gs.InputError, match="graph"):
            compare(team, graph, family="", degree=1)


def test_known_facts_are_taken_over() -> None:
    team, graph = distances(), gs.graphs.random_regular(9, 4, seed=3)
    found = compare(team, graph, family="regular", degree=4, asked_degree=3, seed=3)
    again = compare(
        team, graph, family="", degree=0, facts=look(graph, family="regular", degree=4, asked_degree=3, seed=3)
    )
    assert again == found


def test_a_uniform_sample_by_all_of_its_draws() -> None:
    team = distances(4)
    pairs = [float(team.matrix[i, j]) for i, j in itertools.combinations(range(4), 2)]
    means = [statistics.fmean(drawn) for drawn in itertools.combinations(pairs, 3)]
    assert team.uniform_error(3) == pytest.approx(statistics.pstdev(means))
    row = compare(team, gs.graphs.uniform(4, 3, seed=0), family="uniform", degree=1, forwarding=False)
    assert row.sampled == pytest.approx(statistics.pstdev(means) / team.snd)


def test_bounds_over_random_regular_graphs() -> None:
    team = distances(10)
    row = compare(team, gs.graphs.random_regular(10, 4, seed=0), family="regular", degree=4, forwarding=False)
    largest = float(team.matrix.max()) / team.snd
    assert row.probabilistic == pytest.approx(largest * math.sqrt(8 / 40 * (math.log(4 / DELTA) + 15 / 4)))
    assert row.probabilistic_finite is not None
    assert row.probabilistic_finite < row.probabilistic
    fixed = compare(team, gs.graphs.circulant(10, shifts=[1, 2]), family="ring", degree=4, forwarding=False)
    assert (fixed.probabilistic, fixed.probabilistic_finite) == (None, None)
    assert fixed.spectral is not None
