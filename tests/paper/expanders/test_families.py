"""The families of the ablation: degrees, and trimmed nearest neighbours."""

import numpy as np
import torch

import graphsnd as gs
from graphsnd.graphs.graph import Sampling
from paper.expanders.families import degrees, trim


def test_the_shortest_edges_stay() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 2)))
    graph = gs.graphs.knn(points, 5)
    lengths = [float(np.linalg.norm(points[i] - points[j])) for i, j in graph.edges.tolist()]
    kept = trim(graph, 150, points)
    order = sorted(range(graph.m), key=lambda e: lengths[e])[:150]
    assert kept.edges.tolist() == sorted(graph.edges[order].tolist())
    assert torch.equal(trim(graph, graph.m, points).edges, graph.edges)
    assert trim(graph, 0, points).m == 0
    assert kept.sampling is Sampling.FIXED
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
