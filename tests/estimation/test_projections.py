"""All-pairs SND from directions: unbiased for every number of features, bounded for every team, exact on a line."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

import graphsnd as gs
from graphsnd.behavior import Norm, Points
from graphsnd.estimation.projections import even_directions, length_constant, projected_snd, turn_randomly, worst_spread
from graphsnd.kernels import projections

SEEDS = 150


def team(observations: int, agents: int, features: int, seed: int = 0) -> Points:
    """Long in one direction, an outlier, two agents alike: what an average over directions might get wrong."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(observations, agents, features)) * 0.5 ** np.arange(features) + 100
    x[:, 0] += 5
    x[:, 1] = x[:, 2]
    return Points(torch.from_numpy(x), Norm.EUCLIDEAN)


def oracle(points: Points) -> np.ndarray:
    return np.array([pdist(x).mean() for x in points.values.double().numpy()])


@pytest.mark.parametrize("directions", [1, 5, 12])
@pytest.mark.parametrize("features", [2, 3, 4, 8])
def test_unbiased(features: int, directions: int) -> None:
    points = team(5, 7, features)
    found = np.stack([projected_snd(points, directions, seed=s).per_observation.numpy() for s in range(SEEDS)])
    z = (found.mean(axis=0) - oracle(points)) / (found.std(axis=0, ddof=1) / math.sqrt(SEEDS))
    assert np.abs(z).max() < 4
    # A constant that is off by 8% would have been seen.
    assert directions == 1 or (found.std(axis=0) / math.sqrt(SEEDS) < 0.02 * oracle(points)).all()


def test_one_feature_is_exact() -> None:
    points = team(3, 9, 1)
    found = projected_snd(points)
    np.testing.assert_allclose(found.per_observation, oracle(points), rtol=1e-12)
    assert (found.standard_error, found.error_bound, found.directions) == (0.0, 0.0, 1)


@pytest.mark.parametrize("agents", [2, 9, projections.COUNTED])
@pytest.mark.parametrize("features", [1, 2, 3, 5])
def test_equal_agents_give_exactly_zero(features: int, agents: int) -> None:
    row = torch.randn(4, 1, features, generator=torch.Generator().manual_seed(0))
    found = projected_snd(Points(row.expand(-1, agents, -1), Norm.EUCLIDEAN), 7)
    assert found.per_observation.tolist() == [0.0] * 4
    assert found.standard_error == 0


@pytest.mark.parametrize(("features", "directions"), [(2, 1), (2, 4), (3, 3), (3, 6), (4, 12), (6, 4), (8, 16)])
def test_a_line_has_the_worst_spread_and_others_less(features: int, directions: int) -> None:
    rng = np.random.default_rng(0)
    line = rng.normal(size=(1, 12, 1)) * rng.normal(size=features)
    for x, share in ((line, 0.8), (rng.normal(size=(1, 12, features)), 0.0)):
        points = Points(torch.from_numpy(x), Norm.EUCLIDEAN)
        truth = oracle(points)[0]
        found = np.array([float(projected_snd(points, directions, seed=s).value) for s in range(SEEDS)])
        drawn = projected_snd(points, directions)
        blocks = drawn.directions // even_directions(features, directions).shape[0]
        bound = worst_spread(even_directions(features, directions)) / math.sqrt(blocks) * truth
        assert share * bound < found.std() < 1.2 * bound


@pytest.mark.parametrize("features", [2, 3, 6])
def test_certified_bound_holds_over_neighbouring_observations(features: int) -> None:
    rng = np.random.default_rng(1)
    angles = np.linspace(0, 9, 10)
    turning = np.stack([np.cos(angles), np.sin(angles), *np.zeros((features - 2, 10))], axis=-1)[:, None]
    for x in (rng.normal(size=(1, 8, 1)) * turning, np.repeat(rng.normal(size=(1, 8, features)), 10, axis=0)):
        points = Points(torch.from_numpy(x), Norm.EUCLIDEAN)
        found = [projected_snd(points, 4, seed=s) for s in range(SEEDS)]
        spread = np.std([float(f.value) for f in found])
        assert spread < 1.15 * np.mean([f.error_bound for f in found])


def test_strata_beat_independent_offsets_for_a_team_that_stays() -> None:
    x = np.repeat(np.random.default_rng(2).normal(size=(1, 8, 1)) * np.array([1.0, 2.0]), 40, axis=0)
    points = Points(torch.from_numpy(x), Norm.EUCLIDEAN)
    together = np.std([float(projected_snd(points, 2, seed=s).value) for s in range(SEEDS)])
    alone = worst_spread(even_directions(2, 2)) / math.sqrt(40) * oracle(points)[0]
    assert together < alone / 5


