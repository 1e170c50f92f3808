"""Graphs of each observation, against those of one observation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.graphs import Graph, MovingGraph, bernoulli, complete, from_adjacency, knn, radius, spatial
from tests.graphs.test_spatial import brute_knn, brute_radius


def edges_of(moving: Any) -> list[list[tuple[int, int]]]:
    return [[(i, j) for i, j in moving[o].edges.tolist()] for o in range(len(moving))]


@st.composite
def grids(draw: Any) -> np.ndarray:
    """Points on a small integer grid: ties and copies everywhere."""
    shape = draw(st.integers(1, 4)), draw(st.integers(2, 9)), draw(st.integers(1, 3))
    numbers = draw(st.lists(st.integers(-2, 2), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(numbers, dtype=np.float32).reshape(shape)


@given(grids(), st.data())
def test_each_observation_is_brute_force_ties_included(points: np.ndarray, data: Any) -> None:
    k, r = data.draw(st.integers(1, points.shape[1] - 1)), data.draw(st.sampled_from([0.5, 1, 2**0.5, 2.0, 100.0]))
    near, within = [brute_knn(each, k) for each in points], [brute_radius(each, r) for each in points]
    assert edges_of(knn(torch.from_numpy(points), k)) == near
    assert edges_of(radius(torch.from_numpy(points), r)) == within
    assert edges_of([knn(torch.from_numpy(each), k) for each in points]) == near
    assert edges_of([radius(torch.from_numpy(each), r) for each in points]) == within


@pytest.mark.parametrize("block", [1, 50, 3 * 12**2])
def test_blocks_of_any_size_give_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = torch.randn(7, 12, 2, generator=torch.Generator().manual_seed(0))
    once = [knn(points, 3), radius(points, 0.7)]
    monkeypatch.setattr(spatial, "CPU_BLOCK", block)
    for one, other in zip(once, [knn(points, 3), radius(points, 0.7)], strict=True):
        assert torch.equal(one.edges, other.edges)
        assert torch.equal(one.starts, other.starts)


def test_shapes_dtypes_names_and_layout_of_positions() -> None:
    points = torch.randn(2, 3, 5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    moving = knn(points, 2)
    assert repr(moving) == f"MovingGraph(knn, n=5, observations=6, m={moving.m})"
    for same in (points.transpose(0, 1).contiguous().transpose(0, 1), points.requires_grad_(), points.detach().numpy()):
        assert torch.equal(knn(same, 2).edges, moving.edges)
    half = points.detach().half()
    assert torch.equal(knn(half, 2).edges, knn(half.double(), 2).edges)
    named = knn({"a": points[0, :, 0].detach(), "b": points[0, :, 1].detach()}, 1)
    assert (named.names, edges_of(named)) == (("a", "b"), [[(0, 1)]] * 3)
    assert named[0].names == ("a", "b")
    assert len(knn(torch.zeros(1, 2, 1), 1)) == 1


def test_adjacency_with_weights_and_without() -> None:
    graphs = [bernoulli(5, 0.5, seed=seed) for seed in range(4)]
    A = torch.zeros(4, 5, 5)
    for o, graph in enumerate(graphs):
        A[o, graph.edges[:, 0], graph.edges[:, 1]] = 1 + torch.rand(graph.m)
    A = A + A.mT
    moving = from_adjacency(A)
    assert [moving[o].edges.tolist() for o in range(4)] == [graph.edges.tolist() for graph in graphs]
    for o in range(4):
        assert torch.equal(moving[o].weights, from_adjacency(A[o]).weights)
    assert from_adjacency(A > 0).weights is None
    assert len(from_adjacency(A.view(2, 2, 5, 5))) == 4


def test_stack_slice_and_items() -> None:
    graphs = [complete(4), Graph(4, torch.tensor([[2, 1]]), torch.tensor([3.0])), Graph(4, torch.zeros(0, 2).long())]
    moving = MovingGraph.stack(graphs)
    assert moving.starts.tolist() == [0, 6, 7, 7]
    assert [graph.m for graph in moving] == [6, 1, 0]
    assert moving.weights.tolist() == [1.0] * 6 + [3.0]
    assert moving.owners().tolist() == [0] * 6 + [1]
    part = moving.slice(1, 3)
    assert (edges_of(part), part.starts.tolist(), part.weights.tolist()) == ([[(1, 2)], []], [0, 1, 1], [3.0])
    assert moving.to("cpu") is moving


def test_the_constructor_sorts_and_checks() -> None:
    edges, weights = torch.tensor([[2, 0], [0, 1], [1, 0]]), torch.tensor([2.0, 1.0, 5.0])
    moving = MovingGraph(3, edges, torch.tensor([0, 2, 2, 3]), weights)
    assert edges_of(moving) == [[(0, 1), (0, 2)], [], [(0, 1)]]
    assert moving.weights.tolist() == [1.0, 2.0, 5.0]
    named = MovingGraph(3, edges, torch.tensor([0, 2, 2, 3]), names=["a", "b", "c"])
    assert MovingGraph.stack(list(named)).names == ("a", "b", "c")


@pytest.mark.gpu
def test_the_gpu_builds_the_same_graphs() -> None:
    for points in (torch.randint(-3, 4, (50, 40, 2)).float(), torch.randn(50, 40, 3)):
        for build in (lambda x: knn(x, 5), lambda x: radius(x, 1.0)):
            one, other = build(points), build(points.cuda())
            assert other.device.type == "cuda"
            assert torch.equal(one.edges, other.edges.cpu())
            assert torch.equal(one.starts, other.starts.cpu())
