"""The contract of a controller, its state and its report, and the two controllers that control nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from graphsnd.behavior.points import Norm, Points
from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.designs import Complete, Design
from graphsnd.designs.design import as_design
from graphsnd.errors import MOST_AGENTS, InputError, check_device, check_shape, check_tensor, shape_of
from graphsnd.graphs import Graph

Measured = Tensor | Points | Measurement
Generators = torch.Generator | Sequence[torch.Generator] | None


@dataclass(frozen=True, eq=False)
class State:
    """The state between two steps of a controller; all tensors of one shape, ``[]``, or ``[runs]`` for stacked runs.

    Whether anything was measured yet is a separate flag: no value of the estimate means "none".

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(torch.tensor([0.1, 0.3]))  # two runs
        >>> _, state, _ = dico.step(torch.tensor([0.2, 0.2]), dico.initial())
        >>> state.estimate, state.begun.tolist(), state.steps.tolist()
        (tensor([0.2000, 0.2000], dtype=torch.float64), [True, True], [1, 1])
    """

    estimate: Tensor  # float64, smoothed diversity; read only where begun
    begun: Tensor  # bool, whether anything was measured
    steps: Tensor  # int64, measurements so far

    @classmethod
    def start(cls, shape: Sequence[int] = (), device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement.

        Example:
            >>> State.start((3,)).begun
            tensor([False, False, False])
        """
        if any(size < 0 for size in shape) or math.prod(shape) > MOST_AGENTS:
            raise InputError("shape", f"of at most {MOST_AGENTS} numbers", tuple(shape))
        place = None if device is None else check_device(device)
        zero = torch.zeros(tuple(shape), dtype=torch.float64, device=place)
        return cls(zero, zero.bool(), zero.long())

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, for a checkpoint."""
        return dict(vars(self))

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> State:
        """Return the state from what :meth:`tensors` returned.

        Raises:
            InputError: For other names, and tensors that are not all of the estimate's shape.
        """
        names = [part.name for part in dataclasses.fields(cls)]
        tensors = {name: check_tensor(name, part, 0, "of the estimate") for name, part in tensors.items()}
        if sorted(tensors) != sorted(names):
            raise InputError("tensors", f"to be {', '.join(names)}", ", ".join(map(str, tensors)))
        for name in names:
            check_shape(name, tensors[name], tensors["estimate"].shape)
        return cls(**{name: tensors[name] for name in names})


@dataclass(frozen=True, eq=False)
class Status:
    """The report on one step, as tensors of the state's shape; nothing is read from the device before it is printed.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1)
        >>> status = dico.step(torch.tensor(0.2), dico.initial())[2]
        >>> round(float(status.scale), 6), bool(status.saturated), bool(status.invalid)
        (0.5, False, False)
    """

    target: Tensor | None  # what diversity should be; None for controllers without one
    measured: Tensor  # raw, of this step
    estimate: Tensor  # after smoothing
    scale: Tensor  # that the deviations are multiplied by
    saturated: Tensor  # bool: the wanted scale is outside the bounds
    zero: Tensor  # bool: no diversity was measured at all
    empty: Tensor  # bool: the draw had no pairs, all were measured instead
    invalid: Tensor  # bool: the measurement was not finite or negative and was left out

    def describe(self) -> str:
        """Return one line of text for each run; waits for the device.

        Example:
            >>> from graphsnd.control import DiCo
            >>> dico = DiCo(0.1)
            >>> print(dico.step(torch.tensor(0.2), dico.initial())[2].describe())
            scale 0.5: measured 0.2, estimate 0.2, target 0.1
        """
        parts = [part.detach().reshape(-1).tolist() for part in (self.scale, self.measured, self.estimate)]
        targets = None if self.target is None else self.target.reshape(-1).tolist()
        lines = []
        for run, (scale, measured, estimate) in enumerate(zip(*parts, strict=True)):
            wanted = "no target" if targets is None else f"target {targets[run]:.4g}"
            notes = "".join(f"; {note}" for note in self._notes(run))
            lines.append(f"scale {scale:.4g}: measured {measured:.4g}, estimate {estimate:.4g}, {wanted}{notes}")
        return "\n".join(lines)

    def _notes(self, run: int) -> list[str]:
        flags = {
            "saturated: the target is out of reach within the bounds": self.saturated,
            "zero: all agents behave alike": self.zero,
            "empty draw: all pairs were measured instead": self.empty,
            "invalid: not finite or negative, left out": self.invalid,
        }
        return [note for note, flag in flags.items() if bool(flag.reshape(-1)[run])]


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
    def through(self) -> bool:
        """Whether gradients flow through measurements into the scale."""

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement; of the target's shape when ``shape`` is None."""

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update the state with one measurement.

        Args:
            measured: A diversity ``[]`` or ``[runs]``, a :class:`~graphsnd.control.measurement.Measurement`, or points
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
    if isinstance(measured, Tensor):
        measured = Points(measured, Norm.EUCLIDEAN) if measured.dim() > 2 else Measurement.given(measured)
    if isinstance(measured, Points):
        measured = measure_points(controller.design, measured.values, generator, norm=measured.norm)
    wanted = tuple(state.estimate.shape)
    for name, part in zip(("values", "pairs", "empty"), vars(measured).values(), strict=True):
        if (shape := tuple(part.shape)) not in ((), wanted):  # one number may be that of all runs
            fix = f"Flatten observations into one axis, or begin with initial({shape}) for stacked runs."
            raise InputError("measured", f"for a state of shape {wanted}", f"{name} {shape}", fix)
    value, *rest = (part.expand(wanted) for part in vars(measured).values())
    return Measurement(value if controller.through else value.detach(), *rest)


def is_diversity(value: Tensor) -> Tensor:
    """Return where a value can be a diversity: finite and not negative. Nothing waits for the device."""
    return torch.isfinite(value) & (value >= 0)


@dataclass(frozen=True)
class Constant:
    """A scale that no measurement changes; they are reported all the same."""

    design: Design | Graph | str = Complete()  # noqa: RUF009

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
        after = State(estimate, state.begun | valid, state.steps + 1)
        scale, no = torch.full_like(raw, self.value), torch.zeros_like(valid)
        return scale, after, Status(None, raw, estimate, scale, no, raw == 0, measurement.empty, ~valid)

    def scale(self, state: State) -> Tensor:
        """Return the same scale for every state."""
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