@pytest.mark.parametrize(("features", "directions"), [(3, 12), (4, 8), (5, 20)])
def test_standard_error_from_sets_that_are_turned_independently(features: int, directions: int) -> None:
    points = team(24, 8, features)
    found = [projected_snd(points, directions, seed=s) for s in range(SEEDS)]
    spread = np.std([float(f.value) for f in found], ddof=1)
    assert np.sqrt(np.mean([f.standard_error**2 for f in found])) == pytest.approx(spread, rel=0.25)
    assert all(f.standard_error <= f.error_bound for f in found)


def test_one_set_of_directions_reports_the_bound() -> None:
    found = projected_snd(team(4, 6, 2), 8)
    assert found.standard_error == found.error_bound > 0


@pytest.mark.parametrize("features", [2, 3, 4, 7])
def test_directions_are_unit_vectors_and_frames_are_orthonormal(features: int) -> None:
    drawn = turn_randomly(even_directions(features, 3), 5, 2, torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.norm(dim=-1), torch.ones(5, 2, 3, dtype=torch.float64))
    if features > 2:
        torch.testing.assert_close(drawn @ drawn.mT, torch.eye(3, dtype=torch.float64).expand(5, 2, 3, 3))


@pytest.mark.parametrize(("features", "directions", "degree"), [(2, 5, 8), (3, 3, 2), (3, 6, 4), (4, 12, 4), (8, 8, 2)])
def test_designs_integrate_even_powers(features: int, directions: int, degree: int) -> None:
    # The mean of (u.e)^k over a k-design is that over the sphere, the same for every e.
    e = np.random.default_rng(0).normal(size=(50, features))
    e /= np.linalg.norm(e, axis=1, keepdims=True)
    vectors = even_directions(features, directions).numpy()
    assert len(vectors) == directions
    for power in range(2, degree + 1, 2):
        moment = math.prod((k - 1) / (features + k - 2) for k in range(2, power + 1, 2))
        np.testing.assert_allclose(((e @ vectors.T) ** power).mean(axis=1), moment, rtol=1e-12)


def test_length_constant_is_the_inverse_mean_coordinate() -> None:
    for features in (2, 3, 4, 9):
        # The first coordinate u has density proportional to (1 - u^2)^((F - 3)/2).
        u = np.sin(np.linspace(0, np.pi / 2, 200_001))
        weight = np.sqrt(1 - u**2) ** (features - 2)
        assert length_constant(features) == pytest.approx(weight.sum() / (u * weight).sum(), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e30, 3e38])
def test_any_magnitude(scale: float) -> None:
    x = torch.rand(2, 2200, 2, generator=torch.Generator().manual_seed(0))
    for agents in (30, 2200):
        small, large = (projected_snd(Points(v, Norm.EUCLIDEAN)).value for v in (x[:, :agents], x[:, :agents] * scale))
        assert float(large / small) == pytest.approx(scale, rel=1e-5)


def test_nan_comes_out_as_nan() -> None:
    x = torch.rand(2, 2200, 2)
    x[0, 9, 1] = math.nan
    found = projected_snd(Points(x, Norm.EUCLIDEAN)).per_observation
    assert found.isnan().tolist() == [True, False]


@pytest.mark.parametrize("features", [1, 2, 3])
def test_gradient(features: int) -> None:
    x = team(2, 5, features).values
    x[:, 1] += 1  # no ties, where there is no derivative to compare with
    call = lambda v: projected_snd(Points(v, Norm.EUCLIDEAN), 4, seed=3).per_observation  # noqa: E731
    assert torch.autograd.gradcheck(call, (x.clone().requires_grad_(),))


