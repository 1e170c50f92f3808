"""The contract of a controller, and the two that control nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior import Norm, Points
from graphsnd.control.measurement import Measurement, as_design, measure_points
from graphsnd.control.state import State, Status
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError, shape_of
from graphsnd.graphs import Graph

Measured = Tensor | Points | Measurement
Generators = torch.Generator | Sequence[torch.Generator] | None


class Controller(Protocol):
    """Chooses the scale of the agents' deviations. It is immutable; its state goes in and comes out.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1, design="matching")  # any controller: its state goes in and comes out
        >>> scale, state, status = dico.step(torch.tensor(0.2), dico.initial())
        >>> round(float(scale), 6), int(state.steps), bool(dico.scale(state) == scale)
        (0.5, 1, True)
    """

    @property
    def design(self) -> Design | Graph | str:
        """The pairs to measure, where ``step`` is given points."""

    @property
    def applied(self) -> bool:
        """Whether it wants the diversity of scaled policies rather than of bare deviations."""

    @property
    def through(self) -> bool:
        """Whether gradients flow through measurements into the scale."""

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement; of the target's shape when ``shape`` is None."""

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update the state with one measurement.

        Args:
            measured: A diversity ``[]`` or ``[runs]``, a :class:`~graphsnd.control.Measurement`, or points
                ``[observations, agents, features]`` (``[runs, ...]`` of the same) to measure.
            state: From :meth:`initial` or the step before.
            generator: For the design's draws, where points are given.

        Returns:
            The scale, float64; the next state, without gradient; and what happened.
        """

    def scale(self, state: State) -> Tensor:
        """Return the scale without a new measurement, as for rollouts."""


def read_measurement(controller: Controller, measured: Measured, state: State, generator: Generators) -> Measurement:
    """Return the measurement that a controller was given, or that of its design on the points it was given.

    Raises:
        InputError: For a tensor that is neither a number for each run nor points, and for other runs than those of the
            state: observations in two axes would be taken for runs.
    """
    if isinstance(measured, Tensor) and measured.dim() == 2:
        expected = "to be [], [runs], or points [observations, agents, features]"
        raise InputError("measured", expected, shape_of(measured))
    measurement = wrap_tensor(measured)
    if isinstance(measurement, Points):
        measurement = measure_points(controller.design, measurement.values, generator, norm=measurement.norm)
    wanted = tuple(state.estimate.shape)
    for name, part in zip(("values", "pairs", "empty"), vars(measurement).values(), strict=True):
        if (shape := tuple(part.shape)) not in ((), wanted):  # one number may be that of all runs
            fix = f"Flatten observations into one axis, or begin with initial({shape}) for stacked runs."
            raise InputError("measured", f"for a state of shape {wanted}", f"{name} {shape}", fix)
    value, *rest = (part.expand(wanted) for part in vars(measurement).values())
    return Measurement(value if controller.through else value.detach(), *rest)


def wrap_tensor(measured: Measured) -> Points | Measurement:
    """Return a tensor of outputs as points, and one of diversities as a measurement."""
    if not isinstance(measured, Tensor):
        return measured
    return Points(measured, Norm.EUCLIDEAN) if measured.dim() > 2 else Measurement.given(measured)


def is_diversity(value: Tensor) -> Tensor:
    """Return where a value can be a diversity: finite and not negative. Nothing waits for the device."""
    return torch.isfinite(value) & (value >= 0)


@checked
@dataclass(frozen=True)
class Constant:
    """A scale that no measurement changes; they are reported all the same."""

    design: Design | Graph | str = Complete()  # noqa: RUF009

    applied: ClassVar[bool] = False
    through: ClassVar[bool] = False
    value: ClassVar[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", as_design(self.design))

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement."""
        return State.start(shape or (), device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Report the measurement, see :meth:`Controller.step`."""
        measurement = read_measurement(self, measured, state, generator)
        raw, valid = measurement.value, is_diversity(measurement.value)
        estimate = torch.where(valid, raw, state.estimate)
        after = State(estimate, state.begun | valid, state.integral, state.steps + 1)
        scale, no = torch.full_like(raw, self.value), torch.zeros_like(valid)
        return scale, after, Status(None, raw, estimate, scale, no, raw == 0, measurement.empty, ~valid)

    def scale(self, state: State) -> Tensor:
        """Return the same scale for every state."""
        return torch.full_like(state.estimate, self.value)


@checked
@dataclass(frozen=True)
class Unconstrained(Constant):
    """Scale 1: agents become as different as learning makes them.

    Example:
        >>> Unconstrained().step(torch.tensor(0.3), Unconstrained().initial())[0]
        tensor(1., dtype=torch.float64)
    """

    value: ClassVar[float] = 1.0


@checked
@dataclass(frozen=True)
class Homogeneous(Constant):
    """Scale 0: all agents behave alike.

    Example:
        >>> Homogeneous().scale(Homogeneous().initial())
        tensor(0., dtype=torch.float64)
    """

    value: ClassVar[float] = 0.0
