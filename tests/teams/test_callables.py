from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.teams import CallablesTeam, JointTeam, as_team

from .conftest import FEATURES, Joint


class Counting:
    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.seen: list[int] = []

    def __call__(self, observations: torch.Tensor) -> torch.Tensor:
        self.seen.append(observations.shape[:-1].numel())
        return observations * self.factor


def test_asked_agents_are_called_once_on_what_was_asked(generator: torch.Generator) -> None:
    policies = [Counting(float(i)) for i in range(6)]
    observations = torch.randn(40, FEATURES, generator=generator)
    agents = torch.randint(1, 4, (40, 3), generator=generator)
    behavior = as_team(policies).partial(observations, agents)
    counts = torch.bincount(agents.flatten(), minlength=6).tolist()
    assert [policy.seen for policy in policies] == [[count] if count else [] for count in counts]
    torch.testing.assert_close(behavior.actions, observations.unsqueeze(1) * agents.unsqueeze(-1))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda o: o[:-1], ["(5, 1, '...')", "(4, 1, '...')"]),
        (lambda o: o.expand(-1, 2, -1), ["shape of actions", "(1, 4)", "(2, 4)"]),
        (lambda o: o[..., :2], ["shape of actions", "(1, 2)", "(1, 4)"]),
        (lambda o: (o, 1.0), ["one family"]),
        (lambda o: "left", ["str"]),
        (lambda o: o * torch.nan, ["diverged"]),
    ],
)
def test_bad_answers_to_requests(policy: object, words: list[str]) -> None:
    team = as_team([lambda o: o, policy])  # type: ignore[list-item]
    with pytest.raises(gs.InputError) as error:
        team.partial(torch.zeros(5, 4), torch.tensor([[0, 1]] * 5))
    assert all(word in str(error.value) for word in words), str(error.value)


def test_joint_team_learns_its_size(generator: torch.Generator) -> None:
    team = as_team(Joint(generator))
    with pytest.raises(gs.InputError, match=r"`agents`.*observation_features"):
        team.agents  # noqa: B018
    team.partial(torch.zeros(3, FEATURES).double(), torch.zeros(3, 2, dtype=torch.int64))
    assert team.agents == 7
    assert as_team(Joint(generator), observation_features=FEATURES).agents == 7


def test_joint_team_that_takes_one_observation_per_agent(generator: torch.Generator) -> None:
    weights = torch.randn(5, FEATURES, 2, generator=generator)
    team = as_team(lambda o: torch.einsum("...nf,nfa->...na", o, weights), agents=5)
    observations = torch.randn(6, FEATURES, generator=generator)
    agents = torch.randint(5, (6, 2), generator=generator)
    expected = torch.stack(
        [torch.stack([o @ weights[a] for a in row]) for o, row in zip(observations, agents, strict=True)]
    )
    torch.testing.assert_close(team.partial(observations, agents).actions, expected)  # type: ignore[attr-defined]


def test_as_team_passes_teams_through() -> None:
    team = as_team([torch.sin, torch.cos])
    assert type(team) is CallablesTeam
    assert as_team(team) is team
    assert as_team(team, agents=2) is team
    assert isinstance(as_team(torch.sin, agents=3), JointTeam)
    for policies in (team, [torch.sin, torch.cos]):
        with pytest.raises(gs.InputError, match=r"`agents`.*2.*3"):
            as_team(policies, agents=3)  # type: ignore[arg-type]
