"""Comparisons against scipy, an independent bootstrap, and pairs that do not differ."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from graphsnd import InputError
from graphsnd.analysis.comparing import _win_rate


def _two(n: int = 9, m: int = 9) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.lognormal(size=n), rng.lognormal(0.5, size=m)


def test_point_estimates_are_scipys() -> None:
    a, b = _two(9, 7)
    found = gs.compare_runs({"a": a, "b": b}, resamples=999)
    assert found.scores["a"].value == pytest.approx(stats.trim_mean(a, 0.25), abs=1e-12)
    assert found.differences["b"].value == pytest.approx(stats.trim_mean(b, 0.25) - stats.trim_mean(a, 0.25), abs=1e-12)
    wins = stats.mannwhitneyu(b, a).statistic / (len(a) * len(b))
    assert found.differences["b"].probability == pytest.approx(wins, abs=1e-12)
    exact = stats.permutation_test((b, a), lambda x, y: x.mean() - y.mean(), n_resamples=np.inf)
    many = gs.compare_runs({"a": a, "b": b}, resamples=20_000).differences["b"]
    assert many.p_value == pytest.approx(exact.pvalue, abs=1e-9)  # 11,440 permutations: all of them
    assert many.resolution == pytest.approx(2 / math.comb(16, 7))


def test_intervals_agree_with_an_independent_bootstrap() -> None:
    a, b = _two(10, 10)
    c, d = (values[:6] * 3 for values in _two(10, 10))
    found = gs.compare_runs({"a": [a, c], "b": [b, d]}, seed=1)
    rng, scores, gaps, wins = np.random.default_rng(7), [], [], []
    for _ in range(9999):
        a2, b2, c2, d2 = (rng.choice(values, len(values)) for values in (a, b, c, d))
        first, second = (np.sort(np.concatenate(part)) for part in ((a2, c2), (b2, d2)))
        scores.append(first[4:12].mean())  # of 16 the middle eight
        gaps.append(second[4:12].mean() - scores[-1])
        pairs = [(b2[:, None] > a2) + 0.5 * (b2[:, None] == a2), (d2[:, None] > c2) + 0.5 * (d2[:, None] == c2)]
        wins.append(np.mean([part.mean() for part in pairs]))
    difference = found.differences["b"]
    for ours, theirs in ((found.scores["a"].interval, scores), (difference.interval, gaps)):
        spread = np.std(theirs)
        for end, level in zip(ours or (), (0.025, 0.975), strict=True):
            # Two Monte-Carlo quantiles of 9,999 draws each differ by about 0.04 standard deviations.
            assert abs(end - np.quantile(theirs, level)) < 0.12 * spread
    np.testing.assert_allclose(difference.probability_interval, np.quantile(wins, [0.025, 0.975]), atol=0.02)


def test_paired_runs_are_compared_seed_by_seed() -> None:
    seeds = 10.0 * np.arange(8)
    rng = np.random.default_rng(3)
    a, b = seeds + 0.1 * rng.standard_normal(8), seeds + 1 + 0.1 * rng.standard_normal(8)
    apart, paired = (gs.compare_runs({"a": a, "b": b}, paired=one).differences["b"] for one in (False, True))
    assert paired.value == pytest.approx(stats.trim_mean(b - a, 0.25), abs=1e-12)
    assert paired.p_value == pytest.approx(2 / 2**8)
    assert paired.verdict.startswith("shown")
    assert apart.verdict.startswith("not shown")


def test_three_seeds_show_nothing_and_it_says_so() -> None:
    difference = gs.compare_runs({"a": [1.0, 2.0, 3.0], "b": [101.0, 102.0, 103.0]}).differences["b"]
    assert difference.p_value == pytest.approx(0.1)
    assert "too few seeds" in difference.verdict
    assert "0.1" in difference.verdict
    alone = gs.compare_runs({"a": [1.0], "b": [2.0]})
    assert alone.scores["a"].interval is None
    assert alone.differences["b"].resolution == 1


def test_a_comparison_prints_what_it_shows() -> None:
    few = str(gs.compare_runs({"ours": [0.1, 0.2, 0.3], "theirs": [0.2, 0.3, 0.4]})).splitlines()
    assert few[1].startswith("ours: 0.2 in [")
    assert few[2].endswith(" from ours: too few seeds: p is 0.1 at best")
    assert "; +0.1 in [" in few[2]
    single = str(gs.compare_runs({"ours": [1.0], "theirs": [3.0]})).splitlines()
    assert single[2].startswith("theirs: 3, 1 run; +2 from ours")


def test_several_comparisons_cost() -> None:
    a, b = _two(8, 8)
    one, two = gs.compare_runs({"a": a, "b": b}), gs.compare_runs({"a": a, "b": b, "c": a + 1})
    assert two.differences["b"].p_value == pytest.approx(min(1, 2 * one.differences["b"].p_value), rel=0.05)


@pytest.mark.slow
def test_identical_algorithms_are_called_different_in_no_more_than_a_twentieth() -> None:
    rng = np.random.default_rng(0)
    called = {False: 0, True: 0}
    for _ in range(1000):
        pair = {"a": rng.lognormal(size=8), "b": rng.lognormal(size=8)}
        for paired in called:
            found = gs.compare_runs(pair, paired=paired, resamples=199).differences["b"]
            called[paired] += found.p_value <= 0.05
    # 5% of 1,000 is 50, with a standard deviation of 7.
    assert all(count <= 50 + 3 * 7 for count in called.values()), called


def test_win_rate_broadcasts() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 4, (5, 6)), rng.integers(0, 4, (5, 4))
    loop = [np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b]) for a, b in zip(one, two, strict=True)]
    np.testing.assert_allclose(_win_rate(one, two), loop)


@pytest.mark.parametrize("runs", [{}, {"a": []}, {"a": [1.0, math.nan]}, {"a": ["x"]}, {"a": [[1.0], []]}])
def test_bad_runs_are_refused(runs: dict) -> None:
    with pytest.raises(InputError):
        gs.compare_runs(runs)


@pytest.mark.parametrize("runs", ["ippo", None, [1.0, 2.0], {}])
def test_what_is_no_dict_of_runs_is_refused(runs: object) -> None:
    with pytest.raises(InputError, match="`runs` to be a dict"):
        gs.compare_runs(runs)  # type: ignore[arg-type]


def test_unequal_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="same tasks"):
        gs.compare_runs({"a": [1.0, 2.0], "b": [[1.0], [2.0]]})
    with pytest.raises(InputError, match="same seeds"):
        gs.compare_runs({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]}, paired=True)


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
    assert str(found).startswith("SND ")
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
    with pytest.raises(InputError, match="same 640 observations"):
        gs.compare(first, gs.Deterministic(second.actions[:100]))
    rows = [gs.Deterministic(second.actions.view(*shape, 5, 2)) for shape in ((40, 16), (16, 40))]
    assert gs.compare(rows[0], first) == gs.compare(second, first)  # one is flat
    with pytest.raises(InputError, match=r"`second` laid out as the observations, \(40, 16\), got \(16, 40\)"):
        gs.compare(*rows)
    with pytest.raises(InputError, match="at least 2 different"):
        gs.compare(first, second, clusters=torch.zeros(640, dtype=torch.long))
    with pytest.raises(InputError, match="distance"):
        gs.compare(first, gs.Categorical(probs=torch.full((640, 5, 2), 0.5, dtype=torch.float64)))


def test_joint_teams_of_other_weights_are_not_compared() -> None:
    parts = [gs.Categorical(logits=torch.randn(32, 3, 4)) for _ in range(2)]
    one, other = (gs.Joint(parts, weights) for weights in ([1, 9], [9, 1]))
    assert one.distance.name == other.distance.name
    assert gs.compare(one, gs.Joint(parts, [1, 9])).difference == 0
    with pytest.raises(InputError, match=r"`second` with the distance .*0\.1, 0\.9.* got .*0\.9, 0\.1"):
        gs.compare(one, other)
