"""How long does one iteration of training take: acting, and learning?

Times are seconds, after one iteration that warms up. iteration: rollout and update, one after the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from benchmarks.timing import Clock, Options, Tables, summarise_times
from graphsnd.training import Settings, Task

QUICK = Task("navigation", 4, settings=Settings(steps=8, environments=4, minibatch=16))
PAPER = Task("navigation", 100, {"world_spawning_x": 4.0, "world_spawning_y": 4.0, "agent_radius": 0.03})


def measure(options: Options) -> dict[str, Any]:
    """Time the paper's run, or a small one."""
    options.step("an iteration of PPO")
    return time_training(QUICK if options.quick else PAPER, Clock(options.device), seeds=(options.seed,), rounds=5)


def time_training(
    preset: Task, clock: Clock, *, seeds: Sequence[int] = (0,), rounds: int = 3, capture: bool = True
) -> dict[str, Any]:
    """Time rollout and update of a preset.

    Args:
        preset: World and settings.
        clock: The device's clock.
        seeds: Runs that are stacked.
        rounds: Iterations that are timed, after one that warms up.
        capture: Whether a GPU may replay CUDA graphs.

    Returns:
        What was run, and median, min and quartiles of the seconds of its parts and of the whole iteration.
    """
    settings, device = preset.settings, clock.device.type
    trainer = dataclasses.replace(preset, seeds=tuple(seeds)).make_trainer(device, capture=capture)
    trainer.step(measure=False)
    iterations, rows = [], []
    for _ in range(rounds):
        iterations.append(clock.seconds(lambda: rows.append(trainer.step(measure=False)[0])))
    whole = summarise_times(iterations)
    return {
        "world": preset.world,
        "agents": trainer.world.agents,
        "runs": len(seeds),
        "samples": settings.samples,
        "gradient_steps": settings.epochs * -(-settings.samples // settings.minibatch),
        "captured": trainer.eager is None,
        "rollout": summarise_times([row.rollout_seconds for row in rows]),
        "update": summarise_times([row.update_seconds for row in rows]),
        "iteration": whole,
        "frames_per_second": settings.samples * len(seeds) / whole["median_s"],
    }


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of one iteration."""
    columns = ("agents", "runs", "samples", "gradient_steps", "rollout", "update", "iteration")
    return {"One iteration of PPO": ([result], columns)}
