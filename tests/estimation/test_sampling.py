from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import graphsnd as gs
from graphsnd.estimation import forecast, measuring
from graphsnd.estimation.sample import draw
from graphsnd.teams import StackedTeam
from tests.estimation.teams import REPETITIONS, at_least, behavior, evaluate_one, inside, on_and_off, policies


@pytest.mark.parametrize("design", [gs.designs.Agents(4), gs.designs.Ring(2)], ids=str)
def test_intervals_cover_under_optional_stopping(design: gs.designs.Design) -> None:
    team = behavior(observations=256)
    truth = float(gs.snd(team))
    found = [gs.measure(team, design=design, rel_tol=0.1, seed=seed) for seed in range(REPETITIONS)]
    assert at_least(sum(inside(truth, e.interval) for e in found), 0.95)
    assert all(e.met for e in found)
    assert all(abs(e.value - truth) <= 0.1 * truth for e in found if inside(truth, e.interval))
    assert not any(e.exact for e in found)


def test_asymptotic_stopping_covers_where_no_bound_is_known() -> None:
    observations = torch.randn(400, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    team = policies()
    truth = float(gs.snd(team.evaluate(observations)).detach())
    heads = [lambda o, i=i: evaluate_one(team, o, i) for i in range(team.agents)]
    found = []
    for seed in range(60):
        e = gs.measure(heads, observations, design=gs.designs.Agents(4), rel_tol=0.08, seed=seed)
        assert "asymptotic" in e.method
        assert e.met
        found.append(inside(truth, e.interval))
    assert sum(found) / 60 >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / 60)


def test_counts_what_it_spends() -> None:
    observations = torch.randn(20_000, 3, dtype=torch.float64)
    asked = []

    class Counting(StackedTeam):
        def _partial(self, inputs: torch.Tensor, agents: torch.Tensor) -> gs.Behavior:
            asked.append(agents.numel())
            return super()._partial(inputs, agents)

    team = policies()
    counting = Counting(team.network, team.head)
    e = gs.measure(counting, observations, design=gs.designs.Agents(3), rel_tol=0.1, seed=0)
    assert not e.exact
    assert e.policy_evaluations == sum(asked) - 4  # two agents on two observations tell the family of the answers
    assert e.distances == e.policy_evaluations  # three agents, three pairs


@pytest.mark.parametrize("limit", [{"distances": 900}, {"evaluations": 700}])
def test_a_budget_is_kept_and_spent(limit: dict[str, int]) -> None:
    observations = torch.randn(1000, 3, dtype=torch.float64)
    for tolerance in ({}, {"rel_tol": 1e-6}):
        e = gs.measure(policies(), observations, design=gs.designs.Agents(4), budget=gs.Budget(**limit), **tolerance)
        used = e.distances if "distances" in limit else e.policy_evaluations
        allowed = next(iter(limit.values()))
        assert 0.9 * allowed < used <= allowed
        assert e.met is (False if tolerance else None)
        assert ("not met" in str(e)) is bool(tolerance)


def test_a_budget_of_seconds_stops() -> None:
    team = behavior(observations=4000, n=50)
    e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=0.001), rel_tol=1e-9)
    assert e.met is False
    assert math.isfinite(e.standard_error)
    e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=0.05))
    assert e.met is None
    assert e.distances > 0


def test_a_budget_of_seconds_goes_where_the_guarantee_is_narrowest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    def charge(source: Any, template: Any, index: torch.Tensor, generator: torch.Generator) -> Any:
        nonlocal clock
        clock += 1e-7 * len(index) * (100 + template.m)
        return draw(source, template, index, generator)

    monkeypatch.setattr("graphsnd.estimation.sampling.draw", charge)
    for module in ("sampling", "measuring"):
        monkeypatch.setattr(f"graphsnd.estimation.{module}.perf_counter", lambda: clock)
    team = gs.Deterministic(torch.randn(400, 1500, 2, generator=torch.Generator().manual_seed(0)))
    truth, budget = float(gs.snd(team)), gs.Budget(seconds=0.05)
    chosen = gs.measure(team, budget=budget)
    assert "a pilot of 100 draws found" in chosen.why
    assert chosen.seconds < 0.06
    assert chosen.guaranteed
    assert chosen.interval[0] <= truth <= chosen.interval[1]
    ring = gs.measure(team, budget=budget, design="ring:4")
    width, wide = (e.interval[1] - e.interval[0] for e in (chosen, ring))
    assert width < wide / 20


