from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import nn

import graphsnd as gs
from graphsnd.behavior.behavior import embed
from graphsnd.estimation.source import as_source, largest_distance
from graphsnd.teams.answers import map_tensors
from tests.cases import Case, each


@each
def test_no_distance_at_any_observation_exceeds_the_bound(case: Case) -> None:
    behavior = case.behavior(observations=9)
    points = embed(behavior, case.distance)
    singly = (map_tensors(lambda given, _, o=o: given[0][o : o + 1], [behavior]) for o in range(9))
    largest = max(float(gs.pairwise(part, case.distance).max()) for part in singly)
    bound = largest_distance(points)
    assert largest <= bound <= 4 * largest + 1e-6


def test_identical_agents_have_bound_zero() -> None:
    assert largest_distance(embed(gs.Deterministic(torch.ones(3, 4, 2)), None)) == 0.0


def test_policies_that_have_not_answered_are_asked_for_a_bound() -> None:
    policies = [lambda seen: torch.distributions.Categorical(logits=seen) for _ in range(2)]
    assert as_source(policies, torch.zeros(5, 3), None, "auto").bound() == 1.0


ROWS = torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
TOLD = "so they act alike on the same observation. If the network is told which agent it is, use Team.shared."


def network(*, last: float | None = None) -> nn.Module:
    made = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    if last is not None:
        made[2].weight.data.zero_()
        made[2].bias.data.fill_(last)
    return made


class Agent:
    """With a method for a policy."""

    def __init__(self) -> None:
        self.network = network()

    def act(self, rows: torch.Tensor) -> torch.Tensor:
        return self.network(rows)


ONE, AGENT, TIE = network(), Agent(), gs.Graph(3, torch.tensor([[0, 1]]))
# Why agents are at distance 0, the team, and the options of measure.
ZEROS: list[tuple[str, Callable[[], Any], dict[str, Any]]] = [
    (f"all 5 agents share one network, {TOLD}", lambda: [ONE] * 5, {}),
    (f"all 50 agents share one network, {TOLD}", lambda: [ONE] * 50, {"design": "agents:4"}),
    (f"all 3 agents share one network, {TOLD}", lambda: [ONE] * 3, {"design": TIE}),
    (f"all 3 agents share one network, {TOLD}", lambda: dict.fromkeys("abc", AGENT.act), {}),
    (f"all 3 agents share one network, {TOLD}", lambda: [nn.Sequential(ONE) for _ in range(3)], {}),
    (f"all 5 agents have equal parameters, {TOLD}", lambda: [deepcopy(ONE) for _ in range(5)], {}),
    ("all 3 agents are told the same, so they act alike on the same observation.", lambda: gs.Team.shared(
        network(), 3, columns=[0, 1], identity=torch.ones(3, 2)), {}),
    ("all 3 agents act alike on these observations.", lambda: gs.Team.shared(lambda o: o[:, 2:], 3, columns=0,
        identity=torch.arange(3)), {}),
    ("all 3 agents act alike on these observations. If the network is told which agent it is, use Team.shared.",
        lambda: [lambda o, k=k: ONE(o) for k in range(3)], {}),
    ("every agent does the same on every observation: the action 0.5, 0.5. Look for dead or saturated outputs.",
        lambda: [network(last=0.5) for _ in range(5)], {}),
    ("every agent does the same on every observation. Look for dead or saturated outputs.",
        lambda: [network(last=0.5) for _ in range(5)], {"outputs": "logits"}),
    ("every action is 0 or ±1, the same for all agents. Look for saturated outputs.",
        lambda: [lambda o, k=k: torch.tanh(1e3 * k * o.sign()) for k in range(1, 4)], {}),
    ("every probability is 0 or 1, the same for all agents. Look for saturated outputs.",
        lambda: [lambda o, k=k: gs.Categorical(logits=1e6 * k * o.sign()[:, :1] * torch.tensor([1, -1]))
                 for k in range(1, 4)], {}),
    ("the agents of each pair that was measured act alike on these observations.",
        lambda: [ONE, ONE, network()], {"design": TIE}),
    ("no pair was measured.", lambda: [ONE, ONE, network()], {"design": gs.Graph(3, torch.zeros(0, 2).long())}),
]  # fmt: skip


@pytest.mark.parametrize(("why", "team", "options"), ZEROS)
def test_a_zero_says_why(why: str, team: Callable[[], Any], options: dict[str, Any]) -> None:
    estimate = gs.measure(team(), ROWS, **options)
    assert (estimate.value, estimate.zero) == (0, why)
    assert str(estimate).startswith(f"{estimate.target} 0: {why} (")
    assert estimate.to_dict()["zero"] == why
    assert why in gs.plots.report(estimate)


def test_behaviours_that_are_alike_say_so_and_others_say_nothing() -> None:
    alike = gs.Gaussian(ROWS[:, None, :2].expand(300, 3, 2), torch.ones(2))
    assert gs.measure(alike).zero == "all 3 agents act alike on these observations."
    assert gs.measure([network(), network()], ROWS).zero == ""
    recurrent = nn.GRU(4, 2)
    whole = gs.measure([recurrent] * 2, ROWS.view(10, 30, 4), whole=True, outputs="action, state")
    assert whole.zero == f"all 2 agents share one network, {TOLD}"
