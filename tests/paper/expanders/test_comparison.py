from __future__ import annotations

import itertools
import math
import statistics

import networkx
import pytest
import torch

import graphsnd as gs
from paper.expanders.comparison import (
    DELTA,
    Distances,
    Row,
    compare,
    measure_small_graphs,
    select,
    summarise_graph,
)


def best_routing(graph: networkx.Graph) -> int:
    """The index by trying every choice of simple paths."""
    choices = [list(networkx.all_simple_edge_paths(graph, i, j)) for i, j in itertools.combinations(graph, 2)]
    loads = []
    for routing in itertools.product(*choices):
        count: dict[frozenset[int], int] = {}
        for path in routing:
            for edge in path:
                count[frozenset(edge)] = count.get(frozenset(edge), 0) + 1
        loads.append(max(count.values()))
    return min(loads)


def test_small_graphs_by_hand() -> None:
    small = measure_small_graphs()
    assert small.ring_4 == best_routing(networkx.cycle_graph(4))
    assert small.ring_5 == best_routing(networkx.cycle_graph(5))
    assert small.ring_4_fractional == pytest.approx(2)  # 4 edges of load 1, two diagonals over 8 half edges
    assert small.ring_5_ordered == pytest.approx(2 * 3)
    assert small.complete == 1


def test_a_disconnected_graph_has_no_index() -> None:
    summary = summarise_graph(gs.graphs.cliques([0, 0, 0, 1, 1, 1]), "cliques", 2)
    assert not summary.connected
    names = ("integral_lower", "integral_upper")
    assert all(getattr(summary, name) is None for name in (*names, "distortion_low", "distortion_high"))


def distances(n: int = 9) -> Distances:
    points = torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return Distances.of(torch.cdist(points, points))


def measure(team: Distances, graph: gs.Graph, degree: int, seed: int | None = None, *, forwarding: bool = False) -> Row:
    return compare(team, graph, summarise_graph(graph, "", degree, seed=seed, forwarding=forwarding))


def test_identical_agents_have_no_ratio() -> None:
    row = measure(Distances.of(torch.zeros(6, 6)), gs.graphs.random_regular(6, 3, seed=0), 3)
    assert (row.ratio, row.reciprocal, row.predicted, row.difference) == (None, None, None, 0.0)
    assert select([row]) == []


def test_effects_alone() -> None:
    a = torch.arange(6, dtype=torch.float64)
    matrix = (a[:, None] + a) * ~torch.eye(6, dtype=torch.bool)
    team = Distances.of(matrix)
    row = measure(team, gs.graphs.random_regular(6, 3, seed=0), 3, 0)
    assert row.ratio == pytest.approx(1)
    assert row.predicted == pytest.approx(0, abs=1e-9)


def test_forwarding_is_left_out_on_request_and_a_fixed_graph_has_no_prediction() -> None:
    team, graph = distances(), gs.graphs.circulant(9, shifts=[1, 2])
    row = measure(team, graph, 4)
    assert row.connected
    assert row.integral_upper is None
    assert row.predicted is None
    full = measure(team, graph, 4, forwarding=True)
    assert full.integral_upper is not None
    fractional = gs.bounds.forwarding_index(graph).upper
    assert full.distortion_high == pytest.approx(18 / 36 * min(fractional, full.integral_upper))


def test_a_uniform_sample_by_all_of_its_draws() -> None:
    team = distances(4)
    pairs = [float(team.matrix[i, j]) for i, j in itertools.combinations(range(4), 2)]
    means = [statistics.fmean(drawn) for drawn in itertools.combinations(pairs, 3)]
    assert team.uniform_error(3) == pytest.approx(statistics.pstdev(means))
    row = measure(team, gs.graphs.uniform(4, 3, seed=0), 1)
    assert row.sampled == pytest.approx(statistics.pstdev(means) / team.snd)


def test_bounds_over_random_regular_graphs() -> None:
    team = distances(10)
    row = measure(team, gs.graphs.random_regular(10, 4, seed=0), 4)
    largest = float(team.matrix.max()) / team.snd
    assert row.probabilistic == pytest.approx(largest * math.sqrt(8 / 40 * (math.log(4 / DELTA) + 15 / 4)))
    fixed = measure(team, gs.graphs.circulant(10, shifts=[1, 2]), 4)
    assert fixed.probabilistic is None
    assert fixed.spectral is not None
