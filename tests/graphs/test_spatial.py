import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.graphs import knn, radius, spatial

needs_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def brute_neighbours(points, k):
    """For every agent the k others that sort first by (distance, index)."""
    squared = ((points[:, None].astype(np.float64) - points[None].astype(np.float64)) ** 2).sum(-1)
    n = len(points)
    return [sorted((j for j in range(n) if j != i), key=lambda j: (squared[i, j], j))[:k] for i in range(n)]


def brute_knn(points, k):
    return sorted({(min(i, j), max(i, j)) for i, near in enumerate(brute_neighbours(points, k)) for j in near})


def brute_radius(points, r):
    distance = np.sqrt(((points[:, None].astype(np.float64) - points[None].astype(np.float64)) ** 2).sum(-1))
    return [(i, j) for i, j in itertools.combinations(range(len(points)), 2) if distance[i, j] <= r]


def pairs_of(graph):
    return [tuple(edge) for edge in graph.edges.tolist()]


def test_many_copies_and_a_crowd_far_away():
    # A crowd of 60, six loners at one distance from all of it, and the crowd's indices spread over the team.
    points = np.zeros((66, 2), dtype=np.float32)
    points[::11] = [[3, 0], [-3, 0], [0, 3], [0, -3], [3, 0], [0, 3]]
    for k in (1, 4, 10, 59, 60, 65):
        assert pairs_of(knn(torch.from_numpy(points), k)) == brute_knn(points, k)


def test_equidistant_agents_in_blocks_that_do_not_divide_the_rows(monkeypatch):
    # One-hot features: every other agent is a tie.
    monkeypatch.setattr(spatial, "CPU_BLOCK", 64)
    points = np.eye(20, dtype=np.float32)
    assert pairs_of(knn(torch.from_numpy(points), 3)) == brute_knn(points, 3)
    assert pairs_of(radius(torch.from_numpy(points), 2**0.5)) == list(itertools.combinations(range(20), 2))


def test_a_radius_equal_to_a_rounded_distance_counts():
    # sqrt(3) squared rounds below 3: comparing squares would lose the diagonal of the unit cube.
    cube = torch.tensor([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert radius(cube, 3**0.5).m == 1
    assert radius(cube, np.nextafter(3**0.5, 0)).m == 0


def test_arrays_and_dicts_of_arrays_are_taken():
    points = np.random.default_rng(0).normal(size=(9, 2))
    for build in (lambda x: knn(x, np.int64(2)), lambda x: radius(x, np.float32(0.5))):
        graph = build({f"agent{i}": row for i, row in enumerate(points)})
        assert pairs_of(graph) == pairs_of(build(points))
        assert graph.names == tuple(f"agent{i}" for i in range(9))


def test_integer_half_and_non_contiguous_features():
    points = np.random.default_rng(0).integers(-9, 9, size=(3, 40))
    expected = brute_knn(points.T, 3)
    for dtype in (torch.int32, torch.float16, torch.bfloat16, torch.float64):
        assert pairs_of(knn(torch.from_numpy(points).to(dtype).T, 3)) == expected
    assert pairs_of(knn(torch.from_numpy(points).double().T.requires_grad_(), 3)) == expected
    assert pairs_of(radius(torch.from_numpy(points).T, 5)) == brute_radius(points.T, 5)


@pytest.mark.parametrize("n", [pytest.param(3000, marks=needs_gpu)])
def test_gpu_and_cpu_agree(n):
    generator = torch.Generator().manual_seed(0)
    for points in (torch.randn(n, 3, generator=generator), torch.randint(0, 12, (n, 3), generator=generator)):
        for build in (lambda x: knn(x, 6), lambda x: radius(x, 1.0)):
            graph = build(points.cuda())
            assert graph.device.type == "cuda"
            assert torch.equal(graph.edges.cpu(), build(points).edges)


@pytest.mark.parametrize("factor", [1e-300, 1e-200, 1e-30, 1.0, 1e30, 1e200, 1e300])
def test_graphs_do_not_depend_on_the_units(factor):
    features = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    # A power of two changes no bit, so that ties stay ties.
    unit = 2.0 ** round(math.log2(factor))
    assert torch.equal(knn(features * unit, 4).edges, knn(features, 4).edges)
    assert torch.equal(radius(features * unit, unit).edges, radius(features, 1.0).edges)


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


@pytest.mark.gpu
def test_the_gpu_builds_the_same_graphs() -> None:
    for points in (torch.randint(-3, 4, (50, 40, 2)).float(), torch.randn(50, 40, 3)):
        for build in (lambda x: knn(x, 5), lambda x: radius(x, 1.0)):
            one, other = build(points), build(points.cuda())
            assert other.device.type == "cuda"
            assert torch.equal(one.edges, other.edges.cpu())
            assert torch.equal(one.starts, other.starts.cpu())
