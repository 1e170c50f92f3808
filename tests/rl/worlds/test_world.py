"""The protocol: states, merging, resets."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from graphsnd.rl.worlds import Dispersion, Navigation, SimpleSpread, World
from graphsnd.rl.worlds.world import Continuous

WORLDS = [Navigation(3, 4), Dispersion(3, 4, n_food=5), SimpleSpread(3, 4)]


def actions(world: World, environments: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if isinstance(world.actions, Continuous):
        return torch.rand(environments, world.agents, world.actions.features, generator=generator) * 2 - 1
    return torch.randint(world.actions.count, (environments, world.agents), generator=generator)


def same(one: object, other: object) -> bool:
    names = [f.name for f in dataclasses.fields(one)]  # type: ignore[arg-type]
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in names)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
class TestEveryWorld:
    def test_shapes_are_as_announced(self, world: World) -> None:
        state = world.spawn(0)
        assert world.observe(state).shape == (4, 3, world.observation_features)
        after, step = world.step(state, actions(world, 4))
        assert step.observations.shape == (4, 3, world.observation_features)
        assert step.observations.dtype == step.rewards.dtype == world.dtype
        assert step.rewards.shape == (4, 3)
        assert step.rewards.is_contiguous()
        assert step.terminated.dtype == step.truncated.dtype == torch.bool
        assert step.terminated.shape == step.truncated.shape == (4,)
        assert torch.equal(world.observe(after), step.observations)
        assert after.positions.shape == (4, 3, 2)

    def test_a_seed_gives_one_episode(self, world: World) -> None:
        one, two, other = world.spawn(7), world.spawn(torch.Generator().manual_seed(7)), world.spawn(8)
        assert same(one, two)
        assert not same(one, other)
        before = torch.random.get_rng_state()
        world.spawn(0)
        assert torch.equal(before, torch.random.get_rng_state())

    def test_a_step_leaves_its_input_alone(self, world: World) -> None:
        state, copy, moves = world.spawn(0), world.spawn(0), actions(world, 4)
        kept = moves.clone()
        first = world.step(state, moves)
        second = world.step(state, moves)
        assert same(state, copy)
        assert torch.equal(moves, kept)
        assert same(first[0], second[0])
        assert torch.equal(first[1].observations, second[1].observations)

    def test_the_batch_is_that_of_the_state(self, world: World) -> None:
        assert world.step(world.spawn(0, 9), actions(world, 9))[1].rewards.shape == (9, 3)

    def test_only_finished_environments_are_reset(self, world: World) -> None:
        state, _ = world.step(world.spawn(0), actions(world, 4))
        done = torch.tensor([True, False, False, True])
        after = world.reset_done(state, done, 1)
        assert after.steps.tolist() == [0, 1, 1, 0]
        for f in dataclasses.fields(state):
            old, new = getattr(state, f.name), getattr(after, f.name)
            assert torch.equal(old[~done], new[~done])
        goals = {"navigation": "targets", "dispersion": "food", "simple_spread": "landmarks"}[world.name]
        assert (getattr(state, goals)[done] != getattr(after, goals)[done]).any(-1).all()
        assert world.reset_done(state, torch.zeros(4, dtype=torch.bool), 1) is state

    def test_the_horizon_truncates_and_does_not_terminate(self, world: World) -> None:
        short = dataclasses.replace(world, horizon=2)  # type: ignore[type-var]
        state, step = short.step(short.spawn(0), actions(world, 4))
        assert not step.truncated.any()
        _, step = short.step(state, actions(world, 4))
        assert step.truncated.all()
        assert not step.terminated.any()
        unlimited = dataclasses.replace(world, horizon=None)  # type: ignore[type-var]
        assert not unlimited.step(state, actions(world, 4))[1].truncated.any()
