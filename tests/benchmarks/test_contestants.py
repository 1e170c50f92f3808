"""What is timed computes what it says."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from scipy import stats

import graphsnd as gs
from benchmarks import calls, coverage, share, speed, worlds
from benchmarks.designs import SamplingPlan, compare_designs, measure_errors, random_observations, random_team
from benchmarks.timing import Clock, Options
from graphsnd.kernels import reference
from graphsnd.rl.worlds import parse_world

CPU = torch.device("cpu")
QUICK = Options(CPU, quick=True)


def test_contestants_compute_the_same_snd() -> None:
    points, clock = speed.example_points(9, 33, CPU, 0), Clock(CPU)
    truth = reference.pair_totals(points)
    loop, cdist = speed.pair_loop(points, clock, 100.0, 0), speed.cdist(points, clock, 100.0)
    fused, backward = speed.fused(points)
    assert loop.share == cdist.share == 1.0
    assert loop.call() == pytest.approx(float(truth.mean()), rel=1e-5)
    torch.testing.assert_close(cdist.call().double(), truth, rtol=1e-5, atol=0)
    torch.testing.assert_close(fused.call(), truth, rtol=1e-6, atol=0)
    assert backward.call()[0].shape == points.values.shape


def test_others_compute_the_same_snd_and_those_that_are_not_installed_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points, clock = speed.example_points(9, 33, CPU, 0), Clock(CPU)
    truth = reference.pair_totals(points)
    monkeypatch.setattr(torch, "compile", lambda function: function)  # takes ten seconds
    monkeypatch.setitem(sys.modules, "pykeops.torch", None)
    found, left_out = speed.peers(points, clock, 100.0, quick=False)
    assert [one.name for one in found] == ["cdist", "cdist_exact", "compiled"]
    assert list(left_out) == ["keops"]
    assert "pykeops" in left_out["keops"]
    for one in found:
        torch.testing.assert_close(one.call().double(), truth, rtol=1e-5, atol=0)  # type: ignore[attr-defined]
    assert [one.name for one in speed.peers(points, clock, 100.0, quick=True)[0]] == ["cdist", "cdist_exact"]


def test_a_small_budget_times_a_part_and_says_which() -> None:
    loop = speed.pair_loop(speed.example_points(60, 256, CPU, 0), Clock(CPU), 1e-3, 0)
    assert 0 < loop.share < 1
    assert loop.notes["pairs_timed"] == pytest.approx(loop.share * 60 * 59 / 2)


def test_the_kept_graph_stays_and_the_fresh_one_changes() -> None:
    kept, fresh = speed.sparse(speed.example_points(40, 8, CPU, 0), 0)
    assert torch.equal(kept.call(), kept.call())
    assert not torch.equal(fresh.call(), fresh.call())


def test_calls_are_those_of_snd_and_its_gradient() -> None:
    case = calls.Case(6, 3, correlated=True)
    behavior = calls.example(case, 16, CPU, 0)
    assert float(calls.calls(case, behavior)()) == float(gs.snd(behavior)) > 0  # type: ignore[arg-type]
    case = calls.Case(6, gradient=True)
    behavior = calls.example(case, 16, CPU, 0)
    assert isinstance(behavior, gs.Gaussian)
    gs.snd(behavior).backward()
    timed: Any = calls.calls(case, behavior)()
    assert torch.equal(timed[0], behavior.loc.grad)
    assert torch.equal(timed[1], behavior.scale.grad)


@pytest.mark.parametrize(("gaps", "expected"), [
    ((2, 1.5), None), ((0.5, 0.1), 10), ((10, 0.1), 10**1.5), ((2, 0.5, 2, 0.5), 10**3.5),
])  # fmt: skip
def test_the_crossover_lies_between_sizes_by_logarithms(gaps: tuple[float, ...], expected: float | None) -> None:
    rows = [
        {"n": 10 ** (k + 1), "contestants": {"exact": {"min_s": 1.0}, "ring:4": {"min_s": gap}}}
        for k, gap in enumerate(gaps)
    ]
    assert share.crossing({"crossover": rows}, "ring:4") == (None if expected is None else pytest.approx(expected))


def test_redrawn_pairs_are_far_nearer_than_one_graph() -> None:
    team, observations = random_team(40, 0, CPU), random_observations(512, 1, CPU)
    row = compare_designs(team, observations, QUICK, label="random", draws=60)
    for one in row["designs"]:
        assert one["rmse"] >= abs(one["bias"])
        assert one["distances"] == one["pairs"] * one["observations"]
    assert next(one for one in row["designs"] if one["name"] == "ring:2")["rmse_gain"] > 4


def test_draws_without_an_edge_are_counted() -> None:
    seeded = torch.Generator().manual_seed(0)
    loc = torch.randn(4, 2, generator=seeded) + 0.7 * torch.randn(10, 4, 2, generator=seeded)
    behavior = gs.Gaussian(loc, torch.ones(2))
    plan = SamplingPlan(gs.designs.parse("bernoulli:0.1"))
    assert 0 < measure_errors(behavior, plan, float(gs.snd(behavior)), draws=40, seed=0).empty_draws < 40


def test_the_bound_on_the_coverage_is_the_binomial_one() -> None:
    row = coverage._count([(0.0, 1.0)] * 90 + [(1.0, 2.0)] * 10, 0.5)
    assert (row["covered"], row["given"]) == (0.9, 1.0)
    assert stats.binom.cdf(90, 100, row["at_most"]) == pytest.approx(0.01)
    assert coverage._count([(0.0, 1.0), None, None, None], 0.5)["given"] == 0.25
    assert coverage._count([None], 0.5)["covered"] is None


def test_simulators_are_timed_where_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mpe2")
    row = worlds.compare(worlds.QUICK[2], QUICK)
    assert row["contestants"]["mpe2"]["share_timed"] == worlds.SAMPLE / 8
    monkeypatch.setattr(worlds, "find_spec", lambda name: None)
    assert list(worlds.compare(worlds.QUICK[0], QUICK)["contestants"]) == [worlds.OURS]


def test_moments_are_those_of_a_rollout() -> None:
    moments = worlds._moments(parse_world("navigation", 3, 2), torch.Generator().manual_seed(0))
    assert [int(state.steps[0]) for state, _ in moments] == [k * worlds.APART for k in range(worlds.MOMENTS)]
