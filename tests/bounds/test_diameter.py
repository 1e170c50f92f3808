from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import graphsnd as gs
from graphsnd.bounds import diameter
from tests.cases import Case, each


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


@given(
    hnp.arrays(
        np.float32, st.tuples(st.just(1), st.integers(2, 3), st.integers(30, 200)), elements=st.floats(0, 1, width=32)
    )
)
def test_many_features_in_float32(actions: np.ndarray) -> None:
    actions[actions < 1e-30] = 0
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


def test_two_agents_are_measured_exactly() -> None:
    behavior = gs.Deterministic(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]], dtype=torch.float64))
    assert diameter(behavior) == pytest.approx(5.0, rel=1e-12)


def test_never_above_the_maximum_of_the_distance() -> None:
    corners = gs.Categorical(probs=torch.eye(6, dtype=torch.float64)[None])
    for distance in (gs.TotalVariation(), gs.Hellinger(), gs.JensenShannon()):
        assert diameter(corners, distance) == distance.maximum


def test_needs_no_gradient() -> None:
    actions = torch.zeros(1, 3, 1, requires_grad=True)
    assert isinstance(diameter(gs.Deterministic(actions)), float)
