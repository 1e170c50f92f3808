from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import distance as spatial

import graphsnd as gs
from graphsnd.behavior.distances import DISTANCES
from tests.cases import CASES, DISCRETE, QUADRATURE, Case, each

DISCRETE_DISTANCES = [gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()]


def largest_relative_error(case: Case, dtype: torch.dtype) -> float:
    worst = 0.0
    for seed in range(3):
        parameters = case.parameters(dtype, seed=seed)
        expected = case.oracle(*parameters)
        measured = gs.pairwise(case.build(*parameters), case.distance).double().numpy()
        off = ~np.eye(len(expected), dtype=bool)
        worst = max(worst, float(np.abs(measured[off] / expected[off] - 1).max()))
    return worst


@each
def test_forward_in_float64(case: Case) -> None:
    # Two orders better than asked, except where a quadrature rule has to integrate a heavy tail.
    assert largest_relative_error(case, torch.float64) < (1e-6 if case in QUADRATURE else 1e-12)


@each
def test_forward_in_float32(case: Case) -> None:
    assert largest_relative_error(case, torch.float32) < (1e-5 if case in QUADRATURE else 1e-6)


# The full Gaussians' parameters are factors here, whose product half precision rounds before graphsnd sees it.
HALF = [case for case in CASES if not case.name.startswith("full-gaussian")]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", HALF, ids=lambda c: c.name)
def test_half_precision_is_computed_in_float32(case: Case, dtype: torch.dtype) -> None:
    # Only the rounding of the parameters, which the oracle shares, and of the exp in some builds, may enter.
    assert largest_relative_error(case, dtype) < (2e-2 if case in QUADRATURE else 1e-6)


@each
def test_gradient_is_zero_where_all_agents_coincide(case: Case) -> None:
    parameters = [p[:, :1].repeat_interleave(3, dim=1).requires_grad_() for p in case.parameters()]
    value = gs.snd(case.build(*parameters), case.distance)
    assert value == 0
    value.backward()
    for p in parameters:
        assert p.grad is not None
        assert torch.equal(p.grad, torch.zeros_like(p))


@each
def test_coincident_pairs_pull_on_nobody(case: Case) -> None:
    # Agents 0 and 1 are copies: the gradient is the one without their pair, and equal for both.
    parameters = [torch.cat([p[:, :1], p], dim=1).requires_grad_() for p in case.parameters(agents=2)]
    gs.snd(case.build(*parameters), case.distance).backward()
    copies = [p.grad for p in parameters]
    again = [p.detach().clone().requires_grad_() for p in parameters]
    edges = gs.Graph(3, torch.tensor([[0, 2], [1, 2]]))
    (gs.graph_snd(case.build(*again), edges, case.distance) * 2 / 3).backward()
    for grad, p in zip(copies, again, strict=True):
        assert grad is not None
        assert p.grad is not None
        assert grad.isfinite().all()
        assert grad.abs().max() > 0
        torch.testing.assert_close(grad[:, 0], grad[:, 1])
        torch.testing.assert_close(grad, p.grad)


@pytest.mark.parametrize("distance", DISCRETE_DISTANCES, ids=str)
def test_gradient_with_disjoint_and_masked_actions(distance: gs.Distance) -> None:
    # Agents that may do different things, and one action nobody may do: all the corners of a logarithm at once.
    allowed = torch.tensor([[[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0]]], dtype=torch.bool)
    logits = torch.tensor([[[0.3, -1.0, 0.0, 0.0], [0.0, 0.5, 0.2, 9.0], [1.0, 0.0, -1.0, 0.0]]], requires_grad=True)
    gs.snd(gs.Categorical(logits=logits, mask=allowed), distance).backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    assert not logits.grad[~allowed].any()
    assert logits.grad[allowed].any()


@pytest.mark.parametrize("distance", DISCRETE_DISTANCES, ids=str)
def test_maximum_is_reached_and_never_passed(distance: gs.Distance) -> None:
    corners = gs.Categorical(probs=torch.eye(4, dtype=torch.float64)[None])
    matrix = gs.pairwise(corners, distance)
    assert distance.maximum is not None
    torch.testing.assert_close(matrix, distance.maximum * (1 - torch.eye(4, dtype=torch.float64)))
    case = next(c for c in DISCRETE if c.distance == distance)
    assert float(gs.pairwise(case.behavior(), distance).max()) < distance.maximum


@given(st.integers(0, 10_000), st.integers(2, 12), st.floats(0.05, 20))
def test_discrete_distances_against_scipy(seed: int, actions: int, concentration: float) -> None:
    p, q = np.random.default_rng(seed).dirichlet(np.full(actions, concentration), size=2)
    behavior = gs.Categorical(probs=torch.from_numpy(np.stack([p, q]))[None])
    rel = dict(rel=1e-6, abs=1e-15)
    assert float(gs.snd(behavior, gs.JensenShannon())) == pytest.approx(spatial.jensenshannon(p, q), **rel)
    assert float(gs.snd(behavior, gs.TotalVariation())) == pytest.approx(spatial.cityblock(p, q) / 2, **rel)
    expected = spatial.euclidean(np.sqrt(p), np.sqrt(q)) / math.sqrt(2)
    assert float(gs.snd(behavior, gs.Hellinger())) == pytest.approx(expected, **rel)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("distance", [gs.TotalVariation(), gs.JensenShannon()], ids=str)
def test_close_distributions_in_float32(distance: gs.Distance, gap: float) -> None:
    p = torch.tensor([0.2, 0.3, 0.5])
    probs = torch.stack([p, p + gap * torch.tensor([1.0, -1.0, 0.0])])[None]
    exact = gs.snd(gs.Categorical(probs=probs.double(), validate=False), distance)
    assert float(gs.snd(gs.Categorical(probs=probs), distance)) == pytest.approx(float(exact), rel=1e-5)


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_by_name(name: str) -> None:
    team = gs.Samples(torch.rand(3, 4, 6, 2)) if "sliced" in name else gs.Categorical(logits=torch.rand(3, 4, 2))
    team = gs.Gaussian(torch.rand(3, 4, 2), 1.0) if name == "wasserstein" else team
    for written in (name, name.replace("-", "_").upper()):
        assert torch.equal(gs.snd(team, written), gs.snd(team, DISTANCES[name]))
