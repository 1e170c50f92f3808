"""Policies that read several arrays: the numbers of a loop that gives each policy one dict at a time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import graphsnd as gs
from graphsnd.teams import as_team
from graphsnd.teams.policies import PoliciesTeam

N = 20
DIMS = {"camera": 3, "kind": 0, "speed": 1}


class Looking(nn.Module):
    """Camera [n, 3, 5, 4] of uint8, kind [n] of int64, speed [n, 2] of float32."""

    def __init__(self) -> None:
        super().__init__()
        self.look, self.embed, self.head = nn.Conv2d(3, 2, 3), nn.Embedding(4, 3), nn.Linear(2 * 3 * 2 + 3 + 2, 2)

    def forward(self, seen: dict[str, Tensor]) -> Tensor:
        pixels = seen["camera"].float() / 255
        looked = self.look(pixels.flatten(0, -4)).unflatten(0, pixels.shape[:-3]).flatten(-3)
        return self.head(torch.cat([looked, self.embed(seen["kind"]), seen["speed"]], -1))


def scenes(*lead: int) -> dict[str, Tensor]:
    draws = torch.Generator().manual_seed(0)
    return {
        "camera": torch.randint(256, (*lead, 3, 5, 4), generator=draws, dtype=torch.uint8),
        "kind": torch.randint(4, lead, generator=draws),
        "speed": torch.randn(*lead, 2, generator=draws),
    }


def looking() -> list[Looking]:
    torch.manual_seed(0)
    return [Looking() for _ in range(N)]


def by_hand(policies: list[Any], rows: dict[str, Tensor]) -> float:
    """The mean distance over pairs and observations, in float64; one observation, one policy at a time."""
    total, count = 0.0, len(rows["kind"])
    for at in range(count):
        row = {key: part[at : at + 1] for key, part in rows.items()}
        answers = [policy(row)[0].detach().double() for policy in policies]
        pairs = [float((one - other).norm()) for one, other in combinations(answers, 2)]
        total += sum(pairs) / len(pairs) / count
    return total


@pytest.mark.parametrize("functions", [False, True])
def test_policies_are_given_what_they_read(functions: bool) -> None:
    modules, rows = looking(), scenes(30)
    policies: Any = [module.forward for module in modules] if functions else modules
    expected = by_hand(modules, rows)
    team = as_team(policies, feature_dims=DIMS)
    assert type(team) is PoliciesTeam
    arrays = {key: part.numpy() for key, part in rows.items()}
    pooled = {key: part.unflatten(0, (5, 6)) for key, part in rows.items()}
    for given in (rows, arrays, pooled):
        assert gs.measure(team, given).value == pytest.approx(expected, rel=1e-5)
    agents = torch.randint(N, (30, 3), generator=torch.Generator().manual_seed(1))
    some, everything = team.partial(team.join_arrays(rows), agents), team.evaluate(rows)  # type: ignore[arg-type]
    torch.testing.assert_close(some.actions, everything.actions[torch.arange(30)[:, None], agents])  # type: ignore[attr-defined]
    behavior = gs.evaluate(policies, pooled, feature_dims=DIMS)
    assert behavior.batch_shape == (5, 6)
    assert float(gs.snd(behavior).detach()) == pytest.approx(expected, rel=1e-5)
    if not functions:
        assert team.batched  # type: ignore[attr-defined]


def test_observations_by_agent_are_pooled() -> None:
    modules, rows = looking(), scenes(30)
    parts = {key: part.split([12, 18]) for key, part in rows.items()}
    given = {name: {key: part[at] for key, part in parts.items()} for at, name in enumerate(("scout", "guard"))}
    estimate = gs.measure(as_team(modules, feature_dims=DIMS), given)
    assert estimate.value == pytest.approx(by_hand(modules, rows), rel=1e-5)


def test_gradients_and_precision_pass() -> None:
    speed = torch.full((6, 2), 1 / 3, dtype=torch.float64, requires_grad=True)
    policies = [lambda seen, k=k: k * seen["speed"] + seen["kind"].unsqueeze(-1) for k in range(3)]
    given = {"speed": speed, "kind": torch.arange(6)}
    value = gs.snd(gs.evaluate(policies, given, feature_dims={"speed": 1, "kind": 0}))
    assert float(value.detach()) == pytest.approx(4 / 3 * 2**0.5 / 3, rel=1e-15)
    value.backward()
    torch.testing.assert_close(speed.grad, torch.full_like(speed, 4 / 3 / 2**0.5 / 6).detach())
