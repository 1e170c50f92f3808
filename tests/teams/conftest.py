from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from graphsnd.teams import CategoricalHead, GaussianHead, StackedMLP, StackedTeam, TanhNormalHead, as_team
from graphsnd.teams.heads import Head
from graphsnd.teams.team import Team

FEATURES, N = 4, 7

HEADS: dict[str, Callable[[], Head]] = {
    "gaussian": lambda: GaussianHead(2, batch=(N,)),
    "gaussian, unsquashed": lambda: GaussianHead(2, batch=(N,), mean="identity"),
    "gaussian, network scale": lambda: GaussianHead(2, mean="identity", scale="network"),
    "tanh-normal": lambda: TanhNormalHead(2),
    "categorical": lambda: CategoricalHead(3),
}


def stacked(kind: str, generator: torch.Generator, *, activation: str = "tanh") -> StackedTeam:
    """A float64 team whose agents differ in everything, scales included."""
    head = HEADS[kind]().double()
    network = StackedMLP.create(
        (N,), (FEATURES, 8, 6, head.outputs), generator=generator, activation=activation, init="linear"
    ).double()
    for parameter in (*network.parameters(), *head.parameters()):
        parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator).double()
    return StackedTeam(network, head)


def modules(generator: torch.Generator) -> list[nn.Module]:
    made: list[nn.Module] = []
    for _ in range(N):
        module = nn.Sequential(nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 2)).double()
        for parameter in module.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator).double()
        made.append(module)
    return made


class Joint(nn.Module):
    """All agents at once, the agents axis added by the module."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(N, FEATURES, 2, generator=generator).double())

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.einsum("...f,nfa->...na", observations, self.weights)


def _mixed(generator: torch.Generator) -> Team:
    made = modules(generator)
    made[3] = nn.Linear(FEATURES, 2).double()
    return as_team(made)


def _joint(generator: torch.Generator) -> Team:
    team = as_team(Joint(generator))
    team.evaluate(torch.zeros(1, FEATURES).double())  # after which the number of agents is known
    return team


def _shared(generator: torch.Generator) -> Team:
    first, last = modules(generator)[:2]
    network = nn.Sequential(nn.Linear(FEATURES, 8), first[1], last[2]).double()
    return Team.shared(network, N, identity=torch.randn(N, 2, generator=generator).double(), columns=[1, 3])


TEAMS: dict[str, Callable[[torch.Generator], Team]] = {
    **{f"stacked {kind}": (lambda g, kind=kind: stacked(kind, g)) for kind in HEADS},
    "modules": lambda g: as_team(modules(g)),
    "modules of two architectures": _mixed,
    "callables": lambda g: as_team([lambda o, m=m: {"loc": m(o), "scale": m(o).exp()} for m in modules(g)]),
    "joint": _joint,
    "shared": _shared,
}


@pytest.fixture(params=list(TEAMS))
def team(request: pytest.FixtureRequest, generator: torch.Generator) -> Team:
    return TEAMS[request.param](generator)
