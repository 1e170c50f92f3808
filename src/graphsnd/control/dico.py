"""DiCo: divide by what was measured, multiply by what is wanted."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.control.controllers import Generators, Measured, read
from graphsnd.control.state import State, Status
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError, number

BOUNDS = (1e-3, 1e3)


class Bootstrap(Enum):
    """What the first estimate is."""

    MEASURED = "measured"  # the first measurement
    TARGET = "target"  # the target, as if it were met: the first scale is 1


@dataclass(frozen=True, eq=False)
class DiCo:
    r"""Hold the diversity of ``shared + scale * deviation`` at a target.

    .. math:: \hat d_t = (1 - \tau) \hat d_{t-1} + \tau d_t, \qquad
        s_t = \min(\max(d^\ast / \hat d_t, s_{lo}), s_{hi})

    where :math:`d_t` is the diversity of the *unscaled* deviations. What agents share cancels in every distance and
    distances are homogeneous, so the diversity of the scaled policies is :math:`s_t d_t`.

    Args:
        target: Wanted diversity, above 0; a tensor ``[runs]`` for stacked runs. For none at all take
            :class:`~graphsnd.control.Homogeneous`, for any :class:`~graphsnd.control.Unconstrained`.
        tau: Weight of a new measurement, in (0, 1].
        bootstrap: What the first estimate is.
        bounds: Least and largest scale. Where they cut, the status says ``saturated``.
        design: Used where ``step`` is given points.
        through: Whether gradients flow through the measurement into the scale, as in the original DiCo. The runs
            behind the paper stopped them, which is the default.

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
    bootstrap: Bootstrap = Bootstrap.MEASURED
    bounds: tuple[float, float] = BOUNDS
    design: Design = Complete()  # noqa: RUF009
    through: bool = False

    applied: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_target(self.target)
        check_bounds(self.bounds, lowest=0.0)
        if not 0 < number(self.tau) <= 1:
            raise InputError("tau", "in (0, 1]", self.tau)

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Nothing measured; of the target's shape unless told."""
        return initial(self.target, shape, device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Take in the diversity of the unscaled deviations, see :meth:`Controller.step`."""
        found = read(measured, state, self.design, generator, through=self.through)
        valid = torch.isfinite(found.value)
        # A measurement that is not finite must not stay in the estimate for ever.
        raw = torch.where(valid, found.value, state.estimate)
        target = torch.zeros_like(raw.detach()) + self.target
        first = raw if self.bootstrap is Bootstrap.MEASURED else target
        moved = torch.where(state.begun, (1 - self.tau) * state.estimate + self.tau * raw, first)
        estimate = torch.where(valid, moved, state.estimate)
        begun = state.begun | valid
        scale, saturated = self._scale(estimate, begun)
        after = State(estimate.detach(), begun, state.integral, state.steps + 1)
        flags = (saturated, valid & (raw.detach() == 0), found.empty, ~valid)
        return scale, after, Status(target, found.value.detach(), after.estimate, scale.detach(), *flags)

    def scale(self, state: State) -> Tensor:
        """Target over estimate within the bounds; 1 before anything was measured."""
        return self._scale(state.estimate, state.begun)[0]

    def retarget(self, target: float | Tensor) -> DiCo:
        """The same controller with another target, which is not looked at: that would wait for the device."""
        other = copy.copy(self)
        object.__setattr__(other, "target", target)
        return other

    def _scale(self, estimate: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
        """Also whether the bounds cut."""
        low, high = self.bounds
        some = estimate > 0
        # The inner where keeps the gradient of a division by 0 out of the sum.
        wanted = torch.where(some, self.target / torch.where(some, estimate, 1.0), torch.inf)
        cut = begun & ((wanted < low) | (wanted > high))
        return torch.where(begun, wanted.clamp(low, high), 1.0), cut


def check_target(target: float | Tensor) -> None:
    """Raise unless everything in ``target`` is a finite number above 0."""
    values = target.reshape(-1).tolist() if isinstance(target, Tensor) else [number(target)]
    for value in values:
        if not 0 < value < float("inf"):
            fix = "Use Homogeneous() for no diversity, Unconstrained() for any."
            raise InputError("target", "to be finite and above 0", value, fix)


def check_bounds(bounds: tuple[float, float], *, lowest: float) -> None:
    """Raise unless ``bounds`` is an interval of scales that holds 1, with which everything begins."""
    low, high = bounds
    if not lowest <= number(low) <= 1 <= number(high) < float("inf"):
        raise InputError("bounds", "to be (low, high), finite, with 1 between them", bounds)


def initial(target: float | Tensor, shape: Sequence[int] | None, device: torch.device | str | None) -> State:
    """Of the target's shape and device unless told."""
    if isinstance(target, Tensor):
        return State.start(target.shape if shape is None else shape, target.device if device is None else device)
    return State.start(shape or (), device)
