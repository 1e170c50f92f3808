"""PettingZoo parallel environments as worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphsnd.errors import InputError
from graphsnd.rl.worlds import PettingZooWorld
from graphsnd.rl.worlds.parse import parse_world
from graphsnd.rl.worlds.world import Continuous, Discrete
from tests.rl.worlds.rollouts import rollout


class Leaving:
    """Two agents; the first one leaves after a step, the second after two."""

    def __init__(self) -> None:
        self.possible_agents = ["a", "b"]
        self.agents: list[str] = []

    def observation_space(self, name: str) -> Any:
        return type("Box", (), {"shape": (1,)})()

    def action_space(self, name: str) -> Any:
        return type("Discrete", (), {"n": 2})()

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        self.agents = list(self.possible_agents)
        return {name: np.ones(1, np.float32) for name in self.agents}, {}

    def step(self, actions: dict[str, int]) -> Any:
        present = list(self.agents)
        assert list(actions) == present
        self.agents = present[1:]
        ended = {name: name == present[0] for name in present}
        seen = {name: np.ones(1, np.float32) for name in present}
        return seen, dict.fromkeys(present, 1.0), ended, dict.fromkeys(present, False), {}


def test_an_agent_that_leaves_early_is_worth_nothing() -> None:
    world = PettingZooWorld(Leaving, 2)
    moves = torch.zeros(2, 2, dtype=torch.long)
    state, first = world.step(world.spawn(0), moves)
    assert not (first.terminated | first.truncated).any()
    _, second = world.step(state, moves)
    assert second.terminated.all()
    assert second.rewards.tolist() == [[0.0, 1.0]] * 2
    assert second.observations[0].tolist() == [[0.0], [1.0]]


@pytest.fixture(autouse=True)
def require_mpe2() -> None:
    pytest.importorskip("mpe2")


def test_it_speaks_the_protocol() -> None:
    world = parse_world("mpe2:simple_spread_v3", 4, 3, max_cycles=5)
    assert (world.agents, world.observation_features, world.actions) == (4, 24, Discrete(5))
    state = world.spawn(0)
    torch.testing.assert_close(world.positions(state), world.observe(state)[..., 2:4])
    assert world.goals(state).shape == (3, 4, 2)
    for k in range(5):
        state, step = world.step(state, torch.randint(5, (3, 4)))
        assert bool(step.truncated.all()) == (k == 4)
    assert not step.terminated.any()
    with pytest.raises(InputError, match="reset_done"):
        world.step(state, torch.zeros(3, 4, dtype=torch.long))


def test_a_seed_gives_one_rollout() -> None:
    world = PettingZooWorld("mpe2:simple_spread_v3", 2, max_cycles=2)
    move = torch.ones(2, 3, dtype=torch.long)
    one, two, other = (rollout(world, lambda _: move, seed, 5) for seed in (0, 0, 1))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_only_finished_environments_are_reset() -> None:
    world = PettingZooWorld("mpe2:simple_spread_v3", 3)
    state, _ = world.step(world.spawn(0), torch.ones(3, 3, dtype=torch.long))
    before, done = world.observe(state), torch.tensor([False, True, False])
    state = world.reset_done(state, done, 0)
    after = world.observe(state)
    assert torch.equal(before[~done], after[~done])
    assert (after[1, :, :2] == 0).all()
    torch.testing.assert_close(world.positions(state), after[..., 2:4])


def test_continuous_actions_are_clamped() -> None:
    world = PettingZooWorld("mpe2:simple_spread_v3", 2, continuous_actions=True)
    assert world.actions == Continuous(5, 0.0, 1.0)
    state = world.spawn(0)
    _, step = world.step(state, torch.full((2, 3, 5), 7.0))
    assert step.observations.isfinite().all()


@pytest.mark.parametrize("text", ["mpe2:nonsense", "mpe2:simple_adversary_v3", "mpe2:all_modules", "gym:x"])
def test_what_it_refuses(text: str) -> None:
    with pytest.raises(InputError, match="factory"):
        PettingZooWorld(text, 2)


def test_a_wrong_option() -> None:
    with pytest.raises(InputError, match="options"):
        PettingZooWorld("mpe2:simple_spread_v3", 2, wings=3)


def test_an_environment_is_copied() -> None:
    from mpe2 import simple_spread_v3

    env = simple_spread_v3.parallel_env(N=4, max_cycles=3)
    one, other = PettingZooWorld(env, 2), PettingZooWorld("mpe2:simple_spread_v3", 2, agents=4, max_cycles=3)
    moves = torch.ones(2, 4, dtype=torch.long)
    steps = [world.step(world.spawn(0), moves)[1] for world in (one, other)]
    assert torch.equal(steps[0].observations, steps[1].observations)
    with pytest.raises(InputError, match="a function that takes max_cycles"):
        PettingZooWorld(env, 2, max_cycles=3)
    with pytest.raises(InputError, match="factory"):
        PettingZooWorld(7, 2)
