from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import graphsnd as gs
from graphsnd import bounds
from graphsnd.bounds import diameter
from tests.cases import Case, each

DRAWS = 2000
DELTA = 0.1


def two_roles(n: int) -> torch.Tensor:
    """Distances of a team of two equal halves, 0 or 1: nothing in [0, 1] spreads more, so the bounds are tightest."""
    actions = (torch.arange(n) % 2).double().reshape(1, n, 1)
    return gs.pairwise(gs.Deterministic(actions))


def errors(n: int, draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    """|Graph-SND - SND|, standard deviation and number of the drawn distances, over many draws that have an edge."""
    matrix = two_roles(n)
    truth = float(matrix.sum()) / (n * (n - 1))
    generator = torch.Generator().manual_seed(0)
    rows = []
    while len(rows) < DRAWS:
        edges = draw(generator).edges
        if len(edges):
            seen = matrix[edges[:, 0], edges[:, 1]]
            rows.append((abs(float(seen.mean()) - truth), float(seen.std(correction=0)), len(edges)))
    return tuple(np.array(column) for column in zip(*rows, strict=True))  # type: ignore[return-value]


def assert_covers(off: np.ndarray, radius: np.ndarray | float, failure: float, shrink: float) -> None:
    """The radius holds at least as often as promised, and a fraction of it does not: the test could have failed."""
    slack = 3 * math.sqrt(failure * (1 - failure) / len(off))
    assert np.mean(off > radius) <= failure + slack
    assert np.mean(off > np.asarray(radius) / shrink) > failure + slack


def test_hoeffding_covers() -> None:
    off, _, m = errors(40, lambda g: gs.graphs.uniform(40, 25, seed=g))
    radius = bounds.hoeffding(1.0, 25, DELTA)
    assert (m == 25).all()
    assert_covers(off, radius, DELTA, shrink=2)


def test_hoeffding_covers_bernoulli_draws_given_their_size() -> None:
    off, _, m = errors(20, lambda g: gs.graphs.bernoulli(20, 0.1, seed=g))
    radii = np.array([bounds.hoeffding(1.0, int(k), DELTA) for k in m])
    assert_covers(off, radii, DELTA, shrink=2)


@pytest.mark.parametrize("m", [20, 60, 110])
def test_serfling_covers_without_replacement(m: int) -> None:
    off, _, _ = errors(16, lambda g: gs.graphs.uniform(16, m, seed=g))
    radius = bounds.serfling(1.0, m, 120, DELTA)
    assert radius < bounds.hoeffding(1.0, m, DELTA)
    # Its factor is 1 - (m - 1)/pairs where the variance has 1 - m/pairs, so near m = pairs it is not as tight.
    assert_covers(off, radius, DELTA, shrink=2 if m < 100 else 5)


def test_empirical_bernstein_covers() -> None:
    off, std, _ = errors(60, lambda g: gs.graphs.uniform(60, 900, seed=g))
    radii = np.array([bounds.empirical_bernstein(s, 1.0, 900, 1770, DELTA) for s in std])
    assert_covers(off, radii, DELTA, shrink=6)


def test_bernoulli_covers_without_conditioning() -> None:
    off, _, m = errors(20, lambda g: gs.graphs.bernoulli(20, 0.2, seed=g))
    bound = bounds.bernoulli(1.0, 0.2, 20, DELTA)
    assert bound.failure == pytest.approx(DELTA + math.exp(-38 / 8))
    assert np.mean(m < 19) <= math.exp(-38 / 8)
    assert_covers(off, bound.radius, bound.failure, shrink=4)


def test_formulas() -> None:
    assert bounds.hoeffding(2.0, 50, 0.05) == pytest.approx(2 * math.sqrt(math.log(40) / 100))
    assert bounds.serfling(2.0, 50, 200, 0.05) == pytest.approx(2 * math.sqrt((1 - 49 / 200) * math.log(40) / 100))
    assert bounds.bernoulli(2.0, 0.5, 10, 0.05).radius == pytest.approx(2 * math.sqrt(math.log(40) / 22.5))
    kappa, log_term = 7 / 3 + 3 / math.sqrt(2), math.log(200)
    few = 0.3 * math.sqrt(2 * (1 - 49 / 200) * log_term / 50) + kappa * 2 * log_term / 50
    assert bounds.empirical_bernstein(0.3, 2.0, 50, 200, 0.05) == pytest.approx(few)
    many = 0.3 * math.sqrt(2 * (1 - 150 / 200) * (1 + 1 / 150) * log_term / 150) + kappa * 2 * log_term / 150
    assert bounds.empirical_bernstein(0.3, 2.0, 150, 200, 0.05) == pytest.approx(many)


positive = st.floats(1e-3, 1e3)
deltas = st.floats(1e-6, 0.999)


@given(positive, positive, deltas)
def test_edges_for_is_the_fewest_that_suffice(eps: float, d_max: float, delta: float) -> None:
    m = bounds.edges_for(eps, d_max, delta)
    assert m >= 1
    assert bounds.hoeffding(d_max, m, delta) <= eps
    assert m == 1 or bounds.hoeffding(d_max, m - 1, delta) > eps


@given(st.integers(1, 10**9), positive, deltas)
def test_edges_for_inverts_hoeffding_exactly(m: int, d_max: float, delta: float) -> None:
    assert bounds.edges_for(bounds.hoeffding(d_max, m, delta), d_max, delta) == m


@given(positive, st.integers(1, 500), st.integers(0, 500), deltas)
def test_order_of_the_bounds(d_max: float, m: int, more: int, delta: float) -> None:
    pairs = m + more
    assert bounds.serfling(d_max, m, pairs, delta) <= bounds.hoeffding(d_max, m, delta)
    assert bounds.hoeffding(d_max, m + 1, delta) < bounds.hoeffding(d_max, m, delta)
    assert bounds.hoeffding(2 * d_max, m, delta) == pytest.approx(2 * bounds.hoeffding(d_max, m, delta))
    assert bounds.hoeffding(d_max, m, delta / 2) > bounds.hoeffding(d_max, m, delta)
    assert bounds.empirical_bernstein(0.0, d_max, m, pairs, delta) > 0


def test_identical_agents_need_one_edge() -> None:
    assert bounds.edges_for(0.1, 0.0, 0.05) == 1
    assert bounds.hoeffding(0.0, 3, 0.05) == 0.0


def assert_certified(behavior: gs.Behavior, distance: gs.Distance | None = None) -> None:
    """At least the largest distance, computed in float64, and at most twice it."""
    largest = float(gs.pairwise(behavior, distance).double().max())
    bound = diameter(behavior, distance)
    assert largest <= bound <= 2 * largest * (1 + 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@each
def test_between_the_largest_distance_and_twice_it(case: Case, dtype: torch.dtype) -> None:
    for agents in (2, 3, 8):
        for seed in range(4):
            assert_certified(case.behavior(dtype, agents=agents, observations=4, seed=seed), case.distance)


shapes = hnp.array_shapes(min_dims=3, max_dims=3, max_side=6).filter(lambda s: s[1] > 1)


@given(hnp.arrays(np.float32, shapes, elements=st.floats(-1e3, 1e3, width=32)))
def test_any_actions_in_float32(actions: np.ndarray) -> None:
    # Subnormal numbers are as good as 0 to hardware that flushes them.
    actions[np.abs(actions) < 1e-30] = 0
    assert_certified(gs.Deterministic(torch.from_numpy(actions)))


@given(st.integers(0, 2**31), st.integers(2, 8), st.integers(1, 8), st.floats(0.02, 5))
def test_any_probabilities(seed: int, agents: int, observations: int, concentration: float) -> None:
    probs = np.random.default_rng(seed).dirichlet(np.full(3, concentration), size=(observations, agents))
    behavior = gs.Categorical(probs=torch.from_numpy(probs))
    for distance in (gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()):
        assert_certified(behavior, distance)


def test_jensen_shannon_when_the_mean_is_far_from_everybody() -> None:
    # On observation o only agent o differs. The mean agent is at sqrt-JS of order 1/sqrt(n) of everybody on every
    # observation, while two agents differ on two observations of n only.
    n = 40
    probs = torch.zeros(n, n, 2, dtype=torch.float64)
    probs[..., 0] = 1 - torch.eye(n)
    probs[..., 1] = torch.eye(n)
    assert_certified(gs.Categorical(probs=probs), gs.JensenShannon())


def test_full_gaussians_when_the_mean_is_far_from_everybody() -> None:
    # The same with thin Gaussians, one of which is turned by 60 degrees on each observation: what a turn costs is less
    # than the distance of the square roots, whose mean is taken.
    n = 40
    axes = torch.tensor([[1.0, 0.0], [0.5, 0.75**0.5]], dtype=torch.float64)
    covariance = (axes[..., None] * axes[:, None])[torch.eye(n, dtype=torch.int64)]
    assert_certified(gs.MultivariateGaussian(torch.zeros(n, n, 2, dtype=torch.float64), covariance))


def test_never_above_the_maximum_of_the_distance() -> None:
    corners = gs.Categorical(probs=torch.eye(6, dtype=torch.float64)[None])
    for distance in (gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()):
        assert diameter(corners, distance) == distance.maximum
