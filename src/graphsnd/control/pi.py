"""A controller that closes the loop around the diversity it achieved."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.control.controllers import Generators, Measured, State, Status, read_measurement
from graphsnd.control.dico import Targeted
from graphsnd.errors import check_number


@dataclass(frozen=True, eq=False)
class PI(Targeted):
    r"""Proportional-integral control of the *applied* diversity, that of the scaled policies.

    .. math:: e_t = \log(d^\ast / a_t), \qquad I_t = I_{t-1} + k_i e_t, \qquad \log s_t = I_t + k_p e_t

    In logarithms the scale is an additive input, so the same gains suit every level of diversity. DiCo trusts its
    measurement; this one drives a biased loop (another distance, squashed actions, a local graph) to the target too.
    With a new measurement per step and :math:`k_p = 0` the loop is stable for :math:`0 < k_i < 2`.

    Args:
        target: Wanted diversity, above 0; a tensor ``[runs]`` for stacked runs.
        tau: Weight of a new measurement in the smoothed one, in (0, 1].
        bounds: Smallest and largest scale, both above 0. The integral stays within them, so it does not wind up.
        design: The pairs to measure where ``step`` is given points, which must be those of scaled policies.
        kp: Gain of the error, at least 0.
        ki: Gain of its sum, above 0.
        limit: Largest error that counts, in nats; that of a measurement of 0.

    Raises:
        InputError: For values out of range.

    Example:
        >>> pi, state = PI(0.1, kp=0.0, ki=0.5), PI(0.1).initial()
        >>> for _ in range(30):
        ...     scale, state, _ = pi.step(0.3 * pi.scale(state), state)
        >>> round(float(0.3 * scale), 4)
        0.1
    """

    _: KW_ONLY
    tau: float = 1.0
    kp: float = 0.1
    ki: float = 0.05
    limit: float = 1.0

    applied: ClassVar[bool] = True
    through: ClassVar[bool] = False
    lowest: ClassVar[float] = math.ulp(0.0)  # the integral is a logarithm

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("kp", self.kp, low=0)
        for name in ("ki", "limit"):
            check_number(name, getattr(self, name), above=0)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update with the diversity of the scaled policies, see :meth:`~graphsnd.control.Controller.step`."""
        measurement = read_measurement(self, measured, state, generator)
        valid, raw, estimate = self._smooth(measurement.value, state)
        low, high = (math.log(bound) for bound in self.bounds)
        summed = (state.integral + self.ki * self._error(estimate)).clamp(low, high)
        integral = torch.where(valid, summed, state.integral)
        after = State(estimate, state.begun | valid, integral, state.steps + 1)
        wanted, scale = self._log_scale(after), self.scale(after)
        saturated = after.begun & ((wanted <= low) | (wanted >= high))
        target = torch.zeros_like(raw) + self.target
        flags = (saturated, valid & (raw == 0), measurement.empty, ~valid)
        return scale, after, Status(target, measurement.value, estimate, scale, *flags)

    def scale(self, state: State) -> Tensor:
        """Return the scale of the last step; 1 before anything was measured."""
        return self._log_scale(state).exp().clamp(*self.bounds)

    def _log_scale(self, state: State) -> Tensor:
        return torch.where(state.begun, state.integral + self.kp * self._error(state.estimate), 0.0)

    def _error(self, estimate: Tensor) -> Tensor:
        ratio = self.target / torch.where(estimate > 0, estimate, 1.0)
        return torch.where(estimate > 0, ratio, torch.inf).log().clamp(-self.limit, self.limit)
