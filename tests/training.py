"""Controlled trainings for tests: the paper's settings and world, except for what a test changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphsnd.rl import PRESETS, Settings, Task, Trainer
from graphsnd.rl.dico import DiversityControl

PAPER = PRESETS["dispersion-10"]


def control_settings(**changes: Any) -> Settings:
    return PAPER.settings.replace(**changes)


TINY = control_settings(
    environments=3, steps=6, epochs=2, minibatch=10, hidden=(8,), observations=20, audit_observations=30, iterations=4,
    learning_rate=1e-3,
)  # fmt: skip


def control_of(trainer: Trainer) -> DiversityControl:
    assert isinstance(trainer.companion, DiversityControl)
    return trainer.companion


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
