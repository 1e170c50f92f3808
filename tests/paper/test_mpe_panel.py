"""The panel against plain loops, networkx and exact errors."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
import torch
from scipy.spatial.distance import squareform

import graphsnd as gs
from graphsnd.designs.design import Bernoulli, Regular
from paper.mpe_panel import (
    DESIGNS,
    RINGS,
    TENTH,
    TeamRow,
    disconnected_share,
    draw_pairs,
    measure_design,
)
from paper.shared.expected import bernoulli_error, regular_error

PAIRS = list(itertools.combinations(range(10), 2))


def team(seed: int) -> TeamRow:
    distances = torch.rand(45, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return TeamRow("trained", 0, "noise", distances.tolist())


def test_a_design_against_a_plain_loop() -> None:
    some = team(0)
    chosen = draw_pairs(TENTH, 10, 300, 7)
    row = measure_design(TENTH, chosen, 0.5, some)
    truth, largest = sum(some.distances) / 45, max(some.distances)
    errors, beyond = [], 0
    for picks in chosen.tolist():
        kept = [distance for distance, keep in zip(some.distances, picks, strict=True) if keep]
        if kept:
            errors.append(sum(kept) / len(kept) - truth)
            beyond += abs(errors[-1]) >= gs.bounds.hoeffding(largest, len(kept), 0.1)
    assert len(errors) < 300  # a graph without an edge has no mean
    assert row.bias == pytest.approx(sum(errors) / len(errors))
    assert row.violations == pytest.approx(sum(abs(e) > 0.05 for e in errors) / len(errors))
    assert row.hoeffding_violations_largest == pytest.approx(beyond / len(errors))
    assert (row.disconnected, row.draws, row.estimator) == (0.5, 300, "bernoulli:0.1")


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_errors_are_the_exact_ones(design: Bernoulli | Regular) -> None:
    some = team(1)
    chosen = draw_pairs(design, 10, 1200, 0)
    row = measure_design(design, chosen, 0.0, some)
    matrix = torch.from_numpy(squareform(some.distances))
    exact = bernoulli_error(matrix, design.p) if isinstance(design, Bernoulli) else regular_error(matrix, 2)
    assert row.bias_error * int((chosen.sum(1) > 0).sum()) ** 0.5 == pytest.approx(exact, rel=0.09)
    assert abs(row.bias) < 4 * row.bias_error


def test_pieces() -> None:
    chosen = draw_pairs(RINGS, 10, 50, 3)
    apart = 0
    for row in chosen.tolist():
        graph = nx.empty_graph(10)
        graph.add_edges_from(pair for pair, keep in zip(PAIRS, row, strict=True) if keep)
        assert all(degree == 2 for _, degree in graph.degree())
        apart += not nx.is_connected(graph)
    assert disconnected_share(chosen) == pytest.approx(apart / 50)
