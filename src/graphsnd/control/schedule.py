"""Targets that change on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from graphsnd.control.controllers import Controller, Generators, Measured
from graphsnd.control.state import State, Status
from graphsnd.errors import check_integer

Schedule = Callable[[Tensor], Tensor]  # from the number of measurements so far, int64, to the target


class Aimed(Controller, Protocol):
    """A controller that has a target."""

    def retarget(self, target: float | Tensor) -> Controller:
        """The same controller with another target."""
        ...


@dataclass(frozen=True)
class Ramp:
    """From one target to another in equal steps, and then no further.

    Args:
        start: At first.
        end: From step ``steps`` on.
        steps: Of the controller.

    Example:
        >>> Ramp(0.0, 1.0, 4)(torch.tensor([0, 1, 9]))
        tensor([0.0000, 0.2500, 1.0000], dtype=torch.float64)
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, "to be an integer, at least 1", low=1)

    def __call__(self, steps: Tensor) -> Tensor:
        """The target after so many steps."""
        return self.start + (self.end - self.start) * (steps.double() / self.steps).clamp(max=1.0)


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A controller whose target follows a schedule. All of it is tensors; nothing waits for the device.

    Args:
        controller: :class:`~graphsnd.control.DiCo` or :class:`~graphsnd.control.PI`; its own target is not read.
        schedule: From the number of measurements before a step to the target of that step.

    Example:
        >>> from graphsnd.control import DiCo
        >>> climbing = Scheduled(DiCo(1.0), Ramp(0.1, 0.2, 10))
        >>> climbing.step(torch.tensor(0.2), climbing.initial())[0]
        tensor(0.5000, dtype=torch.float64)
    """

    controller: Aimed
    schedule: Schedule

    @property
    def applied(self) -> bool:
        """As the controller."""
        return self.controller.applied

    @property
    def through(self) -> bool:
        """As the controller."""
        return self.controller.through

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Nothing measured."""
        return self.controller.initial(shape, device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """A step towards the target of this moment."""
        aimed = self.controller.retarget(self.schedule(state.steps))
        return aimed.step(measured, state, generator=generator)

    def scale(self, state: State) -> Tensor:
        """For the target of the last step."""
        return self.controller.retarget(self.schedule((state.steps - 1).clamp(min=0))).scale(state)
