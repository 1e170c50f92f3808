"""DiCo: the scale is the target divided by the measured diversity."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum

import torch
from torch import Tensor
from typing_extensions import Self

from graphsnd.control.controllers import Controller, State
from graphsnd.designs.design import Complete, Design, as_design
from graphsnd.errors import InputError, check_number, check_tensor, check_type, number
from graphsnd.graphs import Graph

BOUNDS = (1e-3, 1e3)  # of the scale, unless told otherwise


class Bootstrap(Enum):
    """What the first estimate is.

    Example:
        >>> first = DiCo(0.1, bootstrap=Bootstrap.TARGET)
        >>> first.step(torch.tensor(0.2), first.initial())[0]
        tensor(1., dtype=torch.float64)
    """

    MEASURED = "measured"  # the first measurement
    TARGET = "target"  # the target, as if it were met: the first scale is 1


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
        bootstrap: What the first estimate is.
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
    bounds: tuple[float, float] = BOUNDS
    design: Design | Graph | str = Complete()  # noqa: RUF009
    bootstrap: Bootstrap = Bootstrap.MEASURED
    through: bool = False

    def __post_init__(self) -> None:
        check_type("bootstrap", self.bootstrap, Bootstrap, "to be Bootstrap.MEASURED or Bootstrap.TARGET")
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
        first = self._goal(measured) if self.bootstrap is Bootstrap.TARGET else measured
        return torch.where(state.begun, (1 - self.tau) * state.estimate + self.tau * measured, first)

    def react(self, estimate: Tensor, begun: Tensor) -> tuple[Tensor, Tensor]:
        """Return the target over the estimate, and whether the bounds clipped it; 1 before anything was measured."""
        low, high = self.bounds
        positive = estimate > 0
        # The inner where keeps the gradient of a division by 0 out of the sum.
        wanted = torch.where(positive, self.target / torch.where(positive, estimate, 1.0), torch.inf)
        clipped = begun & ((wanted < low) | (wanted > high))
        return torch.where(begun, wanted.clamp(low, high), 1.0), clipped

    def _goal(self, measured: Tensor) -> Tensor:
        return torch.zeros_like(measured.detach()) + self.target


def _check_target(target: float | Tensor) -> float | Tensor:
    """Return a target as a float, or as a tensor with one for each run; raise unless all are above 0."""
    fix = "Use Homogeneous() for no diversity, Unconstrained() for any."
    if not getattr(target, "ndim", 0):  # no tensor is made of it: the default device may hold no values
        return check_number("target", target, above=0, fix=fix)
    targets = check_tensor("target", target, 1, "(runs,)")
    for value in targets.flatten().tolist():
        check_number("target", value, above=0, fix=fix)
    return targets


def check_bounds(bounds: Sequence[float]) -> tuple[float, float]:
    """Return an interval of scales, or raise unless it holds 1, the scale before any measurement."""
    low, high = map(number, bounds) if isinstance(bounds, list | tuple) and len(bounds) == 2 else (math.nan, math.nan)
    if not 0 <= low <= 1 <= high < math.inf:
        raise InputError("bounds", "to be (low, high), finite, with 1 between them", bounds)
    return low, high
