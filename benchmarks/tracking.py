"""Does a tenth of the pairs track SND under a central critic as it does under independent ones?

Navigation with each agent's own reward. On a CPU teams of 4, 8 and 16 in a world whose area grows with the team, three
seeds, 40 iterations; on a GPU the preset navigation-100, one seed, 300 iterations. Every few iterations all policies
answer the same 4,096 observations (1,024 on a CPU) of the rollout; a tenth of the pairs, at least one, is drawn afresh
without return. error: the root of the mean squared error of such draws, exact from all distances, over SND; mean over
measurements. correlation: of the drawn mean with SND over the measurements of a run; mean over seeds.
"""

from __future__ import annotations

import statistics
from math import sqrt
from typing import Any

import torch

from benchmarks.timing import Options, Tables
from graphsnd import pairwise
from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.rl.diversity import pool_observations
from graphsnd.rl.settings import CRITICS
from graphsnd.rl.streams import hashed

SMALL = Settings(
    environments=32, steps=64, learning_rate=1e-3, entropy_coefficient=0.0, iterations=40, diversity_every=2,
    diversity_observations=1024,
)  # fmt: skip


def measure(options: Options) -> dict[str, Any]:
    """Train teams of every size with both critics."""
    rows = []
    for task in _tasks(options):
        for critic in CRITICS:
            options.step(f"{critic} critic, n = {task.agents}")
            rows.append(follow(task, critic, options))
    return {"rows": rows}


def _tasks(options: Options) -> list[Task]:
    if options.device.type == "cuda" and not options.quick:
        preset = PRESETS["navigation-100"]
        world = {**preset.options, "shared_rew": False, "agent_collision_penalty": -0.1}
        settings = SMALL.replace(
            environments=64, steps=128, minibatch=1024, anneal=True, iterations=300, diversity_every=10,
            diversity_observations=4096,
        )  # fmt: skip
        return [Task(preset.world, preset.agents, world, (options.seed,), settings=settings)]
    seeds = tuple(range(options.seed, options.seed + 3))
    changes = {"iterations": 4, "environments": 2, "steps": 8} if options.quick else {}

    def task(agents: int) -> Task:
        half = sqrt(agents / 4)  # of 4 agents: the world as it is by default
        world = {"shared_rew": False, "horizon": 100, "world_spawning_x": half, "world_spawning_y": half}
        return Task("navigation", agents, world, seeds, settings=SMALL.replace(**changes))

    return [task(agents) for agents in ((4,) if options.quick else (4, 8, 16))]


def follow(task: Task, critic: str, options: Options) -> dict[str, Any]:
    """Train one team size with one critic, and measure."""
    settings = task.settings.replace(critic=critic)
    trainer = Trainer(task.make_world(str(options.device)), settings, seeds=task.seeds)
    runs: list[list[dict[str, float]]] = [[] for _ in task.seeds]
    for iteration in range(1, settings.iterations + 1):
        rewards = [row.reward for row in trainer.step(measure=False)]
        if iteration % settings.diversity_every == 0:
            for run, measured in enumerate(runs):
                measured.append({"iteration": iteration, "reward": rewards[run], **_draw(trainer, run)})
    columns = [[[point[name] for point in measured] for name in ("snd", "tenth")] for measured in runs]
    return {
        "agents": task.agents,
        "critic": critic,
        "error": statistics.fmean(point["error"] / point["snd"] for measured in runs for point in measured),
        "correlation": statistics.fmean(statistics.correlation(*pair) for pair in columns),
        "last_snd": statistics.fmean(measured[-1]["snd"] for measured in runs),
        "last_reward": statistics.fmean(measured[-1]["reward"] for measured in runs),
        "settings": task.settings.replace(critic=critic).__dict__,
        "runs": [{"seed": seed, "points": measured} for seed, measured in zip(task.seeds, runs, strict=True)],
    }


@torch.no_grad()
def _draw(trainer: Trainer, run: int) -> dict[str, float]:
    """Return SND, the mean over a tenth of the pairs drawn at random, and the error of such a mean."""
    settings, seed = trainer.settings, trainer.seeds[run]
    assert isinstance(settings, Settings)
    seen = pool_observations(trainer.buffer.observations[run], settings.diversity_observations)
    distances = pairwise(trainer.team(seed).evaluate(seen))
    pairs = distances[torch.ones_like(distances).triu(1) > 0].double().cpu()
    count = max(1, round(len(pairs) / 10))
    drawn = pairs[torch.randperm(len(pairs), generator=hashed(seed, 1, trainer.iteration))[:count]]
    error = sqrt(float(pairs.var()) / count * (1 - count / len(pairs)))
    return {"snd": float(pairs.mean()), "tenth": float(drawn.mean()), "error": error}


def tables(result: dict[str, Any]) -> Tables:
    """Return errors by team size and critic."""
    columns = ("agents", "critic", "error", "correlation", "last_snd", "last_reward")
    return {"A tenth of the pairs": (result["rows"], columns)}
