r"""Controllers that are wrong on purpose, to see whether the tracking error or the audit error shows it.

The scale is the target over the estimate, so ``estimate x scale`` is the target for *any* estimate that moves little
within an iteration. A controller that multiplies every measurement by c holds the team at :math:`d^\ast / c` and has
the same tracking error as a sound one. A controller that does not measure the team at all has none. The audit, SND over
all pairs of the acting policies, is off by :math:`|1/c - 1|`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.control import DiCo, State, audit_error, tracking_error
from graphsnd.rl import Settings, Task
from graphsnd.rl.dico import Group
from paper.control.logs import split_runs
from paper.control.study import REFERENCE, control_task
from paper.shared.rollouts import one_thread

SOUND, DOUBLED, BLIND = "sound", "reads double", "does not look"
FACTOR = 2.0
READINGS: dict[str, Callable[[Tensor], Tensor]] = {
    SOUND: lambda value: value,
    DOUBLED: lambda value: FACTOR * value,
    BLIND: torch.ones_like,
}


@dataclass(frozen=True)
class FaultyRun:
    """A run with one of the controllers; errors are those of its last iterations."""

    arm: str  # name of the controller
    tracking_error: float
    audit_error: float
    series: dict[str, list[float]]  # "applied" and "audit" of all iterations


@dataclass(frozen=True)
class FaultyStudy:
    """Runs with a sound controller and with two faulty ones."""

    agents: int
    target: float
    factor: float  # the factor c of the controller that multiplies what it measures
    arms: tuple[FaultyRun, ...]

    def run(self, arm: str) -> FaultyRun:
        """Return the run with one controller."""
        return next(run for run in self.arms if run.arm == arm)


@dataclass(frozen=True, eq=False)
class FaultyController(DiCo):
    """A controller that changes the measured value before it uses it.

    Args:
        target: Wanted diversity.
        reading: Function from the measured value to the one that is used.

    Example:
        >>> doubled = FaultyController(0.1, reading=lambda value: 2 * value)
        >>> float(doubled.step(torch.tensor(0.25), doubled.initial())[0])  # 0.4 would be right
        0.2
    """

    _: KW_ONLY
    reading: Callable[[Tensor], Tensor]

    def move(self, measured: Tensor, state: State) -> Tensor:
        """Move the estimate by the changed value."""
        return super().move(self.reading(measured), state)


@dataclass(frozen=True)
class FaultyTask(Task):
    """Three arms that all measure all pairs, each with a different controller."""

    def groups(self, device: torch.device) -> list[Group]:
        """Return the arms of a task with the controllers of ``READINGS``, in order."""
        groups = zip(super().groups(device), READINGS.values(), strict=True)
        return [dataclasses.replace(group, controller=_replace(group.controller, reading)) for group, reading in groups]


def _replace(controller: Any, reading: Callable[[Tensor], Tensor]) -> FaultyController:
    kept = {field.name: getattr(controller, field.name) for field in dataclasses.fields(DiCo)}
    return FaultyController(**kept, reading=reading)


def run_faulty_study(agents: int, target: float, settings: Settings, *, window: int) -> FaultyStudy:
    """Train a sound and two faulty controllers side by side, from the same networks and episodes.

    Args:
        agents: Size of the team.
        target: Wanted diversity.
        settings: Settings of the training.
        window: Number of last iterations to average.
    """
    # Three names for all pairs, because a task accepts every estimator only once.
    designs = (REFERENCE, "bernoulli:1", f"uniform:{agents * (agents - 1) // 2}")
    with one_thread():
        trainer = FaultyTask(**vars(control_task(agents, (target,), designs, settings=settings))).make_trainer()
        rows = [row for _ in range(settings.iterations) for row in trainer.step()]
    arms = []
    for name, history in zip(READINGS, split_runs(rows), strict=True):
        series = {key: [getattr(row, key) for row in history.rows] for key in ("applied", "audit")}
        tracking = tracking_error(series["applied"], target, last=window)
        arms.append(FaultyRun(name, tracking, audit_error(series["audit"], target, last=window), series))
    return FaultyStudy(agents, target, FACTOR, tuple(arms))
