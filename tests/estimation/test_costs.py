from __future__ import annotations

import math

import pytest
import torch

import graphsnd as gs
from graphsnd.estimation.costs import MOST_DISTANCES, Cost, choose, complete_seconds
from graphsnd.estimation.source import BehaviorSource, Workload
from tests.estimation.teams import behavior, policies


def test_a_budget_of_distances_chooses_the_design() -> None:
    team = behavior(observations=1024, n=20)
    for distances, name in [(1024 * 45, "ring:4"), (1024 * 12, "matching"), (1024 * 7, "pairs:7"), (60, "pairs:8")]:
        e = gs.measure(team, budget=gs.Budget(distances=distances))
        assert name == e.design
        assert e.distances <= distances
    assert gs.measure(team, budget=gs.Budget(distances=1024 * 190)).exact


def test_a_budget_for_everything_buys_everything() -> None:
    observations = torch.randn(60, 3, dtype=torch.float64)
    asked = gs.measure(policies(), observations, design=gs.designs.Agents(4), budget=gs.Budget(distances=10**12))
    assert asked.distances <= 60 * 66
    source = gs.estimation.source.BehaviorSource(behavior(), None)
    design, _ = choose(source, gs.Budget(distances=64 * 66), tolerance=False)
    assert design == gs.designs.Complete()


def test_half_of_the_seconds_must_be_enough_for_all_pairs() -> None:
    source = Workload(1000, 10**6, 2, 0.0, torch.device("cpu"))
    seconds = complete_seconds(source)
    assert seconds > 1
    for share, kind in ((2.1, gs.designs.Complete), (1.9, gs.designs.Agents)):
        assert isinstance(choose(source, gs.Budget(seconds=share * seconds), tolerance=False)[0], kind)
    slow = Workload(1000, 10**6, 2, 1e4, torch.device("cpu"))  # perhaps: the cost of policies may be a guess
    assert isinstance(choose(slow, gs.Budget(seconds=1e9), tolerance=False)[0], gs.designs.Agents)


def slow_teams() -> list[tuple[gs.Behavior, gs.Distance | None]]:
    draw = torch.Generator().manual_seed(0)
    wide = torch.randn(24, 20, 4, 4, generator=draw)
    return [
        (gs.Samples(torch.randn(24, 20, 32, 2, generator=draw)), gs.Energy()),
        (gs.Samples(torch.randn(24, 20, 32, 2, generator=draw)), gs.Sliced(debias=True)),
        (gs.MultivariateGaussian(torch.zeros(24, 20, 4), wide @ wide.mT), None),
        (gs.Gaussian(torch.randn(24, 20, 4, generator=draw), torch.ones(4)), gs.Hellinger()),
    ]


@pytest.mark.parametrize(("team", "distance"), slow_teams(), ids=["energy", "cross", "bures", "hellinger"])
def test_distances_without_a_compiled_kernel_cost_what_they_take(team: gs.Behavior, distance: gs.Distance) -> None:
    source = BehaviorSource(team, distance)
    fast = Workload(source.agents, 10**9, source.features, 0.0, source.device)
    # As many observations as take Euclidean distances a tenth of a second: 2 s or more of these.
    source.observations = int(10**8 / complete_seconds(fast))
    fast.observations = source.observations
    for budget, tolerance in ((gs.Budget(seconds=1.0), False), (None, True)):
        assert choose(fast, budget, tolerance=tolerance)[0] == gs.designs.Complete()
        assert isinstance(choose(source, budget, tolerance=tolerance)[0], gs.designs.Agents)
    # What a draw costs beside its distances stays what it was.
    one, ten = (Cost.of(s, gs.designs.Pairs(1), 1).work for s in (fast, source))
    assert ten - one == pytest.approx(2 * source.features * (source.slowness - 1))


def test_all_agents_of_a_joint_action_cost_the_sum_of_its_parts() -> None:
    (samples, energy), _, _, (gaussian, hellinger) = slow_teams()
    joint = gs.Joint([samples, gaussian], weights=[1, 1], distance=[energy, hellinger])
    whole, *parts = (BehaviorSource(*one) for one in ((joint, None), (samples, energy), (gaussian, hellinger)))
    assert complete_seconds(whole) == pytest.approx(sum(map(complete_seconds, parts)))


@pytest.mark.parametrize(
    ("agents", "observations", "evaluations"), [(5000, 256, 10**6), (1000, 64, 50_000), (90, 9, 700)]
)
def test_a_budget_of_evaluations_is_not_spent_on_distances(agents: int, observations: int, evaluations: int) -> None:
    """3,906 of 5,000 agents, all that the budget allows, have two billion pairs at 256 observations."""
    source = Workload(agents, observations, 4, 1e3, torch.device("cpu"))
    design, _ = choose(source, budget := gs.Budget(evaluations=evaluations), tolerance=False)
    draws = budget.draws(source, design)
    assert draws >= observations
    spent = Cost.of(source, design, draws - draws % observations)  # whole passes
    assert 0.75 * evaluations < spent.evaluations <= evaluations
    assert spent.distances <= 1.1 * MOST_DISTANCES


def test_budgets_may_be_written_as_floats() -> None:
    assert gs.Budget(distances=1e5).distances == 100_000
    e = gs.measure(behavior(1000, 20), design=gs.designs.Agents(4), budget=gs.Budget(distances=1e3))
    assert e.distances <= 1000
    with pytest.raises(gs.InputError, match="distances"):
        gs.Budget(distances=math.inf)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1e6", gs.Budget(distances=10**6)), (" 200E ", gs.Budget(evaluations=200)), ("2.5s", gs.Budget(seconds=2.5))],
)
def test_budgets_are_read_from_text(text: str, expected: gs.Budget) -> None:
    assert gs.Budget.parse(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-3", "0s", "inf", "5m"])
def test_what_is_no_budget_names_what_the_caller_says(text: str) -> None:
    with pytest.raises(gs.InputError, match="`--budget`"):
        gs.Budget.parse(text, "--budget")


def test_costs_add_up() -> None:
    source = BehaviorSource(behavior(), None)
    one = Cost.of(source, gs.designs.Agents(4), 10)
    assert (one.observations, one.distances, one.evaluations) == (10, 60, 0)  # all agents have been evaluated
    assert (one + one).distances == 120
    assert (one + Cost()) == one
