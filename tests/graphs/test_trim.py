"""Trimming: the shortest edges stay, ties are settled, and the result no longer claims to be a sample."""

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.graphs import Graph, Sampling
from graphsnd.graphs.trim import trim


def test_the_shortest_edges_stay() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 2)))
    graph = gs.graphs.knn(points, 5)
    lengths = [float(np.linalg.norm(points[i] - points[j])) for i, j in graph.edges.tolist()]
    kept = trim(graph, 150, positions=points)
    order = sorted(range(graph.m), key=lambda e: lengths[e])[:150]
    assert kept.edges.tolist() == sorted(graph.edges[order].tolist())
    assert torch.equal(trim(graph, 150, lengths=torch.tensor(lengths)).edges, kept.edges)
    assert torch.equal(trim(graph, graph.m, positions=points).edges, graph.edges)
    assert trim(graph, 0, positions=points).m == 0


def test_ties_go_to_the_first_pair_and_weights_stay() -> None:
    graph = Graph(4, torch.tensor([[2, 3], [0, 1], [1, 2]]), torch.tensor([3.0, 1.0, 2.0]))
    kept = trim(graph, 2, lengths=torch.tensor([1.0, 1.0, 1.0]))
    assert kept.edges.tolist() == [[0, 1], [1, 2]]
    assert kept.weights is not None
    assert kept.weights.tolist() == [1.0, 2.0]


def test_a_trimmed_draw_is_no_draw() -> None:
    graph = gs.graphs.bernoulli(20, 0.5, seed=0)
    kept = trim(graph, 10, lengths=torch.arange(float(graph.m)))
    assert kept.inclusion is None
    assert kept.sampling is Sampling.FIXED
    assert kept.family == "bernoulli, trimmed"


@pytest.mark.parametrize(("options", "name"), [
    ({}, "lengths"),
    ({"lengths": torch.ones(3), "positions": torch.ones(3, 1)}, "lengths"),
    ({"lengths": torch.ones(2)}, "lengths"),
    ({"lengths": torch.full((3,), torch.nan)}, "lengths"),
    ({"positions": torch.ones(4, 1)}, "positions"),
    ({"positions": torch.ones(3)}, "positions"),
])  # fmt: skip
def test_bad_input_is_named(options: dict[str, torch.Tensor], name: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`"):
        trim(gs.graphs.complete(3), 2, **options)


@pytest.mark.parametrize("edges", [-1, 4, 1.5])
def test_impossible_numbers_of_edges(edges: object) -> None:
    with pytest.raises(gs.InputError, match="`edges`"):
        trim(gs.graphs.complete(3), edges, lengths=torch.ones(3))
