from __future__ import annotations

import pytest
import torch
from torch import nn

import graphsnd as gs
from graphsnd.teams import as_team
from graphsnd.teams.joint import JointTeam
from graphsnd.teams.policies import PoliciesTeam

from .conftest import FEATURES, modules


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
    assert [policy.seen[-1:] for policy in policies] == [[count] if count else [] for count in counts]
    # Each is also asked about a few rows, three times, to see that it answers each by itself.
    assert [len(policy.seen) for policy in policies] == [0, 4, 4, 4, 0, 0]
    torch.testing.assert_close(behavior.actions, observations.unsqueeze(1) * agents.unsqueeze(-1))  # type: ignore[attr-defined]


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
    assert type(team) is PoliciesTeam
    assert as_team(team) is team
    assert as_team(team, agents=2) is team
    assert isinstance(as_team(torch.sin, agents=3), JointTeam)
    for policies in (team, [torch.sin, torch.cos], {"sine": torch.sin, "cosine": torch.cos}):
        with pytest.raises(gs.InputError, match=r"`agents`.*2.*3"):
            as_team(policies, agents=3)  # type: ignore[arg-type]


class Scaled(nn.Module):
    """The same parameters mean something else under another plain attribute."""

    def __init__(self, factor: object) -> None:
        super().__init__()
        self.factor = factor
        self.linear = nn.Linear(FEATURES, 2).double()

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.linear(observations) * self.factor


class Slotted(Scaled):
    """The attribute is in a slot, not in the dict of the module."""

    __slots__ = ("factor",)


class Tied(nn.Module):
    def __init__(self, *, tied: bool = True) -> None:
        super().__init__()
        self.one, self.two = (nn.Linear(FEATURES, FEATURES).double() for _ in range(2))
        if tied:
            self.two.weight = self.one.weight

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(observations))


def alone(team: PoliciesTeam, observations: torch.Tensor) -> torch.Tensor:
    return torch.stack([module(observations) for module in team.policies], dim=-2)


@pytest.fixture
def observations(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(11, FEATURES, generator=generator, dtype=torch.float64)


def test_equal_modules_are_batched(generator: torch.Generator, observations: torch.Tensor) -> None:
    team = PoliciesTeam(modules(generator))
    torch.testing.assert_close(team.evaluate(observations).actions, alone(team, observations))  # type: ignore[attr-defined]
    assert team.batched
    assert team.cost == 4 * 8 + 8 + 8 * 2 + 2


@pytest.mark.parametrize(
    ("first", "second", "batched"),
    [
        (Scaled(2.0), Scaled(2.0), True),
        (Scaled(2.0), Scaled(3.0), False),
        (Scaled(2.0), Scaled(2), False),
        (Scaled(torch.tensor(2.0)), Scaled(torch.tensor(3.0)), False),
        (nn.Sequential(nn.Linear(4, 2), nn.Tanh()).double(), nn.Sequential(nn.Linear(4, 2), nn.ReLU()).double(), False),
        (nn.Linear(4, 2).double(), nn.Linear(4, 2, bias=False).double(), False),
        (nn.Linear(4, 2).double(), Scaled(1.0), False),
        (Slotted(1.0), Slotted(2.0), False),
        (Tied(), Tied(), True),
        (Tied(), Tied(tied=False), False),
        (nn.LeakyReLU(0.1), nn.LeakyReLU(0.2), False),
        (nn.LeakyReLU(0.1), nn.LeakyReLU(0.1), False),  # nothing to batch over
    ],
)
def test_other_code_is_not_batched(
    first: nn.Module, second: nn.Module, batched: bool, observations: torch.Tensor
) -> None:
    team = PoliciesTeam([first, second])
    assert team.batched == batched
    torch.testing.assert_close(team.evaluate(observations).actions, alone(team, observations))  # type: ignore[attr-defined]


class Twice(nn.Module):
    """A module whose child has two names, as extractors of Stable-Baselines3 do."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 2).double()
        self.second = self.first

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.first(observations) + self.second(observations)


def test_a_module_with_two_names_keeps_its_parameters(observations: torch.Tensor) -> None:
    team = PoliciesTeam([Twice() for _ in range(3)])
    before = [[part.clone() for part in policy.parameters()] for policy in team.policies]
    evaluated = gs.evaluate(team, observations).actions  # type: ignore[attr-defined]
    torch.testing.assert_close(evaluated, torch.stack([policy(observations) for policy in team.policies], dim=-2))
    for policy, kept in zip(team.policies, before, strict=True):
        for part, old in zip(policy.parameters(), kept, strict=True):
            assert isinstance(part, nn.Parameter)
            assert torch.equal(part, old)


def test_hooks_are_not_lost(observations: torch.Tensor) -> None:
    pair = [nn.Linear(FEATURES, 2).double() for _ in range(2)]
    pair[1].register_forward_hook(lambda module, given, output: output + 100)
    team = PoliciesTeam(pair)
    assert not team.batched
    assert float(team.evaluate(observations).actions[:, 1].detach().min()) > 50  # type: ignore[attr-defined]


class Branching(nn.Module):
    """Control flow that looks at data, which vmap refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 2).double()

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        output = self.linear(observations)
        return output if output.abs().max() < 1e9 else torch.zeros_like(output)


def test_what_vmap_refuses_runs_in_a_loop(observations: torch.Tensor) -> None:
    for ask in ("evaluate", "partial"):
        team = PoliciesTeam([Branching() for _ in range(3)])
        assert team.batched
        everybody = torch.arange(3).expand(11, 3)
        behavior = team.evaluate(observations) if ask == "evaluate" else team.partial(observations, everybody)
        assert not team.batched
        torch.testing.assert_close(behavior.actions, alone(team, observations))  # type: ignore[attr-defined]


def test_dropout_is_off_and_modes_are_restored(observations: torch.Tensor) -> None:
    made = [nn.Sequential(nn.Linear(FEATURES, 2).double(), nn.Dropout()) for _ in range(3)]
    made[1].eval()
    team = PoliciesTeam(made)
    expected = torch.stack([module[0](observations) for module in made], -2)
    agents = torch.randint(3, (11, 2))
    asked = expected[torch.arange(11)[:, None], agents]
    for batched in (True, False):
        team.batched = batched
        torch.testing.assert_close(team.evaluate(observations).actions, expected)  # type: ignore[attr-defined]
        torch.testing.assert_close(team.partial(observations, agents).actions, asked)  # type: ignore[attr-defined]
    assert [module[1].training for module in made] == [True, False, True]
