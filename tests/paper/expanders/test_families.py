"""The families of the ablation: the best of several random regular graphs, and trimmed nearest neighbours."""

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds import relabelling_variance, spectrum
from paper.expanders.families import best_of, degrees, trim
from tests.bounds.test_relabelling import symmetric


def test_it_is_the_best_of_the_same_draws() -> None:
    generator = torch.Generator().manual_seed(5)
    drawn = [gs.graphs.random_regular(40, 4, seed=generator) for _ in range(6)]
    chosen = best_of(6, 40, 4, seed=5)
    seconds = [spectrum(graph).second for graph in drawn]
    assert torch.equal(chosen.edges, drawn[int(np.argmin(seconds))].edges)
    assert chosen.inclusion == pytest.approx(4 / 39)
    assert chosen.sampling is gs.graphs.Sampling.RELABELLED


def test_choosing_keeps_the_second_moments() -> None:
    n, degree = 10, 3
    matrix = symmetric(n, 0)
    graphs = [best_of(3, n, degree, seed=seed) for seed in range(200)]
    means = np.array([matrix[tuple(graph.edges.numpy().T)].mean() for graph in graphs])
    truth = float(relabelling_variance(torch.from_numpy(matrix), [degree] * n))
    assert means.mean() == pytest.approx(matrix[np.triu_indices(n, 1)].mean(), abs=4 * (truth / 200) ** 0.5)
    assert means.var() == pytest.approx(truth, rel=0.4)


def test_the_shortest_edges_stay() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 2)))
    graph = gs.graphs.knn(points, 5)
    lengths = [float(np.linalg.norm(points[i] - points[j])) for i, j in graph.edges.tolist()]
    kept = trim(graph, 150, points)
    order = sorted(range(graph.m), key=lambda e: lengths[e])[:150]
    assert kept.edges.tolist() == sorted(graph.edges[order].tolist())
    assert torch.equal(trim(graph, graph.m, points).edges, graph.edges)
    assert trim(graph, 0, points).m == 0
    assert kept.sampling is gs.graphs.Sampling.FIXED
    assert kept.family == "knn, trimmed"


def test_ties_go_to_the_first_pair() -> None:
    line = gs.Graph(4, torch.tensor([[2, 3], [0, 1], [1, 2]]))
    assert trim(line, 2, torch.arange(4.0)[:, None]).edges.tolist() == [[0, 1], [1, 2]]


def test_degrees_of_the_paper() -> None:
    assert [degrees(n) for n in (50, 100, 200, 500)] == [
        [6, 12, 23], [7, 14, 27], [8, 16, 31], [9, 18, 36],
    ]  # fmt: skip
    assert degrees(25) == [6, 10, 20]  # 25 * 5 is odd
    assert all(n * used % 2 == 0 for n in range(6, 80) for used in degrees(n))
