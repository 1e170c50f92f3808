"""The Triton backend against the reference.

Every combination of features, norm and dtype compiles each kernel once more, a second or two at a time, so that there
are few of them here; what is common to all norms is checked for one.
"""

from __future__ import annotations

import pytest
import torch

from graphsnd import graphs, kernels
from graphsnd.behavior.points import Norm, Points
from tests.kernels import checks
from tests.kernels.checks import SCALES, Shape, each_operation

pytest.importorskip("triton")
from graphsnd.kernels.gpu.launch import group_edges

pytestmark = pytest.mark.gpu

GPU = ("gpu", "cuda")
SMALL, LARGE = (37, 20, 2), (37, 45, 2)  # a team that fits one tile, a team that does not
WIDE = (37, 70, 9)  # more features than registers hold
EUCLIDEAN, HALF_L1 = Norm.EUCLIDEAN, Norm.HALF_L1
OTHERS: list[tuple[Norm, Shape]] = [(HALF_L1, (37, 20, 3)), (HALF_L1, (37, 45, 3)), (HALF_L1, (37, 45, 5))]
RARE: list[tuple[Norm, torch.dtype, Shape]] = [
    (EUCLIDEAN, torch.float32, (1, 2, 1)),
    (EUCLIDEAN, torch.float32, (129, 64, 16)),
    (EUCLIDEAN, torch.float32, (5, 40, 64)),
    (EUCLIDEAN, torch.float32, (3, 515, 128)),
    (HALF_L1, torch.float64, (3, 5, 2)),
    (HALF_L1, torch.float64, (37, 45, 5)),
]

each_shape = pytest.mark.parametrize("shape", [SMALL, LARGE, WIDE], ids=["small", "large", "wide"])
each_other = pytest.mark.parametrize(("norm", "shape"), OTHERS, ids=str)
# One of each kind: between them they run all that depends on the norm or on strides.
some_operations = pytest.mark.parametrize("operation", ["pair_totals", "pair_matrix", "observation_edges"])


