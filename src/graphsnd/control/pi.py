"""A controller that closes the loop around what it achieved."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.control.controllers import Generators, Measured, read
from graphsnd.control.dico import BOUNDS, check_bounds, check_target, initial
from graphsnd.control.state import State, Status
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError, number


@dataclass(frozen=True, eq=False)
class PI:
    r"""Proportional-integral control of the *applied* diversity, that of the scaled policies.

    .. math:: e_t = \log(d^\ast / a_t), \qquad I_t = I_{t-1} + k_i e_t, \qquad \log s_t = I_t + k_p e_t

    In logarithms the scale is an additive input, so the same gains suit every level of diversity. DiCo trusts its
    measurement; this one drives a biased loop (another distance, squashed actions, a local graph) to the target too.
    With a fresh measurement a step and :math:`k_p = 0` the loop is stable for :math:`0 < k_i < 2`.

    Args:
        target: Wanted diversity, above 0; a tensor ``[runs]`` for stacked runs.
        kp: Gain of the error, at least 0.
        ki: Gain of its sum, above 0.
        tau: Weight of a new measurement in the smoothed one, in (0, 1].
        bounds: Least and largest scale, both above 0. The integral stays within them, so it does not wind up.
        limit: Largest error that counts, in nats; that of a measurement of 0.
        design: Used where ``step`` is given points, which must be of scaled policies.

    Raises:
        InputError: For values out of range.

    Example:
        >>> pi, state = PI(0.1, kp=0.0, ki=0.5), PI(0.1).initial()
        >>> for _ in range(30):
        ...     scale, state, _ = pi.step(0.3 * pi.scale(state), state)
        >>> round(float(0.3 * scale), 4)
        0.1
    """

    target: float | Tensor
    _: KW_ONLY
    kp: float = 0.1
    ki: float = 0.05
    tau: float = 1.0
    bounds: tuple[float, float] = BOUNDS
    limit: float = 1.0
    design: Design = Complete()  # noqa: RUF009

    applied: ClassVar[bool] = True
    through: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_target(self.target)
        check_bounds(self.bounds, lowest=math.ulp(0.0))
        if not number(self.kp) >= 0:
            raise InputError("kp", "to be at least 0", self.kp)
        for name in ("ki", "limit"):
            if not number(getattr(self, name)) > 0:
                raise InputError(name, "to be above 0", getattr(self, name))
        if not 0 < number(self.tau) <= 1:
            raise InputError("tau", "in (0, 1]", self.tau)

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Nothing measured; of the target's shape unless told."""
        return initial(self.target, shape, device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Take in the diversity of the scaled policies, see :meth:`Controller.step`."""
        found = read(measured, state, self.design, generator, through=False)
        valid = torch.isfinite(found.value)
        raw = torch.where(valid, found.value, state.estimate)
        smooth = torch.where(state.begun, (1 - self.tau) * state.estimate + self.tau * raw, raw)
        estimate = torch.where(valid, smooth, state.estimate)
        low, high = (math.log(bound) for bound in self.bounds)
        summed = (state.integral + self.ki * self._error(estimate)).clamp(low, high)
        after = State(
            estimate, state.begun | valid, torch.where(valid, summed, state.integral), state.steps + 1
        )  # fmt: skip
        wanted = self._log(after)
        saturated = after.begun & ((wanted <= low) | (wanted >= high))
        scale = self.scale(after)
        target = torch.zeros_like(raw) + self.target
        flags = (saturated, valid & (raw == 0), found.empty, ~valid)
        return scale, after, Status(target, found.value, estimate, scale, *flags)

    def scale(self, state: State) -> Tensor:
        """What the last step chose; 1 before anything was measured."""
        return self._log(state).exp().clamp(*self.bounds)

    def retarget(self, target: float | Tensor) -> PI:
        """The same controller with another target, which is not looked at."""
        other = copy.copy(self)
        object.__setattr__(other, "target", target)
        return other

    def _log(self, state: State) -> Tensor:
        return torch.where(state.begun, state.integral + self.kp * self._error(state.estimate), 0.0)

    def _error(self, estimate: Tensor) -> Tensor:
        ratio = self.target / torch.where(estimate > 0, estimate, 1.0)
        return torch.where(estimate > 0, ratio, torch.inf).log().clamp(-self.limit, self.limit)
