from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from graphsnd.designs import Agents, Bernoulli, Regular, Uniform
from graphsnd.estimation import advise
from graphsnd.estimation.forecast import Tolerance, forecast
from graphsnd.estimation.options import measure_spreads, moments
from graphsnd.estimation.source import Workload
from tests.estimation.test_advising import roles


def test_the_paper_s_designs_are_among_the_alternatives_and_have_their_formulas() -> None:
    found = advise(100, 4096, confidence=0.9, distance_spread=0.4, effect_share=0.0)
    by_design = {type(one.design): one for one in found.rejected}
    bernoulli = by_design[Bernoulli]
    assert bernoulli.design == Bernoulli(0.1)
    assert bernoulli.cost.distances == 495 * 4096
    assert not bernoulli.met
    assert bernoulli.typical == pytest.approx(1.6449 * 0.4 * math.sqrt(0.9 / 495), rel=1e-3)
    assert bernoulli.radius == pytest.approx(
        min(gs.bounds.serfling(4, 495, 4950, 0.05), gs.bounds.empirical_bernstein(0.4, 4, 495, 4950, 0.05))
    )
    regular = by_design[Regular]
    assert isinstance(regular.design, Regular)
    degree = regular.design.degree
    # Without effects of single agents, a regular graph has the variance of a simple sample, times N / (N - n).
    share = (1 - degree / 99) / (50 * degree) * 4950 / 4850
    assert regular.typical == pytest.approx(1.6449 * 0.4 * math.sqrt(share), rel=1e-3)
    assert regular.radius == pytest.approx(gs.bounds.random_regular_bound(4, 100, degree, 0.1))
    uniform = by_design[Uniform]
    assert uniform.met
    assert uniform.radius is not None
    assert 0.0095 < uniform.radius <= 0.01 / 1.01 + 1e-12


def test_a_pilot_measures_what_is_assumed_otherwise() -> None:
    team = roles(2000, 60, seed=3)
    distances = gs.pairwise(team).double()
    snd = float(gs.snd(team))
    upper = distances[tuple(torch.triu_indices(60, 60, 1))]
    found = advise(60, 10**6, rel_tol=0.05, pilot=team)
    bernoulli = next(one for one in found.rejected if isinstance(one.design, Bernoulli))
    m = round(0.1 * 1770)
    expected = 1.96 * float(upper.std()) / snd * math.sqrt(0.9 / m)
    assert bernoulli.typical == pytest.approx(expected, rel=0.15)
    regular = next(one for one in (found.recommended, *found.rejected) if isinstance(one.design, Regular))
    degree = regular.design.degree
    exact = float(gs.bounds.relabelling_variance(distances, [degree] * 60).sqrt()) / snd
    assert regular.typical == pytest.approx(1.96 * exact, rel=0.25)
    same = advise(60, 10**6, rel_tol=0.05, pilot=team)
    assert same.to_dict() == found.to_dict()


@pytest.mark.parametrize("n", [4, 5, 9, 40])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_moments_are_those_of_a_team_with_these_effects(n: int, share: float) -> None:
    generator = torch.Generator().manual_seed(n)
    a = torch.randn(n, generator=generator, dtype=torch.float64)
    a -= a.mean()
    effects = a[:, None] + a
    noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
    noise = noise + noise.T
    noise.fill_diagonal_(0)
    off = ~torch.eye(n, dtype=torch.bool)
    noise = (noise - noise.sum() / (n * (n - 1))) * off
    fit = noise.sum(1) / (n - 2)
    rest = (noise - fit[:, None] - fit) * off
    i, j = torch.triu_indices(n, n, 1)
    effects = effects * math.sqrt(share / float((effects[i, j] ** 2).mean()))
    rest = rest * math.sqrt((1 - share) / max(1e-300, float((rest[i, j] ** 2).mean())))
    x = effects[i, j] + rest[i, j]
    products = torch.outer(x, x)
    same = torch.eye(len(x), dtype=torch.bool)
    meet = ((i[:, None] == i) | (i[:, None] == j) | (j[:, None] == i) | (j[:, None] == j)) & ~same
    expected = torch.stack([products[same].mean(), products[meet].mean(), products[~meet & ~same].mean()])
    assert torch.allclose(moments(n, 1.0, share), expected, atol=1e-9)


@pytest.mark.parametrize(("observations", "n"), [(1, 500), (4, 20_000), (4, 6), (300, 40)])
def test_a_pilot_of_few_observations_is_used_in_full(observations: int, n: int) -> None:
    team = gs.Deterministic(torch.randn(observations, n, 1, generator=torch.Generator().manual_seed(0)))
    truth, (first, *_) = float(gs.snd(team)), advise(n, observations, pilot=team).assumptions
    assert f"pilot of {observations} of {observations} observations" in first
    assert float(first.split()[3]) == pytest.approx(truth, rel=0.03)
    prospect = measure_spreads(Workload(n, observations, 1, 0.0, torch.device("cpu")), team, None, bounded=True)
    points = team.actions[..., 0].double().sort(dim=1).values
    # Half of the mean squared difference of a random pair is the variance.
    squares = 2 * points.var(dim=1).mean() - truth**2
    between = torch.stack([gs.snd(gs.Deterministic(row[None, :, None])) for row in points]).var(correction=0)
    pairs = forecast(prospect.source, prospect.pilot, prospect.measured, Agents(2)).pairs
    assert pairs + float(between) == pytest.approx(float(squares), rel=0.05)


def test_a_large_pilot_leaves_the_fewest_draws_as_a_measurement_has_them() -> None:
    team = gs.Deterministic(torch.randn(40, 60, 1, generator=torch.Generator().manual_seed(0)))
    prospect = measure_spreads(Workload(60, 40, 1, 0.0, torch.device("cpu")), team, None, bounded=True)
    ahead = forecast(prospect.source, prospect.pilot, prospect.measured, Agents(8))
    assert ahead.draws(Tolerance(relative=0.9), None, 0.05) == 10  # a quarter of the observations


def test_slow_distances_have_a_shorter_pilot() -> None:
    team = gs.Samples(torch.randn(20, 30, 8, 1, generator=torch.Generator().manual_seed(0)))
    fast, slow = (
        measure_spreads(Workload(30, 20, 1, 0.0, torch.device("cpu")), team, distance, bounded=False).pilot.draws
        for distance in (None, gs.Energy())
    )
    assert 240 <= slow < fast <= 4096
