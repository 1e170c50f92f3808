from __future__ import annotations

import pytest
import torch

import graphsnd as gs
from graphsnd.plots import example_team


def test_the_seed_decides_everything() -> None:
    one, same, other = (example_team(20, 50, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.roles, same.roles)
    assert torch.equal(one.positions, same.positions)
    assert torch.equal(gs.pairwise(one.behavior), gs.pairwise(same.behavior))
    assert not torch.equal(one.positions, other.positions)


def test_global_random_state_is_untouched() -> None:
    state = torch.get_rng_state()
    example_team(20, 50, seed=3)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("agents", [8, 9, 13, 100])
def test_every_role_is_played(agents: int) -> None:
    team = example_team(agents, 4)
    assert len(team.roles) == agents == team.behavior.agents == len(team.positions)
    assert torch.bincount(team.roles, minlength=4).min() >= 1


def test_roles_are_alike_within_and_different_between() -> None:
    team = example_team(60, 100)
    matrix = gs.pairwise(team.behavior)
    same = team.roles[:, None] == team.roles
    off = ~torch.eye(60, dtype=torch.bool)
    assert matrix[same & off].mean() < 0.6 * matrix[~same].mean()


def test_too_small() -> None:
    with pytest.raises(gs.InputError, match="`agents`"):
        example_team(7)
    with pytest.raises(gs.InputError, match="`observations`"):
        example_team(8, 0)