@each_operation
@each_shape
def test_agreement(operation: str, shape: Shape) -> None:
    checks.check_agreement(operation, checks.draw(shape, EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN, "gpu")


@each_operation
def test_agreement_in_float64(operation: str) -> None:
    values = checks.draw((37, 45, 5), EUCLIDEAN, torch.float64)
    checks.check_agreement(operation, values.cuda(), EUCLIDEAN, "gpu")


@some_operations
@each_other
def test_agreement_of_other_norms(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_agreement(operation, checks.draw(shape, norm, torch.float32).cuda(), norm, "gpu")


@each_shape
def test_means_and_totals(shape: Shape) -> None:
    checks.check_means_and_totals(shape, EUCLIDEAN, torch.float32, 1.0, *GPU)


@pytest.mark.slow
@each_operation
@pytest.mark.parametrize(("norm", "dtype", "shape"), RARE, ids=str)
def test_agreement_on_rare_cases(operation: str, norm: Norm, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_agreement(operation, checks.draw(shape, norm, dtype).cuda(), norm, "gpu")


@each_operation
@each_shape
@pytest.mark.parametrize("value", [0.3, 1e-30, 1e30])
def test_identical_agents(operation: str, shape: Shape, value: float) -> None:
    checks.check_identical_agents(operation, torch.full(shape, value, device="cuda"), EUCLIDEAN, "gpu")


@some_operations
@each_other
def test_identical_agents_of_other_norms(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_identical_agents(operation, torch.full(shape, 0.3, device="cuda"), norm, "gpu")


@each_operation
@each_shape
@pytest.mark.parametrize("scale", SCALES)
def test_scale(operation: str, shape: Shape, scale: float) -> None:
    checks.check_scale(operation, shape, scale, EUCLIDEAN, *GPU)


@each_operation
@each_shape
def test_nan(operation: str, shape: Shape) -> None:
    checks.check_nan(operation, shape, EUCLIDEAN, torch.float32, *GPU)


@some_operations
@each_other
def test_nan_of_other_norms(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_nan(operation, shape, norm, torch.float32, *GPU)


@some_operations
@pytest.mark.parametrize("shape", [LARGE, WIDE], ids=["large", "wide"])
def test_strides(operation: str, shape: Shape) -> None:
    checks.check_strides(operation, shape, EUCLIDEAN, torch.float32, *GPU)


def test_expanded_weight() -> None:
    checks.check_expanded_weight(LARGE, EUCLIDEAN, torch.float32, *GPU)


@each_operation
def test_gradients(operation: str) -> None:
    checks.check_gradients(operation, (2, 18, 5), EUCLIDEAN, *GPU)


@each_operation
def test_second_derivatives_are_refused(operation: str) -> None:
    checks.check_second_derivatives_are_refused(operation, (37, 45, 5), *GPU)


@pytest.mark.parametrize("shape", [(16, 3001, 2), (300, 20, 2), (37, 500, 2), (5, 500, 33)], ids=str)
def test_precision_of_totals(shape: Shape) -> None:
    checks.check_precision_of_totals(shape, *GPU)


@pytest.mark.parametrize("observations", [3, 40])
def test_precision_of_edges(observations: int) -> None:
    checks.check_precision_of_edges((observations, 500, 2), 20_000, *GPU)


@pytest.mark.parametrize("dtype", checks.DTYPES, ids=str)
@pytest.mark.parametrize("layout", list(checks.LAYOUTS))
@pytest.mark.parametrize("shape", [(37, 20, 4), (37, 45, 4), (37, 45, 8)], ids=str)
def test_parts(shape: Shape, layout: str, dtype: torch.dtype) -> None:
    checks.check_parts(shape, layout, dtype, *GPU)


def test_wide_points_are_turned_a_share_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.kernels.gpu.launch.TRANSPOSED", 10 * 70 * 9)
    checks.check_agreement("pair_totals", checks.draw(WIDE, EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN, "gpu")


def test_distances_of_float64_points_may_be_float32() -> None:
    """Nearly equal agents: float32 roots of float64 squares, but no float32 differences."""
    values = checks.draw((37, 45, 8), EUCLIDEAN, torch.float64, ties=False)
    values = values[:, :1] + 1e-9 * values
    expected = kernels.pair_mean(Points(values, EUCLIDEAN), backend="reference")
    found = kernels.pair_mean(Points(values.cuda(), EUCLIDEAN, torch.float32), backend="gpu")
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double().cpu(), expected, rtol=1e-6, atol=0)


def test_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_no_edges("cuda", monkeypatch)


def test_edges_written_to_in_place_are_sorted_again() -> None:
    points = Points(checks.draw(LARGE, EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN)
    edges = checks.Inputs.draw(*LARGE[:2], "cuda").sparse
    before = kernels.edge_totals(points, edges, backend="gpu")
    edges.copy_(edges.flip(0))
    checks.assert_close(kernels.edge_totals(points, edges, backend="gpu"), before, 1e-6)
    edges[:, 1] = (edges[:, 0] + 1) % LARGE[1]
    totals = kernels.edge_totals(points, edges, backend="gpu")
    checks.assert_close(totals, kernels.edge_totals(points, edges, backend="reference"), 1e-6)


@pytest.mark.parametrize("share", [1, 4])
@pytest.mark.parametrize("ordered", [True, False])
def test_groups_hold_each_edge_once(share: int, ordered: bool) -> None:
    graph = graphs.bernoulli(300, 0.2, seed=1, device="cuda")
    edges = graph.edges if ordered else graph.edges[torch.randperm(graph.m, device="cuda")].flip(1)
    first, second, place = group_edges(edges, ordered, 300, 64, share, 16)
    assert torch.equal(second[place], edges[:, 1].int())
    assert torch.equal(first[place // share], edges[:, 0].int())
    assert len(place.unique()) == graph.m == int((second >= 0).sum())
    assert len(first) % 16 == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_of_a_graph_are_not_sorted_again(weighted: bool) -> None:
    points = Points(checks.draw((37, 300, 4), EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN)
    graph = graphs.bernoulli(300, 0.3, seed=torch.Generator("cuda").manual_seed(0))
    weight = torch.rand(graph.m, dtype=torch.float64, device="cuda") if weighted else None
    totals = kernels.edge_totals(points, graph.edges, weight, ordered=True, backend="gpu")
    checks.assert_close(totals, kernels.edge_totals(points, graph.edges, weight, backend="reference"), 1e-6)


@pytest.mark.parametrize("agents", [20, 45, 200])
def test_the_mean_on_two_streams_and_in_a_graph(agents: int) -> None:
    """Each stream counts its own programs, and so does a CUDA graph."""
    points = [Points(checks.draw((900, agents, 2), EUCLIDEAN, torch.float32).cuda() * k, EUCLIDEAN) for k in (1, 3)]
    expected = [float(kernels.pair_totals(p).mean()) / (agents * (agents - 1) / 2) for p in points]
    streams = [torch.cuda.Stream() for _ in points]
    torch.cuda.synchronize()
    found: list[list[torch.Tensor]] = [[], []]
    for _ in range(30):
        for k, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                found[k].append(kernels.pair_mean(points[k]))
    torch.cuda.synchronize()
    for means, value in zip(found, expected, strict=True):
        assert len({float(mean) for mean in means}) == 1, "the order of the sum is fixed"
        assert float(means[0]) == pytest.approx(value, rel=1e-6)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = kernels.pair_mean(points[0])
    for _ in range(3):
        captured.zero_()
        graph.replay()
        assert float(captured) == float(found[0][0])


def test_auto_takes_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.dispatch, "SMALL", 0)
    points = Points(checks.draw(LARGE, EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN)
    from graphsnd.kernels.gpu.launch import backend

    assert kernels.dispatch.choose("auto", points, 990) is backend
