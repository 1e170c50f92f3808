"""Controllers: they choose the scale of the agents' deviations from measured diversity."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import Self

from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.designs.design import Complete, Design, as_design
from graphsnd.errors import InputError, check_choice, check_number, check_tensor
from graphsnd.graphs import Graph

BOUNDS = (1e-3, 1e3)  # of the scale, unless told otherwise
BOOTSTRAPS = ("measured", "target")


@dataclass(frozen=True, eq=False)
class State:
    """The state between two steps of a controller; both tensors of one shape, ``[]``, or ``[runs]`` for stacked runs.

    Whether anything was measured yet is a separate flag: no value of the estimate means "none".

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(torch.tensor([0.1, 0.3]))  # two runs
        >>> _, state, _ = dico.step(torch.tensor([0.2, 0.2]), dico.initial())
        >>> state.estimate, state.initialized.tolist()
        (tensor([0.2000, 0.2000], dtype=torch.float64), [True, True])
    """

    estimate: Tensor  # float64, smoothed diversity; read only where initialized
    initialized: Tensor  # bool, whether anything was measured


@dataclass(frozen=True, eq=False)
class Status:
    """The report on one step, as tensors of the state's shape; nothing is read from the device before it is printed.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1)
        >>> status = dico.step(torch.tensor(0.2), dico.initial())[2]
        >>> round(float(status.measured), 6), bool(status.saturated), bool(status.invalid)
        (0.2, False, False)
    """

    measured: Tensor  # before smoothing
    saturated: Tensor  # bool: the wanted scale is outside the bounds
    zero: Tensor  # bool: no diversity was measured at all
    empty: Tensor  # bool: the draw had no pairs, all were measured instead
    invalid: Tensor  # bool: the measurement was not finite or negative and was left out


class Controller(ABC):
    """Chooses the scale of the agents' deviations. It is immutable; its state goes in and comes out.

    A controller of your own says how a measurement moves the estimate, and which scale follows from an estimate.

    Attributes:
        design: The pairs to measure, where ``step`` is given points.
        differentiable: Whether gradients flow through measurements into the scale.

    Example:
        >>> from graphsnd.control import DiCo
        >>> dico = DiCo(0.1, design="matching")
        >>> scale, state, status = dico.step(torch.tensor(0.2), dico.initial())
        >>> round(float(scale), 6), bool(dico.scale(state) == scale)
        (0.5, True)
    """

    design: Design | Graph | str
    differentiable: bool = False

    def initial(self, shape: Sequence[int] = (), device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement, ``[]`` or ``[runs]``."""
        zero = torch.zeros(tuple(shape), dtype=torch.float64, device=device)
        return State(zero, zero.bool())

    def step(
        self, measured: Tensor | Measurement, state: State, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, State, Status]:
        """Update the state with one measurement.

        Args:
            measured: A diversity ``[]`` or ``[runs]``, a :class:`~graphsnd.control.measurement.Measurement`, or points
                ``[observations, agents, features]`` to measure.
            state: State from :meth:`initial` or the previous step.
            generator: Generator of the design's draw, if points are given.

        Returns:
            The scale, float64; the next state, without gradient; and what happened.

        Raises:
            InputError: For a measurement that is neither one number nor one for each run of the state.
        """
        if isinstance(measured, Tensor) and measured.dim() == 3:
            measured = measure_points(self.design, measured, generator)
        elif isinstance(measured, Tensor):
            measured = Measurement(measured.double(), torch.zeros_like(measured, dtype=torch.bool))
        shape = state.estimate.shape
        if any(part.shape not in ((), shape) for part in measured):
            expected = f"to be [], one number for each run {tuple(shape)}, or points [observations, agents, features]"
            raise InputError("measured", expected, [tuple(part.shape) for part in measured])
        value, empty = (part.expand(shape) for part in measured)
        value = value if self.differentiable else value.detach()
        # Nothing else can be a diversity, and must not stay in the estimate for ever.
        valid = torch.isfinite(value) & (value >= 0)
        raw = torch.where(valid, value, state.estimate)
        estimate = torch.where(valid, self.move(raw, state), state.estimate)
        initialized = state.initialized | valid
        scale, saturated = self.react(estimate, initialized)
        status = Status(value.detach(), saturated, valid & (raw.detach() == 0), empty, ~valid)
        return scale, State(estimate.detach(), initialized), status

    @abstractmethod
    def move(self, measured: Tensor, state: State) -> Tensor:
        """Return the estimate after a valid measurement."""

    @abstractmethod
    def react(self, estimate: Tensor, initialized: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scale for an estimate, and whether bounds clipped it."""

    def scale(self, state: State) -> Tensor:
        """Return the scale without a new measurement, as for rollouts."""
        return self.react(state.estimate, state.initialized)[0]


@dataclass(frozen=True)
class Constant(Controller):
    """A constant scale; measurements are reported but do not change it."""

    design: Design | Graph | str = Complete()  # noqa: RUF009
    value: ClassVar[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", as_design(self.design))

    def move(self, measured: Tensor, state: State) -> Tensor:
        """Return the measurement."""
        return measured

    def react(self, estimate: Tensor, initialized: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same scale for every estimate."""
        return torch.full_like(estimate, self.value), torch.zeros_like(initialized)


class Unconstrained(Constant):
    """Scale 1: learning alone decides how different agents become.

    Example:
        >>> Unconstrained().step(torch.tensor(0.3), Unconstrained().initial())[0]
        tensor(1., dtype=torch.float64)
    """

    value = 1.0


class Homogeneous(Constant):
    """Scale 0: all agents behave alike.

    Example:
        >>> Homogeneous().scale(Homogeneous().initial())
        tensor(0., dtype=torch.float64)
    """

    value = 0.0


@dataclass(frozen=True, eq=False)
class DiCo(Controller):
    r"""Hold the diversity of ``shared + scale * deviation`` at a target.

    .. math:: \hat d_t = (1 - \tau) \hat d_{t-1} + \tau d_t, \qquad
        s_t = \min(\max(d^\ast / \hat d_t, s_{lo}), s_{hi})

    where :math:`d_t` is the diversity of the *unscaled* deviations. What agents share cancels in every distance and
    distances are homogeneous, so the diversity of the scaled policies is :math:`s_t d_t`.

    Args:
        target: Wanted diversity, above 0; a tensor ``[runs]`` for stacked runs. For none at all take
            :class:`~graphsnd.control.Homogeneous`, for any :class:`~graphsnd.control.Unconstrained`.
        tau: Weight of a new measurement, in (0, 1]. The estimate remembers about ``1 / tau`` steps: choose it so that
            this is well below the optimiser steps of one iteration.
        bounds: Smallest and largest scale. Where they clip it, the status says ``saturated``.
        design: The pairs to measure where ``step`` is given points, as a design or as text: ``"bernoulli:0.1"``; a
            graph of your own holds its Graph-SND, weights included, instead of SND.
        bootstrap: First estimate: the first measurement (``"measured"``), or the target as if it were met
            (``"target"``), so that the first scale is 1.
        differentiable: Whether gradients flow through the measurement into the scale, as in the original DiCo. The
            runs behind the paper stopped them, which is the default.

    Raises:
        InputError: For values out of range.

    Example:
        >>> dico = DiCo(target=0.1, tau=0.01)
        >>> scale, state, status = dico.step(torch.tensor([[[0.0], [0.2]]]), dico.initial())
        >>> round(float(scale), 6), round(float(dico.step(torch.tensor(0.4), state)[1].estimate), 6)
        (0.5, 0.202)
    """

    target: float | Tensor
    _: KW_ONLY
    tau: float = 0.01
    bounds: tuple[float, float] = BOUNDS
    design: Design | Graph | str = Complete()  # noqa: RUF009
    bootstrap: str = "measured"
    differentiable: bool = False

    def __post_init__(self) -> None:
        check_choice("bootstrap", self.bootstrap, BOOTSTRAPS)
        tau = check_number("tau", self.tau, above=0, high=1)
        checked = {"target": _check_target(self.target), "tau": tau, "bounds": check_bounds(self.bounds)}
        for name, value in (checked | {"design": as_design(self.design)}).items():
            object.__setattr__(self, name, value)

    def initial(self, shape: Sequence[int] = (), device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement; of the target's shape and device unless told."""
        if isinstance(self.target, Tensor):
            shape, device = shape or self.target.shape, device or self.target.device
        return super().initial(shape, device)

    def retarget(self, target: float | Tensor) -> Self:
        """Return the same controller with another target, which is not checked: that would wait for the device."""
        other = copy.copy(self)
        object.__setattr__(other, "target", target)
        return other

    def move(self, measured: Tensor, state: State) -> Tensor:
        """Return the smoothed estimate; the first one by the bootstrap."""
        first = torch.zeros_like(measured.detach()) + self.target if self.bootstrap == "target" else measured
        return torch.where(state.initialized, (1 - self.tau) * state.estimate + self.tau * measured, first)

    def react(self, estimate: Tensor, initialized: Tensor) -> tuple[Tensor, Tensor]:
        """Return the target over the estimate, and whether the bounds clipped it; 1 before anything was measured."""
        low, high = self.bounds
        positive = estimate > 0
        # The inner where keeps the gradient of a division by 0 out of the sum.
        wanted = torch.where(positive, self.target / torch.where(positive, estimate, 1.0), torch.inf)
        clipped = initialized & ((wanted < low) | (wanted > high))
        return torch.where(initialized, wanted.clamp(low, high), 1.0), clipped


def _check_target(target: float | Tensor) -> float | Tensor:
    """Return a target as a float, or as a tensor with one for each run; raise unless all are above 0."""
    fix = "Use Homogeneous() for no diversity, Unconstrained() for any."
    if not getattr(target, "ndim", 0):  # no tensor is made of it: the default device may hold no values
        return check_number("target", target, above=0, fix=fix)
    targets = check_tensor("target", target, 1, "(runs,)")
    check_number("target", float(targets.min()), above=0, fix=fix)
    return targets


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """Return an interval of scales, or raise unless it holds 1, the scale before any measurement."""
    low, high = bounds
    return check_number("bounds", low, low=0, high=1), check_number("bounds", high, low=1)