def test_gradient_of_a_large_team_and_of_ties() -> None:
    x = torch.zeros(1, 3000, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(projected_snd(Points(x, Norm.EUCLIDEAN)).value, x)
    assert not slope.any()


def test_seeds_and_generators() -> None:
    points, generator = team(4, 6, 3), torch.Generator().manual_seed(5)
    one, two = (projected_snd(points, seed=5).per_observation for _ in range(2))
    assert torch.equal(one, two)
    assert torch.equal(projected_snd(points, seed=generator).per_observation, one)
    assert not torch.equal(projected_snd(points, seed=generator).per_observation, one)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: projected_snd(Points(torch.rand(1, 3, 2), Norm.HALF_L1)), r"`points`.*half-l1.*graphsnd.snd"),
    (lambda: projected_snd(Points(torch.rand(1, 3, 2), Norm.SQRT_JS)), r"`points`.*sqrt-js.*sampled graph"),
    (lambda: projected_snd(Points(torch.rand(1, 1, 2), Norm.EUCLIDEAN)), r"`points`.*2 agents"),
    (lambda: projected_snd(team(1, 3, 2), 0), "`directions`.*at least 1"),
    (lambda: projected_snd(team(1, 3, 2), seed=-1), "`seed`"),
])  # fmt: skip
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(gs.InputError, match=message):
        call()


@pytest.mark.gpu
def test_gpu_agrees() -> None:
    points = team(4, 3000, 3)
    there = Points(points.values.cuda(), points.norm)
    torch.testing.assert_close(
        projected_snd(there, 6).per_observation.cpu(), projected_snd(points, 6).per_observation, rtol=1e-3, atol=0
    )


def deterministic_team(features: int, observations: int = 12, n: int = 9) -> gs.Behavior:
    generator = torch.Generator().manual_seed(features)
    return gs.Deterministic(torch.randn(observations, n, features, generator=generator, dtype=torch.float64))


@pytest.mark.parametrize("features", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("directions", [1, 3, 12])
def test_intervals_hold(features: int, directions: int) -> None:
    behavior = deterministic_team(features)
    truth, covered = float(gs.snd(behavior)), 0
    for seed in range(60):
        e = gs.measure(behavior, design=gs.designs.Projections(directions), seed=seed)
        covered += e.interval[0] <= truth <= e.interval[1]
        assert e.distances == 0
        assert e.pairs_used == e.pairs_total
    assert e.guaranteed == (features == 1 or directions >= features)
    if e.guaranteed:
        assert covered >= 54
    assert e.exact == (features == 1)


@pytest.mark.parametrize(("features", "directions"), [(3, 3), (4, 4), (16, 16)])
def test_a_pair_of_agents_is_covered_too(features: int, directions: int) -> None:
    """One pair at one observation has the largest variance there is."""
    behavior = gs.Deterministic(torch.eye(2, features, dtype=torch.float64).unsqueeze(0))
    truth = float(gs.snd(behavior))
    found = [gs.measure(behavior, design=gs.designs.Projections(directions), seed=seed) for seed in range(300)]
    assert all(e.guaranteed for e in found)
    assert sum(e.interval[0] <= truth <= e.interval[1] for e in found) >= 0.95 * 300 - 3 * (300 * 0.05 * 0.95) ** 0.5


def test_in_the_plane_the_interval_is_certain() -> None:
    """All agents on one line is the worst case, and the offset decides where in the interval SND lies."""
    places = torch.linspace(0, 1, 20, dtype=torch.float64).view(1, 20, 1)
    behavior = gs.Deterministic(places * torch.tensor([0.6, 0.8], dtype=torch.float64))
    truth = float(gs.snd(behavior))
    ends = []
    for seed in range(300):
        e = gs.measure(behavior, design=gs.designs.Projections(3), seed=seed, confidence=0.999)
        assert e.interval[0] <= truth * (1 + 1e-9)
        assert truth <= e.interval[1] * (1 + 1e-9)
        ends.append((truth - e.interval[0]) / (e.interval[1] - e.interval[0]))
    assert min(ends) < 0.05
    assert max(ends) > 0.95  # so no shorter interval would do


def test_policies_are_evaluated_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphsnd.estimation import source
    from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam

    network = StackedMLP.create((5,), (3, 8, 4), init="linear", generator=torch.Generator().manual_seed(0))
    policies = StackedTeam(network, GaussianHead(2, mean="tanh", scale="network"))
    observations = torch.randn(50, 3)
    monkeypatch.setattr(source, "BLOCK", 5 * 4 * 7)
    truth = float(gs.snd(policies.evaluate(observations)).detach())
    e = gs.measure(policies, observations, design=gs.designs.Projections(24))
    assert e.value == pytest.approx(truth, rel=0.02)
    assert e.standard_error > 0


def test_other_norms_are_refused() -> None:
    behavior = gs.Categorical(probs=torch.full((4, 3, 2), 0.5))
    with pytest.raises(gs.InputError, match="`distance` with the Euclidean norm"):
        gs.measure(behavior, design=gs.designs.Projections(8))
    with pytest.raises(gs.InputError, match="directions"):
        gs.designs.Projections(0)
