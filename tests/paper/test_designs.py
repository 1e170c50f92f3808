from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from benchmarks.designs import SamplingPlan, measure_errors
from paper import designs
from paper.designs import summarise
from paper.designs_figure import Data, Evaluations, Role, Row, TeamRows
from paper.shared.expected import Redrawn


def team(n: int = 20, observations: int = 200) -> gs.Gaussian:
    seeded = torch.Generator().manual_seed(0)
    loc = torch.randn(n, 2, generator=seeded) + 0.7 * torch.randn(observations, n, 2, generator=seeded)
    return gs.Gaussian(loc, torch.ones(2))


@pytest.mark.parametrize("n", [12, 50, 100, 500])
def test_redrawn_pairs_are_as_many_or_fewer(n: int) -> None:
    budget = 0.1 * math.comb(n, 2)
    behavior = team(n, 3)
    chosen = designs.choose_designs(gs.pairwise(behavior).double(), Redrawn.of(behavior))
    pairs = {role: plan.design.pairs(n) for role, plan, _ in chosen}
    assert pairs[Role.BERNOULLI] == pytest.approx(budget)
    for role in (Role.HORVITZ_THOMPSON, Role.UNIFORM, Role.REGULAR):
        assert pairs[role] == pytest.approx(budget, rel=0.2)
    for role in (Role.RING, Role.MATCHING, Role.AGENTS) if n >= 50 else (Role.AGENTS,):
        assert pairs[role] <= budget + 1


def test_the_cheapest_are_good_enough_and_no_cheaper_one_is() -> None:
    redrawn = Redrawn.of(team())
    wanted = redrawn.error(gs.designs.parse("matching:3")) * 1.001
    assert designs.find_fewest_pairs(redrawn, wanted).count == 3
    assert designs.find_fewest_pairs(redrawn, 1e-9).count == 10
    subset, times = designs.find_fewest_agents(redrawn, wanted)
    assert redrawn.error(subset, times) <= wanted
    spent = times * subset.count
    for size in range(2, 20):
        count = next(
            t for t in range(2, 201) if t == 200 or redrawn.error(gs.designs.parse(f"agents:{size}"), t) <= wanted
        )
        assert spent <= max(2, count) * size or redrawn.error(gs.designs.parse(f"agents:{size}"), count) > wanted


def test_measured_errors_are_the_exact_ones() -> None:
    behavior = team(12, 40)
    truth = float(gs.snd(behavior))
    redrawn = Redrawn.of(behavior)
    subset = gs.designs.parse("agents:4")
    chosen = [*designs.choose_designs(gs.pairwise(behavior).double(), redrawn)][:-2]
    contest = [(design, exact) for _, design, exact in chosen]
    contest.append((SamplingPlan(subset, max_observations=15), redrawn.error(subset, 15)))
    for design, exact in contest:
        errors = measure_errors(behavior, design, truth, draws=100, seed=0)
        low, high = errors.rmse_interval
        assert 0.85 * low < exact / truth < 1.15 * high, str(design)
        assert abs(errors.bias) < 4 * errors.bias_error, str(design)


def make_row(role: Role, **changes: float) -> Row:
    values = {"rmse": 0.01, "bias": 0.0, "bias_error": 0.001, "exact": 0.01, "distances": 0, "evaluations": 0} | changes
    costs = {"standard_error": 0.01, "pairs": 1.0, "observations": 10, "empty_draws": 0}
    return Row(name="", rmse_interval=(0.009, 0.011), role=role, **values, **costs)


def test_numbers() -> None:
    rows = (
        make_row(Role.BERNOULLI),
        make_row(Role.REGULAR, rmse=0.007),
        make_row(Role.RING, rmse=0.001, bias=0.002),
        make_row(Role.FEWEST_DISTANCES, distances=20),
        make_row(Role.FEWEST_EVALUATIONS, evaluations=12),
    )
    teams = (TeamRows("navigation", 0, 100, 10, 1.0, 200, rows),)
    times = Evaluations(100, {"answers": [3.0], "pairs": [1.0]}, [1.0, 0.98])
    numbers = {name: number.value for name, number in summarise(Data(teams, times)).items() if number}
    assert numbers["fresh_over_graph_rmse"] == pytest.approx(0.1)
    assert numbers["regular_over_bernoulli_rmse"] == pytest.approx(0.7)
    assert numbers["distances_needed"] == pytest.approx(20 / 49_500)
    assert numbers["evaluations_needed"] == pytest.approx(12 / 1000)
    assert numbers["largest_design_z"] == pytest.approx(2)
    assert numbers["evaluation_share"] == pytest.approx(0.75)
    assert numbers["evaluations_of_graph"] == pytest.approx(0.99)
