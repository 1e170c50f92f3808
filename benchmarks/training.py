"""How long does one iteration of training take: acting, and learning?

Times are seconds, after one iteration that warms up. iteration: rollout and update, one after the other. products_s:
what the matrix products of an update take by themselves, on a CPU; the rest of an update is what could be saved.

Controlled runs are stacked; policies and distances are those of their estimates, for all runs together. per_run: an
iteration divided by the runs. Those of the paper's size are timed on a GPU only.

first: a new process makes a trainer and does its first iteration, of one epoch, without imports; without and then with
the programs that Triton has compiled before.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from benchmarks.timing import Clock, Options, Tables, summarise_times
from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.rl.independent import IndependentLearner

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
        options.step("first iterations")
        result["first"] = time_first(FIFTY)
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


def time_first(task: Task, device: str = "cuda") -> dict[str, float]:
    """Time the start of controlled training in a new process, whose Triton has compiled nothing, and in another."""
    short = dataclasses.replace(task, settings=task.settings.replace(epochs=1))
    given = json.dumps([short.to_dict(), device])
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": folder}
        command = [sys.executable, "-m", "benchmarks.training", given]
        found = [subprocess.run(command, capture_output=True, check=True, env=environment).stdout for _ in range(2)]
    return dict(zip(("empty_cache_s", "warm_cache_s"), (float(text.split()[-1]) for text in found), strict=True))


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
    trainer = dataclasses.replace(preset, seeds=tuple(seeds)).make_trainer(device)
    trainer.step(measure=False)
    iterations, rows = [], []
    for _ in range(rounds):
        begin = perf_counter()  # by the clock on the wall, as its parts are; a step ends by reading from the device
        rows.append(trainer.step(measure=False)[0])
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
    } | ({"products_s": time_products(trainer, clock)} if device == "cpu" else {})


def time_products(trainer: Trainer, clock: Clock) -> float:
    """Time the matrix products of an update: outputs, and the derivatives by weights and by what hidden layers give."""
    seconds, settings, learner = 0.0, trainer.settings, trainer.learner
    assert isinstance(learner, IndependentLearner)
    for networks in (learner.policy, learner.critic):
        block, count = networks.blocks[0], len(networks.whole.flat)
        for place, (leaf, _) in enumerate(block.layers):
            weight, rows = leaf.detach(), min(settings.minibatch, settings.samples)
            seen, slopes = (torch.rand(len(weight), size, rows) for size in (weight.shape[2], weight.shape[1]))
            factors = [(weight, seen), (slopes, seen.mT), (weight.mT, slopes)][: 3 if place else 2]
            best = (min(clock.seconds(partial(torch.bmm, *each), 20) for _ in range(5)) for each in factors)
            seconds += sum(best) * count / len(weight)
    return seconds * settings.optimiser_steps


def tables(result: dict[str, Any]) -> Tables:
    """Return the parts of one iteration."""
    columns = ["agents", "runs", "samples", "gradient_steps", "rollout", "update", "iteration"]
    columns += ["products_s"] if "products_s" in result else []
    found: Tables = {"One iteration of PPO": ([result, *([result["large"]] if "large" in result else [])], columns)}
    if result.get("controlled"):
        parts = ("rollout_s", "policies_s", "distances_s", "update_s", "audit_s", "iteration_s", "per_run_s")
        found["One iteration of controlled runs"] = (result["controlled"], ("case", "agents", "runs", *parts))
    if "first" in result:
        found["The first iteration of controlled runs"] = ([result["first"]], tuple(result["first"]))
    return found


if __name__ == "__main__":
    given, on = json.loads(sys.argv[1])
    begin = perf_counter()
    Task.from_dict(given, Path("arguments")).make_trainer(on).step()
    print(perf_counter() - begin)
