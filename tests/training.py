"""Controlled trainings for tests: the paper's settings and world, except for what a test changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphsnd.rl import PRESETS, Settings, Task

PAPER = PRESETS["dispersion-10"]


def control_settings(**changes: Any) -> Settings:
    return PAPER.settings.replace(**changes)


def control_task(
    agents: int,
    targets: Sequence[float | str],
    designs: Sequence[str] = ("complete",),
    seeds: Sequence[int] = (0,),
    world: str = "dispersion",
    options: dict[str, Any] = PAPER.options,
    settings: Settings = PAPER.settings,
) -> Task:
    return Task(world, agents, dict(options), seeds, targets, designs, settings)
