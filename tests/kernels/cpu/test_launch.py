"""The numba backend against the reference."""

from __future__ import annotations

import pytest
import torch

from graphsnd import kernels
from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels.cpu import launch
from graphsnd.kernels.threads import limit_threads
from tests.kernels import checks
from tests.kernels.checks import DTYPES, NORMS, SCALES, Shape, each_operation

CPU = ("cpu", "cpu")
# Around the number of lanes (16), of observations below which agents are the lanes (12), and of agents from which they
# are those of gradients (100). The last has several stretches of second agents.
SHAPES: list[Shape] = [
    (1, 2, 1),
    (3, 5, 2),
    (15, 33, 3),
    (16, 7, 4),
    (70, 20, 5),
    (129, 35, 9),
    (18, 101, 3),
    (2, 130, 4),
    (5, 40, 64),
    (17, 4, 130),
    (17, 150, 40),
]
# Lanes of totals are agents: more than one span of 512, a single lane in the last, less than a group of 8, two strips.
DEEP_SHAPES: list[Shape] = [(16, 513, 13), (17, 130, 50), (5, 6, 168), (65, 67, 100), (3, 1100, 5)]
FEW, MANY = (5, 19, 3), (20, 19, 3)  # observations: lanes of totals are agents, lanes are observations
WIDE = (20, 101, 3)  # lanes of gradients are agents
DEEP = (20, 67, 100)  # lanes of totals too

each_norm = pytest.mark.parametrize("norm", NORMS, ids=lambda n: n.value)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
few_or_many = pytest.mark.parametrize("shape", [FEW, MANY, WIDE, DEEP], ids=["few", "many", "wide", "deep"])


@each_operation
@each_norm
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agreement(operation: str, norm: Norm, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_agreement(operation, checks.draw(shape, norm, dtype), norm, "cpu")


@each_dtype
@pytest.mark.parametrize("shape", DEEP_SHAPES, ids=str)
def test_agreement_of_many_features(dtype: torch.dtype, shape: Shape) -> None:
    checks.check_agreement("pair_totals", checks.draw(shape, Norm.EUCLIDEAN, dtype), Norm.EUCLIDEAN, "cpu")


@each_operation
@pytest.mark.parametrize("shape", [(200, 20, 3), (2, 130, 4), (20, 67, 100), (2, 1100, 4)], ids=str)
def test_agreement_with_threads(operation: str, shape: Shape) -> None:
    with limit_threads(3):
        checks.check_agreement(operation, checks.draw(shape, Norm.EUCLIDEAN, torch.float64), Norm.EUCLIDEAN, "cpu")


@each_operation
@each_norm
@each_dtype
@few_or_many
@pytest.mark.parametrize("value", [0.3, 1e-30, 1e30])
def test_identical_agents(operation: str, norm: Norm, dtype: torch.dtype, shape: Shape, value: float) -> None:
    checks.check_identical_agents(operation, torch.full(shape, value, dtype=dtype), norm, "cpu")


@each_operation
@each_norm
@few_or_many
@pytest.mark.parametrize("scale", SCALES)
def test_scale(operation: str, norm: Norm, shape: Shape, scale: float) -> None:
    checks.check_scale(operation, shape, scale, norm, *CPU)


@each_operation
@each_norm
@each_dtype
@few_or_many
def test_nan(operation: str, norm: Norm, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_nan(operation, shape, norm, dtype, *CPU)


@each_operation
@each_dtype
@few_or_many
def test_strides(operation: str, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_strides(operation, shape, Norm.EUCLIDEAN, dtype, *CPU)


@each_dtype
@pytest.mark.parametrize("layout", list(checks.LAYOUTS))
def test_parts(layout: str, dtype: torch.dtype) -> None:
    checks.check_parts((20, 19, 4), layout, dtype, *CPU)


@each_dtype
def test_parts_copied_in_shares(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "COPY", 1 << 14)
    checks.check_parts((50, 67, 100), "apart", dtype, *CPU)


@each_norm
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_means_and_totals(norm: Norm, dtype: torch.dtype, shape: Shape) -> None:
    checks.check_means_and_totals(shape, norm, dtype, 1.0, *CPU)


@few_or_many
@pytest.mark.parametrize("scale", SCALES)
def test_means_and_totals_of_any_scale(shape: Shape, scale: float) -> None:
    checks.check_means_and_totals(shape, Norm.EUCLIDEAN, torch.float32, scale, *CPU)


@pytest.mark.parametrize("shape", [(5, 300, 3), (1000, 20, 3)], ids=["few", "many"])
def test_means_and_totals_have_the_same_bits_for_any_number_of_threads(shape: Shape) -> None:
    points = Points(checks.draw(shape, Norm.EUCLIDEAN, torch.float32), Norm.EUCLIDEAN)
    inputs, found = checks.Inputs.draw(*shape[:2], "cpu"), []
    for count in (1, 2, 3, 7):
        with limit_threads(count):
            found.append(torch.cat(kernels.edge_means_and_totals(points, inputs.dense, backend="cpu")))
    assert all(torch.equal(found[0], other) for other in found)


@each_dtype
@few_or_many
@pytest.mark.parametrize("value", [0.3, 1e-30, 3e38])
def test_equal_agents_are_at_no_distance_from_their_mean(dtype: torch.dtype, shape: Shape, value: float) -> None:
    points = Points(torch.full(shape, value, dtype=dtype), Norm.EUCLIDEAN)
    edges = checks.Inputs.draw(*shape[:2], "cpu").dense
    means, totals = kernels.edge_means_and_totals(points, edges, radii=True, backend="cpu")
    assert len(means) == len(edges) + shape[1]
    assert not means.any()
    assert not totals.any()


@few_or_many
def test_expanded_weight(shape: Shape) -> None:
    checks.check_expanded_weight(shape, Norm.EUCLIDEAN, torch.float64, *CPU)


@each_operation
@each_norm
@pytest.mark.parametrize("shape", [(2, 4, 3), (16, 3, 2)], ids=["few", "many"])
def test_gradients(operation: str, norm: Norm, shape: Shape) -> None:
    checks.check_gradients(operation, shape, norm, *CPU)


@each_operation
def test_second_derivatives_are_refused(operation: str) -> None:
    checks.check_second_derivatives_are_refused(operation, FEW, *CPU)


@pytest.mark.parametrize("shape", [(16, 3000, 2), (2, 3000, 2), (300, 20, 2), (16, 600, 20)], ids=str)
def test_precision_of_totals(shape: Shape) -> None:
    checks.check_precision_of_totals(shape, *CPU)


@pytest.mark.parametrize("observations", [3, 40])
def test_precision_of_edges(observations: int) -> None:
    checks.check_precision_of_edges((observations, 500, 2), 20_000, *CPU)


def test_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    checks.check_no_edges("cpu", monkeypatch)
