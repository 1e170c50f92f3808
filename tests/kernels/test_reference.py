"""The reference backend against loops, whole and cut into the smallest chunks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels import reference
from graphsnd.kernels.reference import PAIR_FUNCTIONS
from tests.cases import CLOSED_FORM, Case

OBSERVATIONS, AGENTS = 5, 6
EDGES = torch.tensor([[0, 1], [0, 5], [2, 3], [3, 5]])
WEIGHT = torch.tensor([0.1, 0.4, 0.0, 2.0, 0.25], dtype=torch.float64)

each = pytest.mark.parametrize("case", CLOSED_FORM, ids=lambda c: c.name)


@pytest.fixture(params=["whole", "chunked"], autouse=True)
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "chunked":
        monkeypatch.setattr(reference, "CHUNK", 1)


def points_and_distances(case: Case) -> tuple[Points, np.ndarray]:
    """The embedded team, and its distances ``[observations, agents, agents]`` from the oracle."""
    parameters = case.parameters(observations=OBSERVATIONS, agents=AGENTS)
    single = [case.oracle(*(p[o : o + 1] for p in parameters)) for o in range(OBSERVATIONS)]
    return embed(case.build(*parameters), case.distance), np.stack(single)


@each
def test_pair_totals(case: Case) -> None:
    points, d = points_and_distances(case)
    sums = reference.pair_totals(points)
    assert sums.dtype == torch.float64
    np.testing.assert_allclose(sums.numpy(), np.triu(d).sum((1, 2)), rtol=1e-9)


@each
def test_pair_matrix(case: Case) -> None:
    points, d = points_and_distances(case)
    sums = reference.pair_matrix(points, WEIGHT)
    np.testing.assert_allclose(sums.numpy(), np.einsum("oij,o->ij", d, WEIGHT.numpy()), rtol=1e-9)


@each
def test_edge_means(case: Case) -> None:
    points, d = points_and_distances(case)
    i, j = EDGES.T.numpy()
    np.testing.assert_allclose(reference.edge_means(points, EDGES).numpy(), d[:, i, j].mean(0), rtol=1e-9)


@each
@pytest.mark.parametrize("weighted", [False, True])
def test_edge_means_and_totals(case: Case, weighted: bool) -> None:
    points, d = points_and_distances(case)
    coefficient = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64) if weighted else None
    means, totals = reference.edge_means_and_totals(points, EDGES, coefficient)
    along = d[:, EDGES[:, 0], EDGES[:, 1]]
    weights = np.ones(4) if coefficient is None else coefficient.numpy()
    np.testing.assert_allclose(means.numpy(), along.mean(0), rtol=1e-9)
    np.testing.assert_allclose(totals.numpy(), along @ weights, rtol=1e-9)
    none = reference.edge_means_and_totals(points, EDGES[:0], None)
    assert none[0].shape == (0,)
    assert none[1].tolist() == [0.0] * OBSERVATIONS


@each
def test_edge_totals(case: Case) -> None:
    points, d = points_and_distances(case)
    coefficient = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    i, j = EDGES.T.numpy()
    sums = reference.edge_totals(points, EDGES, coefficient)
    np.testing.assert_allclose(sums.numpy(), d[:, i, j] @ coefficient.numpy(), rtol=1e-9, atol=1e-12)


@each
def test_observation_edges(case: Case) -> None:
    points, d = points_and_distances(case)
    rng = np.random.default_rng(0)
    edges = rng.integers(0, AGENTS, size=(OBSERVATIONS, 3, 2))
    edges[0, 0] = [2, 2]
    sums = reference.observation_edges(points, torch.from_numpy(edges))
    expected = np.stack([d[o, edges[o, :, 0], edges[o, :, 1]] for o in range(OBSERVATIONS)])
    np.testing.assert_allclose(sums.numpy(), expected, rtol=1e-9)
    assert sums[0, 0] == 0


FEW = torch.tensor([[0, 1], [1, 2]])
OPERATIONS = {
    "pair_totals": lambda p: reference.pair_totals(p),
    "pair_matrix": lambda p: reference.pair_matrix(p, WEIGHT[:2]),
    "edge_means": lambda p: reference.edge_means(p, FEW),
    "edge_totals": lambda p: reference.edge_totals(p, FEW, torch.tensor([1.0, -2.0])),
    "observation_edges": lambda p: reference.observation_edges(p, FEW.expand(2, 2, 2)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("norm", [Norm.EUCLIDEAN, Norm.HALF_L1, Norm.SQRT_JS])
def test_gradients(operation: str, norm: Norm) -> None:
    values = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3)))
    values.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: OPERATIONS[operation](Points(v, norm)), (values,), atol=1e-6)


@pytest.mark.parametrize("norm", list(PAIR_FUNCTIONS))
def test_no_edges_are_an_empty_sum_that_can_be_differentiated(norm: Norm) -> None:
    values = torch.rand(OBSERVATIONS, AGENTS, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    none = torch.zeros(0, 2, dtype=torch.int64)
    points = Points(values, norm)
    sums = reference.edge_means(points, none)
    totals = reference.edge_totals(points, none, torch.zeros(0))
    assert sums.shape == (0,)
    assert totals.tolist() == [0.0] * OBSERVATIONS
    assert sums.dtype == totals.dtype == torch.float64
    (sums.sum() + totals.sum()).backward()
    assert values.grad is not None
    assert not values.grad.any()


def test_float32_is_summed_in_float64() -> None:
    # 2^24 + 1 is the first integer float32 cannot hold: one pair in 2^24 observations would be lost.
    values = torch.zeros(3, 2, 1)
    values[:, 1, 0] = torch.tensor([2.0**24, 1.0, 1.0])
    means = reference.edge_means(Points(values, Norm.EUCLIDEAN), torch.tensor([[0, 1]]))
    assert means.item() == pytest.approx((2**24 + 2) / 3, rel=1e-15)
