"""The contract of a controller, and the two that control nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from graphsnd.behavior import Points
from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.control.state import State, Status
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError, shape_of

Measured = Tensor | Points | Measurement
Generators = torch.Generator | Sequence[torch.Generator] | None


class Controller(Protocol):
    """Chooses the scale of agents' deviations. It never changes; what it remembers goes in and comes out."""

    @property
    def applied(self) -> bool:
        """Whether it wants the diversity of scaled policies rather than of bare deviations."""
        ...

    @property
    def through(self) -> bool:
        """Whether gradients flow through measurements into the scale."""
        ...

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Before the first measurement; that of the targets when ``shape`` is None."""
        ...

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Take in one measurement.

        Args:
            measured: A diversity ``[]`` or ``[runs]``, a :class:`~graphsnd.control.Measurement`, or points
                ``[observations, agents, features]`` (``[runs, ...]`` of the same) to measure.
            state: From :meth:`initial` or the step before.
            generator: For the design's draws, where points are given.

        Returns:
            The scale, float64; the next state, without gradient; and what happened.
        """
        ...

    def scale(self, state: State) -> Tensor:
        """The scale without a new measurement, as for rollouts."""
        ...


def read(measured: Measured, state: State, design: Design, generator: Generators, *, through: bool) -> Measurement:
    """A measurement from whatever was given.

    Raises:
        InputError: For a tensor that is neither a number for each run nor points, and for several runs where the state
            is one's: observations in two axes would be taken for runs.
    """
    if isinstance(measured, Measurement):
        found = measured
    elif isinstance(measured, Points):
        found = measure_points(design, measured.values, generator, norm=measured.norm)
    elif not isinstance(measured, Tensor) or measured.dim() == 2:
        expected = "to be [], [runs], or points [observations, agents, features]"
        got = shape_of(measured) if isinstance(measured, Tensor) else type(measured).__name__
        raise InputError("measured", expected, got)
    elif measured.dim() > 2:
        found = measure_points(design, measured, generator)
    else:
        found = Measurement.given(measured)
    if found.value.dim() > state.estimate.dim():
        shape = tuple(found.value.shape)
        fix = f"Flatten observations into one axis, or begin with initial({shape}) for stacked runs."
        raise InputError("measured", f"for a state of shape {tuple(state.estimate.shape)}", f"values {shape}", fix)
    return found if through else Measurement(found.value.detach(), found.pairs, found.empty)


@dataclass(frozen=True)
class Constant:
    """A scale that no measurement changes; they are reported all the same."""

    design: Design = Complete()  # noqa: RUF009

    applied: ClassVar[bool] = False
    through: ClassVar[bool] = False
    value: ClassVar[float]

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Nothing measured."""
        return State.start(shape or (), device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Report the measurement."""
        found = read(measured, state, self.design, generator, through=False)
        raw, valid = found.value, torch.isfinite(found.value)
        after = State(
            torch.where(valid, raw, state.estimate), state.begun | valid, state.integral, state.steps + 1
        )  # fmt: skip
        scale, no = torch.full_like(raw, self.value), torch.zeros_like(valid)
        return scale, after, Status(None, raw, after.estimate, scale, no, raw == 0, found.empty, ~valid)

    def scale(self, state: State) -> Tensor:
        """Always the same."""
        return torch.full_like(state.estimate, self.value)


@dataclass(frozen=True)
class Unconstrained(Constant):
    """Scale 1: agents become as different as learning makes them.

    Example:
        >>> Unconstrained().step(torch.tensor(0.3), Unconstrained().initial())[0]
        tensor(1., dtype=torch.float64)
    """

    value: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Homogeneous(Constant):
    """Scale 0: all agents behave alike.

    Example:
        >>> Homogeneous().scale(Homogeneous().initial())
        tensor(0., dtype=torch.float64)
    """

    value: ClassVar[float] = 0.0
