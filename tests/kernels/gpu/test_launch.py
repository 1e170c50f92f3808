"""The Triton backend against the reference.

Every combination of features, norm and dtype compiles each kernel once more, a second or two at a time, so that there
are few of them here; what is common to all norms is checked for one.
"""

from __future__ import annotations

import pytest
import torch

from graphsnd import kernels
from graphsnd.behavior import Norm, Points
from tests.kernels import checks
from tests.kernels.checks import SCALES, Shape, each_operation

pytestmark = pytest.mark.gpu

GPU = ("gpu", "cuda")
SMALL, LARGE = (37, 20, 2), (37, 45, 2)  # a team that fits one tile, a team that does not
EUCLIDEAN, HALF_L1, SQRT_JS = Norm.EUCLIDEAN, Norm.HALF_L1, Norm.SQRT_JS
OTHERS: list[tuple[Norm, Shape]] = [(HALF_L1, (37, 45, 5)), (SQRT_JS, (37, 20, 3))]
RARE: list[tuple[Norm, torch.dtype, Shape]] = [
    (EUCLIDEAN, torch.float32, (1, 2, 1)),
    (EUCLIDEAN, torch.float32, (129, 64, 16)),
    (EUCLIDEAN, torch.float32, (5, 40, 64)),
    (HALF_L1, torch.float64, (3, 5, 2)),
    (SQRT_JS, torch.float64, (37, 45, 5)),
]

each_other = pytest.mark.parametrize(("norm", "shape"), OTHERS, ids=str)
# One of each kind: between them they run all that depends on the norm or on strides.
some_operations = pytest.mark.parametrize("operation", ["pair_totals", "pair_matrix", "observation_edges"])


@each_operation
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
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


@pytest.mark.slow
@each_operation
@pytest.mark.parametrize(("norm", "dtype", "shape"), RARE, ids=str)
def test_agreement_on_rare_cases(operation: str, norm: Norm, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_agreement(operation, checks.draw(shape, norm, dtype).cuda(), norm, "gpu")


@each_operation
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("value", [0.3, 1e-30, 1e30])
def test_identical_agents(operation: str, shape: Shape, value: float) -> None:
    checks.check_identical_agents(operation, torch.full(shape, value, device="cuda"), EUCLIDEAN, "gpu")


@some_operations
@each_other
def test_identical_agents_of_other_norms(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_identical_agents(operation, torch.full(shape, 0.3, device="cuda"), norm, "gpu")


@each_operation
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("scale", SCALES)
def test_scale(operation: str, shape: Shape, scale: float) -> None:
    checks.check_scale(operation, shape, scale, EUCLIDEAN, *GPU)


@each_operation
@pytest.mark.parametrize("shape", [SMALL, LARGE], ids=["small", "large"])
def test_nan(operation: str, shape: Shape) -> None:
    checks.check_nan(operation, shape, EUCLIDEAN, torch.float32, *GPU)


@some_operations
@each_other
def test_nan_of_other_norms(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_nan(operation, shape, norm, torch.float32, *GPU)


@some_operations
def test_strides(operation: str) -> None:
    checks.check_strides(operation, LARGE, EUCLIDEAN, torch.float32, *GPU)


def test_expanded_weight() -> None:
    checks.check_expanded_weight(LARGE, EUCLIDEAN, torch.float32, *GPU)


@each_operation
def test_gradients(operation: str) -> None:
    checks.check_gradients(operation, (2, 18, 5), EUCLIDEAN, *GPU)


@each_operation
def test_second_derivatives_are_refused(operation: str) -> None:
    checks.check_second_derivatives_are_refused(operation, (37, 45, 5), *GPU)


@pytest.mark.parametrize("shape", [(16, 3001, 2), (300, 20, 2), (37, 500, 2)], ids=str)
def test_precision_of_totals(shape: Shape) -> None:
    checks.check_precision_of_totals(shape, *GPU)


@pytest.mark.parametrize("observations", [3, 40])
def test_precision_of_edges(observations: int) -> None:
    checks.check_precision_of_edges((observations, 500, 2), 20_000, *GPU)


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


def test_auto_takes_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.dispatch, "SMALL", 0)
    points = Points(checks.draw(LARGE, EUCLIDEAN, torch.float32).cuda(), EUCLIDEAN)
    from graphsnd.kernels.gpu import backend

    assert kernels.dispatch.choose("auto", points, 990) is backend
