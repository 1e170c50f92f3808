"""How long an iteration of training takes: acting, and learning."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.timing import Clock
from graphsnd.training import Preset, Settings, Trainer
from graphsnd.worlds import parse_world

QUICK = Preset("navigation", 4, {}, Settings(steps=8, environments=4, minibatch=16))
PAPER = Preset("navigation", 100, {"world_spawning_x": 4.0, "world_spawning_y": 4.0, "agent_radius": 0.03})


def training_times(
    device: str = "cpu",
    *,
    preset: Preset = PAPER,
    seeds: Sequence[int] = (0,),
    rounds: int = 3,
    capture: bool = True,
) -> dict[str, Any]:
    """Time rollout and update of a preset, the paper's run by default, ready for JSON.

    Args:
        device: ``"cpu"`` or ``"cuda"``.
        preset: World and settings.
        seeds: Runs that are stacked.
        rounds: Iterations that are timed, after one that warms up.
        capture: Whether a GPU may replay recorded programs.

    Returns:
        What was run, and median, min and quartiles of the seconds of its parts and of the whole iteration.

    Example:
        >>> tiny = Preset("navigation", 3, {}, Settings(steps=4, environments=2, hidden=(4,)))
        >>> found = training_times(preset=tiny, rounds=2)
        >>> found["iteration"]["median_s"] >= found["rollout"]["median_s"]
        True
    """
    settings = preset.settings
    world = parse_world(preset.world, preset.agents, settings.environments, device=device, **preset.options)
    trainer = Trainer(world, settings, seeds=seeds, capture=capture)
    trainer.step(measure=False)
    clock = Clock(torch.device(device))
    whole, rows = [], []
    for _ in range(rounds):
        whole.append(clock.seconds(lambda: rows.append(trainer.step(measure=False)[0])))
    frames = settings.samples * len(seeds)
    return {
        "world": preset.world,
        "agents": world.agents,
        "runs": len(seeds),
        "samples": settings.samples,
        "gradient_steps": settings.epochs * -(-settings.samples // settings.minibatch),
        "device": device,
        "captured": trainer.eager is None,
        "rollout": _record([row.rollout_seconds for row in rows]),
        "update": _record([row.update_seconds for row in rows]),
        "iteration": _record(whole),
        "frames_per_second": frames / statistics.median(whole),
    }


def _record(times: Sequence[float]) -> dict[str, Any]:
    many = [*times, *times] if len(times) == 1 else times
    q1, median, q3 = statistics.quantiles(many, n=4, method="inclusive")
    return {"median_s": median, "min_s": min(times), "q1_s": q1, "q3_s": q3, "rounds": len(times)}
