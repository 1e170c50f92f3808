from __future__ import annotations

import torch

import graphsnd as gs
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.streams import hashed
from graphsnd.rl.worlds import Navigation, SimpleSpread
from paper.shared.rollouts import observe, on_own, pooled


def test_a_rollout_begins_where_the_world_does() -> None:
    world = SimpleSpread(3, 4)
    team = Trainer(world, Settings(steps=4, environments=4)).team(0)
    seen = observe(team, world, steps=5, seed=3)
    assert seen.shape == (5, 4, 3, 18)
    assert torch.equal(seen[0], world.observe(world.spawn(hashed(3))))
    assert torch.equal(seen, observe(team, world, steps=5, seed=3))
    assert not torch.equal(seen, observe(team, world, steps=5, seed=4))
    moved = (seen[1:, ..., 2:4] - seen[:-1, ..., 2:4]).norm(dim=-1)
    assert float(moved[1:].max()) > 0


def test_pooled_observations_are_those_of_all_agents() -> None:
    # 64 steps and environments of 10 agents: every tenth row would be of one agent.
    seen = torch.arange(10.0).view(1, 1, 10, 1).expand(8, 8, 10, 1)
    counts = torch.bincount(pooled(seen, 64).flatten().long(), minlength=10)
    assert int(counts.sum()) == 64
    assert int((counts > 0).sum()) >= 9
    assert pooled(seen, 10_000).shape == (640, 1)
    assert torch.equal(pooled(seen, 64, seed=5), pooled(seen, 64, seed=5))


def test_each_on_its_own_against_a_loop() -> None:
    world = Navigation(3, 2)
    team = Trainer(world, Settings(steps=4, environments=2, actor_gain=1.0)).team(0)
    seen = observe(team, world, steps=3, seed=0)
    found = on_own(team, seen, 100)
    assert isinstance(found, gs.Gaussian)
    for agent in range(3):
        own = team.evaluate(seen[:, :, agent].flatten(0, 1))
        assert isinstance(own, gs.Gaussian)
        torch.testing.assert_close(found.loc[:, agent], own.loc[:, agent])
