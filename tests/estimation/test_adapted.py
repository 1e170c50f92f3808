from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.designs import Adaptive, adapt


def roles_team(observations: int = 64, *, noise: float = 0.3) -> gs.Deterministic:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    drawn = torch.randn(observations, 15, 2, generator=generator, dtype=torch.float64)
    return gs.Deterministic(centres.repeat(5, 1) + noise * drawn)


RIGHT = (0, 1, 2) * 5
WRONG = (0,) * 5 + (1,) * 5 + (2,) * 5


@pytest.mark.parametrize("labels", [RIGHT, WRONG], ids=["right", "wrong"])
def test_values_errors_and_intervals_over_draws(labels: tuple[int, ...]) -> None:
    team = roles_team()
    exact, design = float(gs.snd(team)), Adaptive(30, labels)
    drawn = [gs.measure(team, design=design, seed=seed) for seed in range(150)]
    values = np.array([one.value for one in drawn])
    error = values.std(ddof=1)
    assert abs(values.mean() - exact) < 4 * error / math.sqrt(len(values))
    # The standard error is an estimate from 64 differences; over draws it is right in the mean square.
    assert np.sqrt(np.mean([one.standard_error**2 for one in drawn])) == pytest.approx(error, rel=0.2)
    covered = np.mean([one.asymptotic_interval[0] <= exact <= one.asymptotic_interval[1] for one in drawn])
    assert covered > 0.9
    assert all(one.interval[0] <= exact <= one.interval[1] for one in drawn)
    one = drawn[0]
    assert (one.target, one.design, one.pairs_used, one.guaranteed) == ("SND", "adaptive:30", 30, True)
    assert one.distances == 30 * (64 + 64)
    assert "Bernstein" in one.method


def test_right_groups_beat_wrong_ones_and_both_say_so() -> None:
    team = roles_team(1024)
    right, wrong = (gs.measure(team, design=Adaptive(30, labels)) for labels in (RIGHT, WRONG))
    assert right.standard_error < wrong.standard_error / 2
    assert right.interval[1] - right.interval[0] < wrong.interval[1] - wrong.interval[0]
    assert right.distances == 30 * (1024 + 128)


def test_policies_have_the_same_numbers_as_their_behaviour() -> None:
    torch.manual_seed(0)
    policies = [torch.nn.Linear(4, 2) for _ in range(12)]
    seen = torch.randn(300, 4)
    behavior = gs.evaluate(policies, seen)
    design = adapt(gs.pairwise(gs.evaluate(policies, seen[:20])), 24)
    on_team = gs.measure(policies, seen, design=design, seed=4)
    assert on_team.value == pytest.approx(gs.measure(behavior, design=design, seed=4).value, rel=1e-6)
    assert on_team.policy_evaluations == 12 * 300
    # Nothing bounds what a linear policy puts out.
    assert not on_team.guaranteed
    assert gs.measure(policies, seen, design=design, d_max=1e3).guaranteed


def test_all_pairs_are_exact_and_blocks_of_one_pair_are_allowed() -> None:
    team = roles_team(20)
    every = gs.measure(team, design=Adaptive(105, RIGHT), d_max=100.0)
    assert (every.value, *every.interval) == pytest.approx(3 * (float(gs.snd(team)),), rel=1e-12)
    few = gs.measure(team, design=Adaptive(6, RIGHT))
    assert few.interval[0] <= float(gs.snd(team)) <= few.interval[1]
    assert gs.measure(gs.Deterministic(torch.zeros(5, 15, 1)), design=Adaptive(6, RIGHT)).value == 0


def test_two_draws_that_agree_have_an_error() -> None:
    # One specialist of 20: five disjoint pairs meet it in half of the draws, and both draws agree in half of the cases.
    policies = [lambda seen, own=float(k == 0): torch.full((len(seen), 1), own) for k in range(20)]
    drawn = [gs.measure(policies, torch.zeros(1, 3), design=Adaptive(5, (0,) * 20), seed=seed) for seed in range(40)]
    met = [one for one in drawn if one.value > 0]
    assert len(met) > 10
    assert all(one.interval[0] <= 0.1 <= one.interval[1] for one in met)  # 19 of 190 pairs differ, by 1


def test_what_does_not_go_with_it_is_refused() -> None:
    team, design = roles_team(8), Adaptive(30, RIGHT)
    for options, name in (({"budget": "1e6"}, "budget"), ({"max_observations": 4}, "max_observations"),
                          ({"weighting": "horvitz-thompson"}, "weighting"), ({"d_max": 1e-3}, "d_max")):  # fmt: skip
        with pytest.raises(gs.InputError, match=f"`{name}`"):
            gs.measure(team, design=design, **options)
    with pytest.raises(gs.InputError, match="`design`"):
        gs.measure(gs.Deterministic(torch.randn(5, 4, 1)), design=design)
    assert gs.measure(team, design=design, rel_tol=1e-9).met is False
