"""It learns: by margins that were stated before, on every seed."""

from __future__ import annotations

import pytest

from graphsnd.rl import PRESETS, Settings, Trainer, evaluate_team
from graphsnd.rl.worlds import Navigation, SimpleSpread, parse_world


def test_two_agents_learn_to_go_to_their_goals() -> None:
    """From nobody at the goal to at least a third more of the agents there, on both seeds."""
    options = {"collisions": False, "shared_rew": False, "horizon": 100}
    settings = Settings(
        steps=64, environments=16, minibatch=256, learning_rate=2e-3, hidden=(32, 32), diversity_every=0
    )
    trainer = Trainer(Navigation(2, 16, **options), settings, seeds=(0, 1))
    test = Navigation(2, 64, **options)
    before = [evaluate_team(trainer.team(seed), test, steps=100) for seed in (0, 1)]
    for _ in range(10):
        rows = trainer.step()
    after = [evaluate_team(trainer.team(seed), test, steps=100) for seed in (0, 1)]
    for old, new, row in zip(before, after, rows, strict=True):
        assert new.solved_at_end >= old.solved_at_end + 1 / 3  # type: ignore[operator]
        assert new.reward > old.reward + 0.005
        assert row.reward > 0.003


def test_three_agents_learn_to_spread() -> None:
    """At least 0.06 more reward in each step than before training, on both seeds; the means are good to 0.01."""
    settings = Settings(steps=25, environments=32, minibatch=200, learning_rate=3e-3, hidden=(32,), diversity_every=0)
    trainer = Trainer(SimpleSpread(3, 32), settings, seeds=(0, 1))
    test = SimpleSpread(3, 256)
    before = [evaluate_team(trainer.team(seed), test, steps=25, deterministic=False).reward for seed in (0, 1)]
    for _ in range(25):
        trainer.step()
    after = [evaluate_team(trainer.team(seed), test, steps=25, deterministic=False).reward for seed in (0, 1)]
    assert min(new - old for old, new in zip(before, after, strict=True)) > 0.06


@pytest.mark.slow
def test_the_small_preset_solves_navigation() -> None:
    """At least 90% of four agents at their goals after 100 iterations, on three seeds of three."""
    found = PRESETS["navigation-small"]
    world = parse_world(found.world, found.agents, found.settings.environments, **found.options)
    trainer = Trainer(world, found.settings.replace(diversity_every=0), seeds=(0, 1, 2))
    for _ in range(found.settings.iterations):
        trainer.step()
    test = parse_world(found.world, found.agents, 128, **found.options)
    for seed in (0, 1, 2):
        assert evaluate_team(trainer.team(seed), test, steps=128, seed=1000).solved_at_end >= 0.9  # type: ignore[operator]
