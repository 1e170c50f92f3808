"""Simple spread against the stock mpe2 environment."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from graphsnd.rl.worlds import SimpleSpread
from graphsnd.rl.worlds.simple_spread import SpreadState

# mpe2 computes in float64 and shows float32. One step from the same float32 state differs by the rounding of float32,
# which in contact is that of forces of order 10 times dt.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def write(env: Any, state: SpreadState, e: int) -> None:
    inner = env.unwrapped
    for i, agent in enumerate(inner.world.agents):
        agent.state.p_pos = state.positions[e, i].double().numpy().copy()
        agent.state.p_vel = state.velocities[e, i].double().numpy().copy()
    for i, landmark in enumerate(inner.world.landmarks):
        landmark.state.p_pos = state.landmarks[e, i].double().numpy().copy()


def read(env: Any, name: str) -> torch.Tensor:
    return torch.tensor(np.stack([getattr(agent.state, name) for agent in env.unwrapped.world.agents]))


@pytest.mark.parametrize(("agents", "environments", "steps", "options"), [
    (2, 3, 25, {}),
    (3, 3, 12, {"local_ratio": 0.9}),
    (10, 3, 12, {"local_ratio": 0.0}),
    (10, 2, 12, {"local_ratio": 1.0}),
    (50, 1, 3, {}),
])  # fmt: skip
def test_every_step_is_that_of_mpe2(
    agents: int, environments: int, steps: int, options: dict[str, Any], generator: torch.Generator
) -> None:
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    world = SimpleSpread(agents, environments, **options)
    envs = [spread.parallel_env(N=agents, **options) for _ in range(environments)]
    state = world.spawn(generator)
    for e, env in enumerate(envs):
        env.reset(seed=0)
        write(env, state, e)
    bumped = 0
    for _ in range(steps):
        actions = torch.randint(5, (environments, agents), generator=generator)
        after, step = world.step(state, actions)
        for e, env in enumerate(envs):
            write(env, state, e)
            names = env.possible_agents
            chosen = {name: int(actions[e, i]) for i, name in enumerate(names)}
            seen, rewards, terminated, truncated, _ = env.step(chosen)
            theirs = torch.tensor(np.stack([seen[name] for name in names]))
            torch.testing.assert_close(step.observations[e], theirs, **CLOSE)
            earned = torch.tensor([rewards[name] for name in names], dtype=torch.float32)
            torch.testing.assert_close(step.rewards[e], earned, **CLOSE)
            torch.testing.assert_close(after.velocities[e], read(env, "p_vel").float(), **CLOSE)
            assert bool(step.terminated[e]) == terminated[names[0]]
            assert bool(step.truncated[e]) == truncated[names[0]]
        bumped += int((torch.cdist(after.positions, after.positions) < 0.3).sum()) - environments * agents
        state = after
    assert bumped > 0


def test_running_free_stays_close(generator: torch.Generator) -> None:
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    world = SimpleSpread(3, 1)
    env = spread.parallel_env()
    env.reset(seed=0)
    state = world.spawn(generator)
    write(env, state, 0)
    for _ in range(25):
        actions = torch.randint(5, (1, 3), generator=generator)
        state, _ = world.step(state, actions)
        env.step({f"agent_{i}": int(actions[0, i]) for i in range(3)})
        torch.testing.assert_close(state.positions[0].double(), read(env, "p_pos"), rtol=1e-3, atol=1e-4)


def test_success_terminates_when_asked() -> None:
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    state = SimpleSpread(2, 1).spawn(0)
    home = SpreadState(state.landmarks + 0.05, state.velocities, state.landmarks, state.steps)
    for asked, limit in itertools.product((False, True), (25, 1)):  # at the time limit mpe2 only truncates
        env = spread.parallel_env(N=2, terminate_on_success=asked, max_cycles=limit)
        env.reset(seed=0)
        write(env, home, 0)
        _, _, terminated, truncated, _ = env.step({"agent_0": 0, "agent_1": 0})
        world = SimpleSpread(2, 1, terminate_on_success=asked, horizon=limit)
        _, step = world.step(home, torch.zeros(1, 2, dtype=torch.long))
        assert bool(step.terminated[0]) == terminated["agent_0"] == (asked and limit > 1)
        assert bool(step.truncated[0]) == truncated["agent_0"]
        assert world.solved(home).all()


def test_agents_on_one_point_stay_finite() -> None:
    world = SimpleSpread(4, 2)
    start = world.spawn(0)
    state = SpreadState(torch.zeros_like(start.positions), start.velocities, start.landmarks, start.steps)
    _, step = world.step(state, torch.zeros(2, 4, dtype=torch.long))
    assert step.observations.isfinite().all()
