"""How long does one iteration of training take: acting, and learning?

Times are seconds, after one warm-up iteration. iteration: rollout and update, one after the other; parts: its parts.

Controlled runs are stacked; policy and distance are the parts of their estimates, for all runs together. per_run: the
time of an iteration divided by the number of runs. Runs of the paper's size are timed on a GPU only.
"""

from __future__ import annotations

import dataclasses
from time import perf_counter
from typing import Any

from benchmarks.timing import Options, summarise_times
from graphsnd.rl import PRESETS, Settings, Task

QUICK = Task("navigation", 4, settings=Settings(steps=8, environments=4, minibatch=16))
PAPER = PRESETS["navigation-100"]
LARGE = Task("navigation", 1000, {"world_spawning_x": 9.0, "world_spawning_y": 9.0, "agent_radius": 0.04})
TEN = PRESETS["dispersion-10"]
ALL = PRESETS["dispersion-50"].settings.replace(observations=204_800)  # every observation of a minibatch of 50 agents
FIFTY = dataclasses.replace(PRESETS["dispersion-50"], seeds=(0, 1, 2), settings=ALL)
ON_A_GPU = {
    "a thousand agents": LARGE,
    "all observations, bfloat16": FIFTY,
    "all observations, TF32": dataclasses.replace(FIFTY, settings=ALL.replace(bfloat16=False)),
    "regular:3": dataclasses.replace(TEN, design="regular:3", seeds=tuple(range(12))),
}
TINY = TEN.settings.replace(environments=2, steps=8, epochs=2, minibatch=8, hidden=(8,))
SMALL = dataclasses.replace(TEN, agents=4, settings=TINY)


def measure(options: Options) -> dict[str, Any]:
    """Time the paper's runs, or small ones."""
    cuda, rows = options.device.type == "cuda", []
    tasks = {"ppo": QUICK, "small": SMALL} if options.quick else {"ppo": PAPER} | (ON_A_GPU if cuda else {})
    for name, task in tasks.items():
        options.step(name)
        rows.append({"case": name, **time_training(task, options)})
    return {"training": rows}


def time_training(task: Task, options: Options) -> dict[str, Any]:
    """Return the seconds of iterations of a task and of their parts, after one iteration that warms up."""
    settings = task.settings.replace(diversity_every=0)
    trainer = dataclasses.replace(task, settings=settings).make_trainer(options.device.type)
    trainer.step()
    iterations, rows = [], []
    for _ in range(2 if task.target else 5):
        begin = perf_counter()  # wall clock, like its parts; a step ends by reading from the device
        rows.append(trainer.step()[0])
        iterations.append(perf_counter() - begin)
    whole, runs = summarise_times(iterations), len(task.run_names())
    parts = {key[:-8]: value for key, value in vars(rows[0]).items() if key.endswith("_seconds") and value is not None}
    return {
        "world": task.world,
        "agents": trainer.world.agents,
        "runs": runs,
        "observations": rows[0].observations,
        "gradient_steps": settings.optimiser_steps,
        "captured": trainer.eager is None,
        "iteration": whole,
        "parts": {name: summarise_times([getattr(row, f"{name}_seconds") for row in rows]) for name in parts},
        "per_run_s": whole["median_s"] / runs,
        "frames_per_second": settings.samples * runs / whole["median_s"],
    }
