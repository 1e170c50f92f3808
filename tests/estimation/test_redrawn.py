from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

import graphsnd as gs
from graphsnd.estimation import measuring
from graphsnd.estimation.redrawn import Redrawn, Tolerance
from graphsnd.teams import StackedTeam
from tests.estimation.teams import REPETITIONS, at_least, behavior, evaluate_one, inside, policies


@pytest.mark.parametrize("design", ["agents:4", "ring:2"])
def test_intervals_cover_under_optional_stopping(design: str) -> None:
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
        e = gs.measure(heads, observations, design="agents:4", rel_tol=0.08, seed=seed)
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
    e = gs.measure(counting, observations, design="agents:3", rel_tol=0.1, seed=0)
    assert not e.exact
    assert e.policy_evaluations == sum(asked) - 4  # two agents on two observations tell the family of the answers
    assert e.distances == e.policy_evaluations  # three agents, three pairs


def test_goes_exact_when_the_tolerance_is_dearer_than_everything() -> None:
    e = gs.measure(behavior(), design="agents:4", rel_tol=1e-9)
    assert e.exact
    assert e.met
    assert "as much work as all pairs" in e.why


def test_looks_never_run_past_a_whole_pass() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(3, 6, 2, generator=generator, dtype=torch.float64)
    heads = [lambda o, i=i: points[o[..., 0].long(), i] for i in range(6)]
    observations = torch.arange(3.0, dtype=torch.float64).view(3, 1)
    truth = float(gs.snd(gs.Deterministic(points)))
    for seed in range(40):
        e = gs.measure(heads, observations, design="agents:6", tol=0.3, seed=seed)
        if e.standard_error == 0:
            assert e.value == pytest.approx(truth)


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


def test_draws_that_are_all_alike_prove_nothing() -> None:
    estimate = gs.measure(gs.Deterministic(torch.zeros(10, 5, 1)), design="agents:2")
    alike = replace(estimate, guaranteed=False, observations=5)
    assert Tolerance(relative=0.01).met(estimate)
    assert not Tolerance(relative=0.01).met(alike)


def test_the_failure_probabilities_of_all_looks_sum_to_the_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent, report = [], Redrawn._report

    def note(self: Redrawn, draws: Any, delta: float) -> gs.Estimate:
        spent.append(delta)
        return report(self, draws, delta)

    monkeypatch.setattr(Redrawn, "_report", note)
    estimate = gs.measure(behavior(observations=64), design="agents:4", rel_tol=0.03, confidence=0.9)
    assert len(spent) > 2
    assert spent == pytest.approx([0.1 / (k * (k + 1)) for k in range(1, len(spent) + 1)])
    assert sum(spent) < 0.1
    assert estimate.met
