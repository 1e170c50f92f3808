r"""Controllers that are wrong on purpose, to see which of two errors shows it.

The scale is the target over the estimate, so ``estimate x scale`` is the target for *any* estimate that moves little
within an iteration. A controller that reads every measurement as c times what it is holds the team at
:math:`d^\ast / c` and has the same tracking error as a sound one; a controller that does not look at the team at all
has none. The audit, SND over all pairs of what acts, is off by :math:`|1/c - 1|`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.control import DiCo, State, Status
from graphsnd.control.controllers import Generators, Measured, read
from graphsnd.training.dico import ControlRow, ControlSettings, ControlTask, ControlTrainer
from graphsnd.training.dico.task import Group
from paper.control.logs import of_training
from paper.control.study import late
from paper.shared.rollouts import one_thread

SOUND, DOUBLED, BLIND = "sound", "reads double", "does not look"
FACTOR = 2.0


@dataclass(frozen=True, eq=False)
class Mistaken(DiCo):
    """A controller that makes something else of what is measured.

    Args:
        target: Wanted diversity.
        reading: From the measured value to what is taken for it.

    Example:
        >>> wrong = Mistaken(0.1, reading=lambda value: 2 * value)
        >>> float(wrong.step(torch.tensor(0.25), wrong.initial())[0])  # 0.4 would be right
        0.2
    """

    _: KW_ONLY
    reading: Callable[[Tensor], Tensor]

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Take in a measurement, wrongly."""
        found = read(measured, state, self.estimator, generator, through=self.through)
        return super().step(dataclasses.replace(found, value=self.reading(found.value)), state)


@dataclass(frozen=True)
class MistakenTask(ControlTask):
    """Three arms with one estimator, all pairs: one sound, one that reads double, one that does not look."""

    def groups(self, device: torch.device) -> list[Group]:
        """The arm of each estimator's name, with another controller."""
        found = super().groups(device)
        readings = {
            SOUND: lambda value: value,
            DOUBLED: lambda value: FACTOR * value,
            BLIND: lambda value: torch.ones_like(value),
        }
        return [
            dataclasses.replace(group, controller=_mistake(group.controller, reading))
            for group, reading in zip(found, readings.values(), strict=True)
        ]


def _mistake(controller: Any, reading: Callable[[Tensor], Tensor]) -> Mistaken:
    kept = {field.name: getattr(controller, field.name) for field in dataclasses.fields(DiCo)}
    return Mistaken(**kept, reading=reading)


def mistaken_study(agents: int, target: float, settings: ControlSettings, *, window: int) -> dict[str, Any]:
    """Train a sound and two mistaken controllers side by side, same networks and same episodes at the start.

    Args:
        agents: Size of the team.
        target: Wanted diversity.
        settings: Of the training.
        window: Late iterations that count.

    Returns:
        Ready for JSON: ``arms``, each what :func:`~paper.control.study.late` gives, with the applied
        signal and the audit of all iterations.
    """
    # Three words for all pairs, because a task takes every estimator once.
    pairs = agents * (agents - 1) // 2
    estimators = ("full", "bernoulli:1", f"uniform:{pairs}")
    task = MistakenTask(agents, (target,), estimators, settings=settings)
    rows: list[ControlRow] = []
    with one_thread():
        trainer = ControlTrainer(task)
        for _ in range(settings.iterations):
            rows += trainer.step()
    arms = []
    for name, history in zip((SOUND, DOUBLED, BLIND), of_training(rows), strict=True):
        series = {key: [getattr(row, key) for row in history.rows] for key in ("applied", "audit")}
        arms.append({**late(history, window), "arm": name, "series": series})
    return {"agents": agents, "target": target, "factor": FACTOR, "window": window, "arms": arms}
