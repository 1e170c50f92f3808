"""Stock VMAS scenarios as worlds."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.rl.worlds import VmasWorld
from graphsnd.rl.worlds.world import Continuous, Discrete, merge
from tests.rl.worlds.rollouts import rollout


@pytest.fixture(autouse=True)
def require_vmas() -> None:
    pytest.importorskip("vmas")


def test_it_speaks_the_protocol() -> None:
    world = VmasWorld("balance", 3, agents=3, horizon=4)
    assert (world.agents, world.observation_features, world.actions) == (3, 16, Continuous(2))
    state = world.spawn(0)
    assert world.positions(state).shape == (3, 3, 2)
    assert world.goals(state).shape[0] == 3
    for k in range(4):
        state, step = world.step(state, torch.full((3, 3, 2), 9.0))  # clamped
        assert step.rewards.shape == (3, 3)
        assert bool(step.truncated.all()) == (k == 3)
    assert not step.terminated.all()
    assert world.observe(world.spawn(0, 5)).shape == (5, 3, 16)


def test_a_seed_gives_one_rollout() -> None:
    world = VmasWorld("dispersion", 2, agents=3)
    still = torch.zeros(2, 3, 2)
    one, two, other = (rollout(world, lambda _: still, seed, 3) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_only_finished_environments_are_reset() -> None:
    world = VmasWorld("navigation", 3, agents=2)
    state, _ = world.step(world.spawn(0), torch.ones(3, 2, 2))
    before, done = world.observe(state), torch.tensor([False, True, False])
    after = world.observe(world.reset_done(state, done, 0))
    assert torch.equal(before[~done], after[~done])
    assert (after[1, :, 2:4] == 0).all()


def test_the_past_is_gone() -> None:
    world = VmasWorld("dispersion", 2)
    state = world.spawn(0)
    world.step(state, torch.zeros(2, 4, 2))
    with pytest.raises(InputError, match="newest"):
        world.step(state, torch.zeros(2, 4, 2))
    with pytest.raises(InputError, match="reset_done"):
        merge(state, torch.ones(2, dtype=torch.bool), state)


def test_discrete_actions() -> None:
    world = VmasWorld("dispersion", 2, continuous=False)
    assert world.actions == Discrete(9)
    world.step(world.spawn(0), torch.ones(2, 4, dtype=torch.long))


@pytest.mark.parametrize(("arguments", "name"), [
    ({"scenario": "nonsense"}, "scenario"),
    ({"scenario": "balance", "n_balls": 4}, "n_balls"),
    ({"scenario": "kinematic_bicycle"}, "same"),
    ({"scenario": "balance", "environments": 0}, "environments"),
    ({"scenario": "balance", "num_envs": 3}, "num_envs"),
])  # fmt: skip
def test_what_it_refuses(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(InputError, match=name):
        VmasWorld(**{"environments": 2, **arguments})
