"""How long does one iteration of training take: acting, and learning?

Times are seconds, after one iteration that warms up. iteration: rollout and update, one after the other.

Controlled runs are stacked; policies and distances are those of their estimates, for all runs together. per_run: an
iteration divided by the runs. Those of the paper's size are timed on a GPU only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from benchmarks.timing import Clock, Options, summarise_times
from graphsnd.rl import PRESETS, Settings, Task

QUICK = Task("navigation", 4, settings=Settings(steps=8, environments=4, minibatch=16))
PAPER = PRESETS["navigation-100"]
LARGE = Task("navigation", 1000, {"world_spawning_x": 9.0, "world_spawning_y": 9.0, "agent_radius": 0.04})
TEN = PRESETS["dispersion-10"]
ALL = PRESETS["dispersion-50"].settings.replace(observations=204_800)  # every observation of a minibatch of 50 agents
FIFTY = dataclasses.replace(PRESETS["dispersion-50"], seeds=(0, 1, 2), settings=ALL)
CONTROLLED = {
    "all observations, bfloat16": FIFTY,
    "all observations, TF32": dataclasses.replace(FIFTY, settings=ALL.replace(bfloat16=False)),
    "regular:3": dataclasses.replace(TEN, design="regular:3", seeds=tuple(range(12))),
}
TINY = TEN.settings.replace(environments=2, steps=8, epochs=2, minibatch=8, hidden=(8,))
SMALL = dataclasses.replace(TEN, agents=4, settings=TINY)


def measure(options: Options) -> dict[str, Any]:
    """Time the paper's runs, or small ones."""
    clock = Clock(options.device)
    options.step("an iteration of PPO")
    result = time_training(QUICK if options.quick else PAPER, clock, seeds=(options.seed,), rounds=5)
    cases = {"small": SMALL} if options.quick else CONTROLLED if options.device.type == "cuda" else {}
    if options.device.type == "cuda" and not options.quick:
        options.step("a thousand agents")
        result["large"] = time_training(LARGE, clock, seeds=(options.seed,), rounds=2)
    rows = []
    for name, task in cases.items():
        options.step(f"controlled: {name}, n = {task.agents}")
        rows.append({"case": name, **time_controlled(task, clock)})
    return result | {"controlled": rows}


def time_controlled(task: Task, clock: Clock) -> dict[str, Any]:
    """Time an iteration of stacked controlled runs, after one that warms up."""
    trainer = task.make_trainer(clock.device.type)
    trainer.step()
    begin = perf_counter()
    rows = trainer.step()
    seconds = perf_counter() - begin
    return {
        "agents": task.agents,
        "runs": len(rows),
        "observations": rows[0].observations,
        "gradient_steps": task.settings.optimiser_steps,
        "rollout_s": rows[0].rollout_seconds,
        "policies_s": rows[0].policy_seconds,
        "distances_s": rows[0].distance_seconds,
        "update_s": rows[0].update_seconds,
        "audit_s": rows[0].audit_seconds,
        "iteration_s": seconds,
        "per_run_s": seconds / len(rows),
    }


def time_training(preset: Task, clock: Clock, *, seeds: Sequence[int] = (0,), rounds: int = 3) -> dict[str, Any]:
    """Time rollout and update of a preset.

    Args:
        preset: World and settings.
        clock: The device's clock.
        seeds: Runs that are stacked.
        rounds: Iterations that are timed, after one that warms up.

    Returns:
        What was run, and median, min and quartiles of the seconds of its parts and of the whole iteration.
    """
    settings, device = preset.settings, clock.device.type
    settings = settings.replace(diversity_every=0)
    trainer = dataclasses.replace(preset, seeds=tuple(seeds), settings=settings).make_trainer(device)
    trainer.step()
    iterations, rows = [], []
    for _ in range(rounds):
        begin = perf_counter()  # by the clock on the wall, as its parts are; a step ends by reading from the device
        rows.append(trainer.step()[0])
        iterations.append(perf_counter() - begin)
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