@pytest.mark.parametrize("tolerance", [{}, {"rel_tol": 0.01}])
def test_policies_of_unknown_cost_are_timed_for_a_budget_of_seconds(
    tolerance: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = 0.0
    for module in ("sampling", "measuring", "source"):
        monkeypatch.setattr(f"graphsnd.estimation.{module}.perf_counter", lambda: clock)

    def policy(weights: torch.Tensor, pace: float) -> Any:
        def act(observations: torch.Tensor) -> torch.Tensor:
            nonlocal clock
            clock += pace * len(observations)
            return observations @ weights

        return act

    generator = torch.Generator().manual_seed(0)
    weights, observations = torch.randn(50, 4, 2, generator=generator), torch.randn(2000, 4, generator=generator)
    truth = float(gs.snd(gs.Deterministic(torch.einsum("of,nfa->ona", observations, weights))))
    slow = gs.measure([policy(own, 1e-4) for own in weights], observations, budget="2s", **tolerance)
    assert 0.5 < clock < 2.2  # everything takes ten seconds
    assert not slow.exact
    assert abs(slow.value - truth) < 5 * slow.standard_error
    clock = 0.0
    fast = gs.measure([policy(own, 1e-6) for own in weights], observations, budget="2s", **tolerance)
    assert fast.exact
    assert clock < 0.2


def test_goes_exact_when_the_tolerance_is_dearer_than_everything() -> None:
    e = gs.measure(behavior(), design=gs.designs.Agents(4), rel_tol=1e-9)
    assert e.exact
    assert e.met
    assert "as much work as all pairs" in e.why


def test_calls_back_at_every_look() -> None:
    seen: list[gs.Estimate] = []
    e = gs.measure(behavior(500), design=gs.designs.Agents(4), rel_tol=0.05, callback=seen.append)
    assert [s.looks for s in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].value == e.value
    assert [s.met for s in seen] == [False] * (len(seen) - 1) + [True]


@pytest.mark.parametrize("tolerance", [{}, {"rel_tol": 1e-9}])
def test_the_clock_stops_after_whole_passes(tolerance: dict[str, float]) -> None:
    """Observations of a pass that ended early would count twice, and nothing would cover that."""
    team = on_and_off()
    truth = float(gs.snd(team))
    for seconds in (0.001, 0.02, 0.1):
        e = gs.measure(team, design=gs.designs.Matching(), budget=gs.Budget(seconds=seconds), seed=1, **tolerance)
        assert e.interval[0] - 1e-12 <= truth <= e.interval[1] + 1e-12


def test_time_is_spent_in_whole_passes() -> None:
    from graphsnd.estimation.sampling import _fitting

    class Stream:
        draws = 100

        class task:
            class source:
                observations = 300

            @staticmethod
            def seconds_left() -> float:
                return Stream.left

    for left, draws in [(50.0, 50), (199.0, 199), (200.0, 200), (450.0, 200), (801.0, 800), (0.5, 0), (-1.0, 0)]:
        Stream.left = left
        assert _fitting(Stream(), 1.0) == draws


def test_looks_never_run_past_a_whole_pass() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    heads = [lambda o, i=i: points[o[..., 0].long(), i] for i in range(6)]
    observations = torch.arange(3.0, dtype=torch.float64).view(3, 1)
    truth = float(gs.snd(gs.Deterministic(points)))
    for seed in range(40):
        e = gs.measure(heads, observations, design=gs.designs.Agents(6), tol=0.3, seed=seed)
        if e.standard_error == 0:
            assert e.value == pytest.approx(truth)


def test_draws_that_are_all_alike_prove_nothing() -> None:
    rare = [lambda o, i=i: (o[..., :1] > 3.2) * float(i) for i in range(10)]
    observations = torch.randn(20_000, 2, generator=torch.Generator().manual_seed(3))
    e = gs.measure(rare, observations, rel_tol=0.01, design=gs.designs.Agents(3), budget=gs.Budget(evaluations=3000))
    assert not e.exact
    assert not e.guaranteed
    assert e.met is False


@pytest.mark.parametrize("distances", [12, 18, 40])
def test_small_budgets_hold_with_a_tolerance(distances: int) -> None:
    e = gs.measure(behavior(), design=gs.designs.Agents(4), rel_tol=0.01, budget=gs.Budget(distances=distances))
    assert e.distances <= distances
    assert e.met is False


def test_one_look_calls_back_too() -> None:
    seen: list[gs.Estimate] = []
    gs.measure(behavior(), design=gs.designs.Matching(), callback=seen.append)
    assert len(seen) == 1


def mean_difference(actions: torch.Tensor) -> float:
    """The mean of |x_i - x_j| over pairs and observations, from the order of the values ``[observations, n, 1]``."""
    n, ordered = actions.shape[1], actions.squeeze(-1).sort(dim=1).values
    weights = 2 * torch.arange(1, n + 1, dtype=torch.float64) - n - 1
    return float(((ordered @ weights) / math.comb(n, 2)).mean())


def many(spread: float) -> torch.Tensor:
    """20,000 agents whose actions are log-normal."""
    draws = torch.randn(100, 20_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return draws.mul(spread).exp()


def test_a_tolerance_on_many_agents_takes_few_distances_and_covers() -> None:
    actions = many(1.0)
    exact = mean_difference(actions)
    for seed in range(20):
        estimate = gs.measure(gs.Deterministic(actions), rel_tol=0.05, seed=seed)
        low, high = estimate.interval
        assert estimate.met
        assert estimate.guaranteed
        assert low <= exact <= high
        assert abs(estimate.value - exact) <= 0.05 * exact
        assert estimate.distances < 100 * 20_000  # a matching at every observation takes half of that


def test_what_a_pilot_missed_does_not_leave_the_tolerance_unmet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast, "DRAWS", 0)
    actions = many(2.0)
    exact = mean_difference(actions)
    for seed in (20, 21):  # with 21 the draws of all passes are too few, and all pairs are measured
        estimate = gs.measure(gs.Deterministic(actions), rel_tol=0.05, seed=seed)
        assert estimate.met
        assert estimate.value == pytest.approx(exact, rel=0.05)
    assert estimate.exact


@pytest.mark.parametrize("observations", [1, 3])
def test_a_tolerance_on_a_swarm_at_few_observations_takes_many_passes(
    observations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "measure_all_pairs", pytest.fail)  # 2e10 distances at each observation
    actions = torch.randn(observations, 200_000, 2, generator=torch.Generator().manual_seed(0))
    estimate = gs.measure(gs.Deterministic(actions), rel_tol=0.01)
    assert estimate.met
    assert estimate.guaranteed
    assert estimate.distances < 10**6
    low, high = estimate.interval
    assert low < math.sqrt(math.pi) < high  # of two standard normal points in the plane


def test_many_passes_over_few_observations_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, cat = [0], torch.cat

    def count(tensors: Any, *args: Any, **options: Any) -> torch.Tensor:
        joined = cat(tensors, *args, **options)
        copied[0] += joined.numel()
        return joined

    monkeypatch.setattr(torch, "cat", count)
    estimate = gs.measure(behavior(2, 200), design="pairs:1", budget="1e4")
    assert copied[0] < 20 * estimate.distances


@pytest.mark.parametrize("observations", [1, 4])
@pytest.mark.parametrize("tolerance", [{}, {"rel_tol": 1e-6}], ids=str)
def test_a_budget_of_distances_at_few_observations_buys_a_narrow_guarantee(
    observations: int, tolerance: dict[str, float]
) -> None:
    actions = torch.randn(observations, 200_000, 2, generator=torch.Generator().manual_seed(0))
    estimate = gs.measure(gs.Deterministic(actions), budget="1e5", **tolerance)
    assert 90_000 < estimate.distances <= 100_000
    assert estimate.guaranteed
    assert "draws found" in estimate.why
    low, high = estimate.interval
    assert low < math.sqrt(math.pi) < high  # of two standard normal points in the plane
    assert high - low < 0.03  # one draw of 25,000 pairs at each of 4 observations guarantees less than nothing, 19


@pytest.mark.parametrize("kind", ["log-normal", "specialist"])
@pytest.mark.parametrize("distances", [900, 5000])
def test_the_narrowest_interval_for_a_budget_covers(kind: str, distances: int) -> None:
    actions = torch.randn(6, 300, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    actions = actions.exp() if kind == "log-normal" else 0.1 * actions
    actions[:, 0] += 5 * (kind == "specialist")
    exact = mean_difference(actions)
    found = [gs.measure(gs.Deterministic(actions), budget=str(distances), seed=seed) for seed in range(200)]
    assert sum(inside(exact, e.interval) for e in found) >= 0.95 * 200
    assert all(e.distances <= distances for e in found)
    errors = [e.value - exact for e in found]
    typical = math.sqrt(sum(error**2 for error in errors) / 200)
    assert abs(sum(errors) / 200) < 4 * typical / math.sqrt(200)  # unbiased, although a pilot chose the design
    assert sum(e.standard_error for e in found) / 200 == pytest.approx(typical, rel=0.2)


def test_the_design_that_a_pilot_finds_surest_has_the_narrowest_interval() -> None:
    team, budget = behavior(16, 100), "2e4"
    found = gs.measure(team, budget=budget)
    for design in ("ring:24", "matching", "pairs:32", "agents:8", "agents:3"):
        other = gs.measure(team, budget=budget, design=design)
        assert found.interval[1] - found.interval[0] < 1.05 * (other.interval[1] - other.interval[0])


@pytest.mark.parametrize(("n", "each"), [(4, 4), (8, 24), (9, 30), (12, 60)])
def test_a_budget_for_most_pairs_of_a_small_team_leaves_a_narrow_interval(n: int, each: int) -> None:
    team = behavior(900, n)
    widths = []
    for options in ({}, {"design": gs.measure(behavior(1024, n), budget=gs.Budget(distances=1024 * each)).design}):
        low, high = gs.measure(team, budget=gs.Budget(distances=900 * each), **options).interval
        widths.append(high - low)
    assert widths[0] < 1.2 * widths[1]


def test_seconds_or_a_limit_of_observations_beside_distances_need_no_pilot() -> None:
    team = behavior(16, 100)
    for options in ({"budget": gs.Budget(distances=2000, seconds=100)}, {"budget": "2e3", "max_observations": 8}):
        estimate = gs.measure(team, **options)
        assert "pilot" not in estimate.why
        assert estimate.distances <= 2000
