"""What controllers have in common, their state and their report, and the two that control nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.designs.design import Complete, Design, as_design
from graphsnd.errors import InputError
from graphsnd.graphs import Graph

Measured = Tensor | Measurement


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
        zero = torch.zeros(tuple(shape), dtype=torch.float64, device=device)
        return cls(zero, zero.bool(), zero.long())

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, for a checkpoint."""
        return dict(vars(self))


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
        flags = {
            "saturated: the target is out of reach within the bounds": self.saturated,
            "zero: all agents behave alike": self.zero,
            "empty draw: all pairs were measured instead": self.empty,
            "invalid: not finite or negative, left out": self.invalid,
        }
        lines = []
        for run in range(self.scale.numel()):
            scale, measured, estimate = (
                float(part.view(-1)[run]) for part in (self.scale, self.measured, self.estimate)
            )
            wanted = "no target" if self.target is None else f"target {float(self.target.view(-1)[run]):.4g}"
            notes = "".join(f"; {note}" for note, flag in flags.items() if bool(flag.view(-1)[run]))
            lines.append(f"scale {scale:.4g}: measured {measured:.4g}, estimate {estimate:.4g}, {wanted}{notes}")
        return "\n".join(lines)


class Controller(ABC):
    """Chooses the scale of the agents' deviations. It is immutable; its state goes in and comes out.

    A controller of your own says how a measurement moves the estimate, and which scale follows from an estimate.

    Attributes:
        design: The pairs to measure, where ``step`` is given points.
        through: Whether gradients flow through measurements into the scale.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1, design="matching")
        >>> scale, state, status = dico.step(torch.tensor(0.2), dico.initial())
        >>> round(float(scale), 6), int(state.steps), bool(dico.scale(state) == scale)
        (0.5, 1, True)
    """

    design: Design | Graph | str
    through: bool

    def initial(self, shape: Sequence[int] = (), device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement, ``[]`` or ``[runs]``."""
        return State.start(shape, device)

    def step(
        self, measured: Measured, state: State, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, State, Status]:
        """Update the state with one measurement.

        Args:
            measured: A diversity ``[]`` or ``[runs]``, a :class:`~graphsnd.control.measurement.Measurement`, or points
                ``[observations, agents, features]`` to measure.
            state: From :meth:`initial` or the step before.
            generator: For the design's draw, where points are given.

        Returns:
            The scale, float64; the next state, without gradient; and what happened.

        Raises:
            InputError: For a measurement that is neither one number nor one for each run of the state.
        """
        value, empty = self.read(measured, state, generator)
        # Nothing else can be a diversity, and must not stay in the estimate for ever.
        valid = torch.isfinite(value) & (value >= 0)
        raw = torch.where(valid, value, state.estimate)
        estimate = torch.where(valid, self.move(raw, state), state.estimate)
        begun = state.begun | valid
        scale, saturated = self.react(estimate, begun)
        after = State(estimate.detach(), begun, state.steps + 1)
        flags = (saturated, valid & (raw.detach() == 0), empty, ~valid)
        return scale, after, Status(self._goal(raw), value.detach(), after.estimate, scale.detach(), *flags)

    def read(self, measured: Measured, state: State, generator: torch.Generator | None) -> Measurement:
        """Return the measurement that was given, or that of the design on the points that were given."""
        if isinstance(measured, Tensor):
            if measured.dim() == 3:
                measured = measure_points(self.design, measured, generator)
            else:
                measured = Measurement(measured.double(), torch.zeros_like(measured, dtype=torch.bool))
        wanted = state.estimate.shape
        if any(part.shape not in ((), wanted) for part in measured):
            expected = f"to be [], one number for each run {tuple(wanted)}, or points [observations, agents, features]"
            raise InputError("measured", expected, [tuple(part.shape) for part in measured])
        value, empty = (part.expand(wanted) for part in measured)
        return Measurement(value if self.through else value.detach(), empty)

    @abstractmethod
    def move(self, measured: Tensor, state: State) -> Tensor:
        """Return the estimate after a valid measurement."""

    @abstractmethod
    def react(self, estimate: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scale for an estimate, and whether bounds clipped it."""

    def scale(self, state: State) -> Tensor:
        """Return the scale without a new measurement, as for rollouts."""
        return self.react(state.estimate, state.begun)[0]

    def _goal(self, measured: Tensor) -> Tensor | None:
        """Return the wanted diversity in the shape of a measurement; None without one."""
        return None


@dataclass(frozen=True)
class Constant(Controller):
    """A scale that no measurement changes; they are reported all the same."""

    design: Design | Graph | str = Complete()  # noqa: RUF009

    through: bool = field(default=False, init=False, repr=False)
    value: ClassVar[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", as_design(self.design))

    def move(self, measured: Tensor, state: State) -> Tensor:
        """Return the measurement."""
        return measured

    def react(self, estimate: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same scale for every estimate."""
        return torch.full_like(estimate, self.value), torch.zeros_like(begun)


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
