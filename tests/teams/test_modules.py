from __future__ import annotations

import pytest
import torch
from torch import distributions as D
from torch import nn

import graphsnd as gs
from graphsnd.teams import ModulesTeam
from graphsnd.teams import modules as code

from .conftest import FEATURES, modules


class Scaled(nn.Module):
    """The same parameters mean something else under another plain attribute."""

    def __init__(self, factor: object) -> None:
        super().__init__()
        self.factor = factor
        self.linear = nn.Linear(FEATURES, 2).double()

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.linear(observations) * self.factor


def alone(team: ModulesTeam, observations: torch.Tensor) -> torch.Tensor:
    return torch.stack([module(observations) for module in team.modules], dim=-2)


@pytest.fixture
def observations(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(11, FEATURES, generator=generator, dtype=torch.float64)


def test_equal_modules_are_batched(generator: torch.Generator, observations: torch.Tensor) -> None:
    team = ModulesTeam(modules(generator))
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
        (nn.LeakyReLU(0.1), nn.LeakyReLU(0.2), False),
        (nn.LeakyReLU(0.1), nn.LeakyReLU(0.1), False),  # nothing to batch over
    ],
)
def test_other_code_is_not_batched(
    first: nn.Module, second: nn.Module, batched: bool, observations: torch.Tensor
) -> None:
    team = ModulesTeam([first, second])
    assert team.batched == batched
    torch.testing.assert_close(team.evaluate(observations).actions, alone(team, observations))  # type: ignore[attr-defined]


def test_hooks_are_not_lost(observations: torch.Tensor) -> None:
    pair = [nn.Linear(FEATURES, 2).double() for _ in range(2)]
    pair[1].register_forward_hook(lambda module, given, output: output + 100)
    team = ModulesTeam(pair)
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
        team = ModulesTeam([Branching() for _ in range(3)])
        assert team.batched
        everybody = torch.arange(3).expand(11, 3)
        behavior = team.evaluate(observations) if ask == "evaluate" else team.partial(observations, everybody)
        assert not team.batched
        torch.testing.assert_close(behavior.actions, alone(team, observations))  # type: ignore[attr-defined]


class Normal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, 2).double()

    def forward(self, observations: torch.Tensor) -> D.Distribution:
        return D.Normal(self.linear(observations), 0.5)


def test_modules_that_return_distributions(observations: torch.Tensor) -> None:
    team = ModulesTeam([Normal() for _ in range(3)])
    behavior = team.evaluate(observations)
    assert isinstance(behavior, gs.Gaussian)
    torch.testing.assert_close(behavior.loc, torch.stack([m(observations).mean for m in team.modules], -2))


def test_dropout_runs_in_a_loop(observations: torch.Tensor) -> None:
    team = ModulesTeam([nn.Sequential(nn.Linear(FEATURES, 2).double(), nn.Dropout()) for _ in range(3)])
    with torch.random.fork_rng():
        team.evaluate(observations)
    assert not team.batched


def test_wrong_observations_do_not_end_batching(generator: torch.Generator, observations: torch.Tensor) -> None:
    team = ModulesTeam(modules(generator))
    with pytest.raises(RuntimeError):
        team.evaluate(torch.zeros(3, FEATURES + 1).double())
    assert team.batched


def test_training_shows(generator: torch.Generator, observations: torch.Tensor) -> None:
    team = ModulesTeam(modules(generator))
    before = team.evaluate(observations).actions.detach()  # type: ignore[attr-defined]
    team.modules[2][2].bias.data += 1  # type: ignore[index, operator, union-attr]
    after = team.evaluate(observations).actions.detach()  # type: ignore[attr-defined]
    torch.testing.assert_close((after - before)[:, 2], torch.ones(11, 2).double())


def test_only_asked_modules_are_read(
    generator: torch.Generator, observations: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = ModulesTeam(modules(generator))
    read = []
    original = code._tensors
    monkeypatch.setattr(code, "_tensors", lambda module: (read.append(team.modules.index(module)), original(module))[1])
    team.partial(observations, torch.tensor([[4, 1]]).expand(11, 2))
    assert team.batched
    assert sorted(read) == [1, 4]


def test_diverged_module_is_named(generator: torch.Generator, observations: torch.Tensor) -> None:
    team = ModulesTeam(modules(generator))
    team.modules[2][0].weight.data.fill_(torch.nan)  # type: ignore[index, operator, union-attr]
    with pytest.raises(gs.InputError, match="diverged"):
        team.evaluate(observations)
    with pytest.raises(gs.InputError, match="diverged"):
        team.partial(observations, torch.full((11, 1), 2))
