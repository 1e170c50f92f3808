"""Targets that change during training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.control.controllers import Generators, Measured, State, Status
from graphsnd.control.dico import DiCo
from graphsnd.control.pi import PI
from graphsnd.designs import Design
from graphsnd.errors import check_integer, check_number
from graphsnd.graphs import Graph


@dataclass(frozen=True)
class Ramp:
    """A target that moves from one value to another in equal steps, and stays there.

    Args:
        start: The target at step 0.
        end: The target from step ``steps`` on.
        steps: Steps of the controller in between.

    Example:
        >>> Ramp(0.0, 1.0, 4)(torch.tensor([0, 1, 9]))
        tensor([0.0000, 0.2500, 1.0000], dtype=torch.float64)
    """

    start: float
    end: float
    steps: int

    def __post_init__(self) -> None:
        check_integer("steps", self.steps, "to be an integer, at least 1", low=1)
        for name in ("start", "end"):
            check_number(name, getattr(self, name), low=0)

    def __call__(self, steps: Tensor) -> Tensor:
        """Return the target after a number of steps."""
        return self.start + (self.end - self.start) * (steps.double() / self.steps).clamp(max=1.0)


@dataclass(frozen=True, eq=False)
class Scheduled:
    """A controller whose target follows a schedule. All of it is tensors; nothing waits for the device.

    Args:
        controller: :class:`~graphsnd.control.DiCo` or :class:`~graphsnd.control.PI`; its own target is not read.
        schedule: From the number of measurements before a step, int64, to the target of that step.

    Example:
        >>> from graphsnd.control import DiCo
        >>> climbing = Scheduled(DiCo(1.0), Ramp(0.1, 0.2, 10))
        >>> climbing.step(torch.tensor(0.2), climbing.initial())[0]
        tensor(0.5000, dtype=torch.float64)
    """

    controller: DiCo | PI
    schedule: Callable[[Tensor], Tensor]

    @property
    def design(self) -> Design | Graph | str:
        """As the controller."""
        return self.controller.design

    @property
    def applied(self) -> bool:
        """As the controller."""
        return self.controller.applied

    @property
    def through(self) -> bool:
        """As the controller."""
        return self.controller.through

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement."""
        return self.controller.initial(shape, device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update towards the current target, see :meth:`~graphsnd.control.Controller.step`."""
        controller = self.controller.retarget(self.schedule(state.steps))
        return controller.step(measured, state, generator=generator)

    def scale(self, state: State) -> Tensor:
        """Return the scale for the target of the last step."""
        return self.controller.retarget(self.schedule((state.steps - 1).clamp(min=0))).scale(state)
