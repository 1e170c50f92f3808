"""What every kind of team promises."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.teams import StackedTeam
from graphsnd.teams.answers import tensors_of
from graphsnd.teams.joint import JointTeam
from graphsnd.teams.policies import PoliciesTeam
from graphsnd.teams.team import Team

from .conftest import FEATURES, N

CHOICES = {
    "random with repeats": lambda g: torch.randint(N, (50, 3), generator=g),
    "one each": lambda g: torch.randint(N, (50, 1), generator=g),
    "everybody": lambda g: torch.rand(20, N, generator=g).argsort(1),
    "one agent only": lambda g: torch.full((150, 2), 4),
    "most are never asked": lambda g: torch.tensor([[5, 1], [1, 1], [5, 5]]),
    "one request": lambda g: torch.tensor([[6]]),
    "lopsided": lambda g: torch.where(
        torch.rand(200, 2, generator=g) < 0.9, 0, torch.randint(N, (200, 2), generator=g)
    ),
}


def gathered(behavior: Behavior, agents: Tensor) -> list[Tensor]:
    """The answers asked for, one at a time."""
    return [
        torch.stack([torch.stack([field[o, a] for a in row]) for o, row in enumerate(agents.tolist())])
        for field in tensors_of(behavior)
    ]


def parameters(team: Team) -> list[Tensor]:
    if isinstance(team, StackedTeam):
        return [*team.network.parameters(), *team.head.parameters()]
    if isinstance(team, PoliciesTeam):
        return [
            parameter
            for module in team.policies
            if isinstance(module, torch.nn.Module)
            for parameter in module.parameters()
        ]
    if isinstance(team, JointTeam):
        return list(team.policy.parameters())  # type: ignore[attr-defined]
    return []


@pytest.mark.parametrize("choice", list(CHOICES))
def test_partial_is_evaluate_gathered(team: Team, choice: str, generator: torch.Generator) -> None:
    agents = CHOICES[choice](generator)
    observations = torch.randn(len(agents), FEATURES, generator=generator, dtype=torch.float64)
    answered = team.partial(observations, agents)
    assert (answered.batch_shape, answered.agents) == ((len(agents),), agents.shape[1])
    whole = team.evaluate(observations)
    assert type(whole) is type(answered)
    with torch.no_grad():
        cut_off = team.partial(observations, agents)
    for got, also, expected in zip(tensors_of(answered), tensors_of(cut_off), gathered(whole, agents), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)
        torch.testing.assert_close(also, expected, rtol=1e-12, atol=1e-13)


def test_gradients_of_partial_are_those_of_evaluate(team: Team, generator: torch.Generator) -> None:
    if not parameters(team):
        pytest.skip("callables hide their parameters")
    agents = CHOICES["lopsided"](generator)
    observations = torch.randn(len(agents), FEATURES, generator=generator, dtype=torch.float64)
    asked, whole = tensors_of(team.partial(observations, agents)), gathered(team.evaluate(observations), agents)
    weights = [torch.randn(field.shape, generator=generator, dtype=torch.float64) for field in asked]
    grads = []
    for answer in (asked, whole):
        total = sum((field * weight).sum() for field, weight in zip(answer, weights, strict=True))
        grads.append(torch.autograd.grad(total, parameters(team), allow_unused=True))
    assert any(grad is not None and grad.abs().max() > 0 for grad in grads[0])
    for got, expected in zip(*grads, strict=True):
        # A module that nobody asked has no gradient rather than a zero one.
        if got is not None and expected is not None:
            torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-11)
        else:
            assert all(grad is None or not grad.any() for grad in (got, expected))


def test_layout_of_the_observations_does_not_matter(team: Team, generator: torch.Generator) -> None:
    observations = torch.randn(3, 5, FEATURES, generator=generator, dtype=torch.float64)
    grid, flat, one = (team.evaluate(o) for o in (observations, observations.flatten(0, 1), observations[1, 2]))
    assert (grid.batch_shape, flat.batch_shape, one.batch_shape) == ((3, 5), (15,), ())
    for a, b, c in zip(tensors_of(grid), tensors_of(flat), tensors_of(one), strict=True):
        torch.testing.assert_close(a.flatten(0, 1), b)
        torch.testing.assert_close(c, a[1, 2])
