"""Comparisons of teams against scipy, and teams that do not differ."""

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from graphsnd import InputError


def _behaviors(shift: float, episodes: int = 40, steps: int = 16) -> tuple[gs.Deterministic, gs.Deterministic]:
    """Two teams of 5 whose SND at an observation is common to both, up to noise of the episode and a shift."""
    rng = np.random.default_rng(5)
    base = (
        rng.standard_normal((episodes * steps, 5, 2))
        * (1 + np.repeat(rng.uniform(0, 2, episodes), steps))[:, None, None]
    )
    noise = 1 + 0.02 * np.repeat(rng.standard_normal(episodes), steps)[:, None, None]
    return gs.Deterministic(torch.from_numpy(base * (noise + shift))), gs.Deterministic(torch.from_numpy(base))


def test_two_teams_on_the_same_observations() -> None:
    first, second = _behaviors(0.02)
    clusters = torch.arange(40).repeat_interleave(16)
    found = gs.compare(first, second, clusters=clusters)
    assert found.first == pytest.approx(float(gs.snd(first)))
    assert found.difference == pytest.approx(float(gs.snd(first) - gs.snd(second)))
    parts = [[gs.Deterministic(team.actions[k : k + 16]) for k in range(0, 640, 16)] for team in (first, second)]
    gaps = [float(gs.snd(one) - gs.snd(two)) for one, two in zip(*parts, strict=True)]
    student = stats.ttest_1samp(gaps, 0.0)
    np.testing.assert_allclose(found.interval, student.confidence_interval(0.95), rtol=1e-9)
    assert found.p_value == pytest.approx(student.pvalue, abs=0.02)
    assert (found.clusters, found.observations) == (40, 640)
    clear = found.interval[0] > 0 or found.interval[1] < 0
    assert f"], {'' if clear else 'not '}significant at 95%, p = " in str(found)
    assert gs.compare(second, first, clusters=clusters).difference == pytest.approx(-found.difference)


def test_a_paired_comparison_sees_what_two_intervals_do_not() -> None:
    first, second = _behaviors(0.05)
    clusters = torch.arange(40).repeat_interleave(16)
    found = gs.compare(first, second, clusters=clusters)
    ends = [gs.measure(team, clusters=clusters).population_interval for team in (first, second)]
    assert ends[0][0] < ends[1][1]  # they overlap
    assert found.interval[0] > 0
    assert found.p_value < 0.01


def test_teams_that_do_not_differ() -> None:
    team = _behaviors(0.0)[1]
    same = gs.compare(team, team)
    assert (same.difference, same.interval, same.p_value) == (0.0, (0.0, 0.0), 1.0)


def test_what_cannot_be_compared_is_refused() -> None:
    first, second = _behaviors(0.0)
    parts = [gs.Categorical(logits=torch.randn(640, 5, 4)) for _ in range(2)]
    rows = [gs.Deterministic(second.actions.view(*shape, 5, 2)) for shape in ((40, 16), (16, 40))]
    flat = torch.arange(640)
    assert gs.compare(rows[0], first, clusters=flat) == gs.compare(second, first, clusters=flat)  # one is flat
    for one, other, options in (
        (first, gs.Deterministic(second.actions[:100]), {}),
        (*rows, {}),
        (first, second, {"clusters": torch.zeros(640, dtype=torch.long)}),
        (first, parts[0], {}),
        (gs.Joint(parts, [1, 9]), gs.Joint(parts, [9, 1]), {}),  # of one name
        (first, None, {}),
    ):
        with pytest.raises(InputError):
            gs.compare(one, other, **options)  # type: ignore[arg-type]
