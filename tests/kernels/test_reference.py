"""The reference backend against loops, whole and cut into the smallest chunks, and its distances against oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.kernels import reference
from graphsnd.kernels.reference import (
    PAIR_FUNCTIONS,
    bures,
    euclidean,
    extremes,
    half_l1,
    sqrt_js,
)
from tests import oracles
from tests.cases import CLOSED_FORM, Case

OBSERVATIONS, AGENTS = 5, 6
EDGES = torch.tensor([[0, 1], [0, 5], [2, 3], [3, 5]])
WEIGHT = torch.tensor([0.1, 0.4, 0.0, 2.0, 0.25], dtype=torch.float64)


@pytest.mark.parametrize("chunk", [reference.CHUNK, 1], ids=["whole", "chunked"])
@pytest.mark.parametrize("case", CLOSED_FORM, ids=lambda c: c.name)
def test_every_sum_is_that_of_a_loop(case: Case, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "CHUNK", chunk)
    parameters = case.parameters(observations=OBSERVATIONS, agents=AGENTS)
    d = np.stack([case.oracle(*(p[o : o + 1] for p in parameters)) for o in range(OBSERVATIONS)])
    points = embed(case.build(*parameters), case.distance)

    def equal(found: torch.Tensor, expected: np.ndarray) -> None:
        assert found.dtype == torch.float64
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-12)

    equal(reference.pair_totals(points), np.triu(d).sum((1, 2)))
    equal(reference.pair_matrix(points, WEIGHT), np.einsum("oij,o->ij", d, WEIGHT.numpy()))
    along = d[:, EDGES[:, 0], EDGES[:, 1]]
    equal(reference.edge_means(points, EDGES), along.mean(0))
    for coefficient in (torch.ones(4), torch.tensor([1.0, -2.0, 0.5, 0.0])):
        means, totals = reference.edge_means_and_totals(points, EDGES, coefficient.double())
        equal(means, along.mean(0))
        equal(totals, along @ coefficient.double().numpy())
        equal(reference.edge_totals(points, EDGES, coefficient.double()), totals.numpy())
    own = np.random.default_rng(0).integers(0, AGENTS, size=(OBSERVATIONS, 3, 2))
    own[0, 0] = [2, 2]
    sums = reference.observation_edges(points, torch.from_numpy(own))
    equal(sums, np.stack([d[o, own[o, :, 0], own[o, :, 1]] for o in range(OBSERVATIONS)]))
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_torch_s_own_distances_are_the_formula_s(dtype: torch.dtype) -> None:
    x, y = (torch.randn(3, rows, 5, generator=torch.Generator().manual_seed(rows)).to(dtype) for rows in (30, 40))
    y[:, 7], y[:, 9] = x[:, 3], x[:, 3] * (1 + 1e-6)
    expected = euclidean(x.double().unsqueeze(2), y.double().unsqueeze(1))
    found = reference.across(Norm.EUCLIDEAN, x, y)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=0)
    assert not found[:, 3, 7].any()


def test_euclidean_totals_have_second_derivatives_and_those_of_the_forward_mode() -> None:
    values = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def totals(v: torch.Tensor) -> torch.Tensor:
        return reference.pair_totals(Points(v, Norm.EUCLIDEAN))

    assert torch.autograd.gradgradcheck(totals, (values.clone().requires_grad_(),))
    direction = torch.ones_like(values).cumsum(1).square()
    _, along = torch.func.jvp(totals, (values,), (direction,))
    slopes = torch.autograd.functional.jacobian(totals, values)
    torch.testing.assert_close(along, (slopes * direction).sum(dim=(1, 2, 3)))


def test_float32_is_summed_in_float64() -> None:
    # 2^24 + 1 is the first integer float32 cannot hold: one pair in 2^24 observations would be lost.
    values = torch.zeros(3, 2, 1)
    values[:, 1, 0] = torch.tensor([2.0**24, 1.0, 1.0])
    means = reference.edge_means(Points(values, Norm.EUCLIDEAN), torch.tensor([[0, 1]]))
    assert means.item() == pytest.approx((2**24 + 2) / 3, rel=1e-15)


def exact_js(p: np.ndarray, q: np.ndarray) -> float:
    """By relative entropies to the mean, summed in extended precision."""
    p, q = p.astype(np.longdouble), q.astype(np.longdouble)
    m = (p + q) / 2
    terms = [x * np.log(x / y) for r in (p, q) for x, y in zip(r, m, strict=True) if x > 0]
    return math.sqrt(max(0.0, float(sum(terms) / 2)))


def test_small_differences_of_large_numbers_survive() -> None:
    x, y = torch.tensor([4096.0, 4096.0]), torch.tensor([4096.0, 4096.0 + 2**-11])
    assert float(euclidean(x, y)) == 2**-11
    assert float(half_l1(x, y)) == 2**-12


@pytest.mark.parametrize("gap", [0.9, 0.7, 0.5, 0.26, 0.25, 0.24, 1e-2, 1e-3, 1e-4])
def test_sqrt_js_across_the_threshold_of_its_series(gap: float) -> None:
    p = np.array([0.5 * (1 + gap), 0.5 * (1 - gap)])
    q = p[::-1].copy()
    distance = float(sqrt_js(torch.from_numpy(p), torch.from_numpy(q)))
    assert distance == pytest.approx(exact_js(p, q), rel=1e-9)
    narrow = float(sqrt_js(torch.from_numpy(p).float(), torch.from_numpy(q).float()))
    wide = exact_js(*(torch.from_numpy(r).float().double().numpy() for r in (p, q)))
    assert narrow == pytest.approx(wide, rel=1e-6)


@given(st.integers(0, 2**31), st.integers(2, 20), st.floats(0.01, 10), st.booleans())
def test_sqrt_js_against_relative_entropies(seed: int, actions: int, concentration: float, holes: bool) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.full(actions, concentration), size=2)
    if holes:
        p[rng.integers(actions)] = 0
        q[rng.integers(actions)] = 0
    m = (p + q) / 2
    expected = math.sqrt(max(0.0, (special.rel_entr(p, m) + special.rel_entr(q, m)).sum() / 2))
    distance = float(sqrt_js(torch.from_numpy(p), torch.from_numpy(q)))
    assert distance == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_sqrt_js_slopes() -> None:
    p = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([[0.3, 0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(sqrt_js, (p, q))
    zero = torch.tensor([[0.0, 0.5, 0.5]], dtype=torch.float64, requires_grad=True)
    sqrt_js(zero, q).sum().backward()
    assert zero.grad is not None
    assert zero.grad.isfinite().all()
    assert zero.grad[0, 0] == 0


def test_second_derivatives_are_refused_instead_of_wrong() -> None:
    p = torch.tensor([0.2, 0.8], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(sqrt_js(p, torch.tensor([0.5, 0.5]).double()), p, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def roots(rng: np.random.Generator, count: int, actions: int, rank: int) -> np.ndarray:
    factor = rng.normal(size=(count, actions, rank))
    values, vectors = np.linalg.eigh(factor @ np.swapaxes(factor, 1, 2))
    return (vectors * np.sqrt(np.clip(values, 0, None))[:, None]) @ np.swapaxes(vectors, 1, 2)


@pytest.mark.parametrize("actions", [1, 2, 3, 4])
@pytest.mark.parametrize("deficit", [0, 1])
def test_bures(actions: int, deficit: int) -> None:
    rank = max(1, actions - deficit)
    rng = np.random.default_rng(actions)
    root, loc = roots(rng, 8, actions, rank), rng.normal(size=(8, actions))
    rows = torch.from_numpy(np.concatenate([loc, root.reshape(8, -1)], axis=1))
    distance = bures(rows[:, None], rows[None])
    assert not distance.diagonal().any()
    torch.testing.assert_close(distance, distance.T, rtol=1e-12, atol=0)
    for i in range(8):
        for j in range(i):
            expected = oracles.bures_wasserstein(loc[i], root[i] @ root[i], loc[j], root[j] @ root[j])
            # The oracle's square roots lose half the digits where a covariance is singular.
            assert float(distance[i, j]) == pytest.approx(expected, rel=1e-9 if rank == actions else 1e-6)


@pytest.mark.parametrize("actions", [1, 2, 3])
def test_bures_of_equal_covariances_is_the_distance_of_the_means(actions: int) -> None:
    root = torch.from_numpy(roots(np.random.default_rng(0), 1, actions, actions)).reshape(1, -1)
    loc = torch.zeros(1, actions, dtype=torch.float64)
    x, y = torch.cat([loc, root], -1), torch.cat([loc + 1e-9, root], -1)
    assert float(bures(x, y)) == pytest.approx(1e-9 * math.sqrt(actions), rel=1e-6)
    assert float(bures(x, x)) == 0


@pytest.mark.parametrize("agents", [5, 70])
@pytest.mark.parametrize("features", [1, 3, 16, 32, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes_over_agents(agents: int, features: int, dtype: torch.dtype) -> None:
    values = torch.randn(features, agents, 7, dtype=dtype, generator=torch.Generator().manual_seed(0)).movedim(0, 2)
    values = values.transpose(0, 1)  # no axis is where memory has it
    values[1, 2, 0], values[3, 1, 0], values[6, 0, 0] = torch.inf, -torch.inf, torch.nan
    high, low = (part.numpy() for part in extremes(values))
    np.testing.assert_array_equal(high, values.numpy().max(axis=1))
    np.testing.assert_array_equal(low, values.numpy().min(axis=1))
