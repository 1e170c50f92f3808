from __future__ import annotations

import dataclasses

import pytest
import torch

pytest.importorskip("torchrl")
from torchrl.envs import VmasEnv
from torchrl.envs.utils import check_env_specs

from graphsnd.integrations.world_env import WorldEnv
from graphsnd.rl.worlds import Dispersion, Navigation, SimpleSpread, World

WORLDS = [Navigation(3, 4, horizon=6), Dispersion(3, 4, horizon=6, food_radius=0.3), SimpleSpread(3, 4, horizon=6)]


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_specs_are_those_of_the_data(world: World, discrete: bool) -> None:
    check_env_specs(WorldEnv(world, discrete=discrete))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_rollout_is_that_of_the_world_used_directly(world: World) -> None:
    torch.manual_seed(0)
    # 20 steps, three horizons: with the resets between
    rollout = WorldEnv(world, seed=5).rollout(20, break_when_any_done=False)
    generator = torch.Generator().manual_seed(5)
    state = world.spawn(generator)
    ended = torch.zeros(4, dtype=torch.bool)
    for time in range(20):
        assert torch.equal(rollout["agents", "observation"][:, time], world.observe(state))
        state, step = world.step(state, rollout["agents", "action"][:, time])
        after = rollout["next"][:, time]
        assert torch.equal(after["agents", "observation"], step.observations)
        assert torch.equal(after["agents", "reward"][..., 0], step.rewards)
        assert torch.equal(after["terminated"][:, 0], step.terminated)
        assert torch.equal(after["truncated"][:, 0], step.truncated)
        done = step.terminated | step.truncated
        assert torch.equal(after["done"][:, 0], done)
        ended |= done
        state = world.reset_done(state, done, generator)
    assert ended.all()


def test_a_partial_reset_leaves_the_other_environments_alone() -> None:
    env = WorldEnv(Dispersion(3, 4))
    before = env.rollout(3)[:, -1]["next"]
    before["_reset"] = torch.tensor([[True], [False], [True], [False]])
    after = env.reset(before.clone())["agents", "observation"]
    kept = (after == before["agents", "observation"]).flatten(1).all(1)
    assert kept.tolist() == [False, True, False, True]
    assert not after[0, :, :4].any()  # at rest in the middle


def test_discrete_actions_are_numbered_as_in_vmas() -> None:
    pytest.importorskip("vmas")
    theirs = VmasEnv("dispersion", num_envs=9, n_agents=2, continuous_actions=False)
    ours = WorldEnv(Dispersion(2, 9), discrete=True)
    assert ours.full_action_spec["agents", "action"] == theirs.full_action_spec["agents", "action"]
    chosen = torch.arange(9).unsqueeze(-1).expand(9, 2)
    velocities = []
    for env in (theirs, ours):
        start = env.reset()
        start["agents", "action"] = chosen
        velocities.append(env.step(start)["next", "agents", "observation"][..., 2:4])
    torch.testing.assert_close(*velocities)


@pytest.mark.gpu
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_on_a_gpu(world: World, discrete: bool) -> None:
    made = WorldEnv(dataclasses.replace(world, device="cuda"), discrete=discrete)
    check_env_specs(made)
    moved = WorldEnv(world, discrete=discrete)
    moved.rollout(2)
    moved = moved.to("cuda")
    for env in (made, moved):
        env.set_seed(3)
    start, also = made.reset(), moved.reset()
    assert {value.device.type for value in start.values(True, True)} == {"cuda"}
    assert torch.equal(start["agents", "observation"], also["agents", "observation"])
    # The same state on the CPU takes the same step.
    host = WorldEnv(world, discrete=discrete)
    host.reset()
    fields = dataclasses.fields(made.state)
    host.state = type(made.state)(**{field.name: getattr(made.state, field.name).cpu() for field in fields})
    action = host.full_action_spec["agents", "action"].rand()
    there = made.step(start.set(("agents", "action"), action.cuda()))["next"]
    here = host.step(start.cpu().set(("agents", "action"), action))["next"]
    for key in (("agents", "observation"), ("agents", "reward"), "done"):
        assert there[key].is_cuda
        torch.testing.assert_close(there[key].cpu(), here[key])
    assert made.rollout(20, break_when_any_done=False)["next", "done"].any()
