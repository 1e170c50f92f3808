from __future__ import annotations

import pytest
import torch

from graphsnd.rl import evaluate_team
from graphsnd.rl.worlds import Navigation
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam


def _towards_goal(agents: int) -> StackedTeam:
    """Force against the vector from the goal, with some braking: reaches it in a straight line."""
    weight = torch.zeros(agents, 6, 2)
    for axis in range(2):
        weight[:, 4 + axis, axis] = -3.0
        weight[:, 2 + axis, axis] = -2.0
    network = StackedMLP([weight], [torch.zeros(agents, 1, 2)])
    return StackedTeam(network, GaussianHead(2, batch=(agents,)))


def test_a_controller_that_works_is_seen_to_work() -> None:
    world = Navigation(4, 16, collisions=False)
    found = evaluate_team(_towards_goal(4), world, steps=100)
    assert found.solved_at_end == 1.0
    assert found.reward > 0
    noisy = evaluate_team(_towards_goal(4), world, steps=100, deterministic=False)
    assert 0 < noisy.reward < found.reward


def test_only_the_first_episode_counts(line) -> None:  # type: ignore[no-untyped-def]
    """Truncation after 7 steps: a team that always goes right by 0.6 is beyond 0 well before."""
    network = StackedMLP([torch.zeros(2, 2, 1)], [torch.full((2, 1, 1), 9.0)])
    team = StackedTeam(network, GaussianHead(1, batch=(2,)))
    found = evaluate_team(team, line, steps=50)
    assert found.reward == pytest.approx(0.6, rel=1e-4)
    assert found.solved_at_end == 1.0
