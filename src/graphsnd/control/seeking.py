"""A controller that looks for the level of diversity with the highest reward while a team trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from graphsnd.control.controllers import DiCo, State, Status
from graphsnd.control.measurement import Measurement
from graphsnd.errors import InputError, check_integer, check_number, describe, shape_of

PLACES = 15  # levels of the range, evenly spaced
STRIDE = 2  # largest move in places, a seventh of the range
UNIT = 20.0  # iterations per unit of time in the fit
TREND, ALL = 3, 5  # coefficients of the fit: 1, t, t^2 of the trend, then z, z^2 of the level
RIDGE = 1e-6  # weight of "every coefficient is 0", so that the fit exists before all levels were tried
CLEAR = 5e-3  # p value of the level's coefficients below which rewards differ by more than noise


@dataclass(frozen=True, eq=False)
class SeekState(State):
    """State of :class:`Seek` for each run: DiCo's state, and statistics of the rewards."""

    place: Tensor  # int64, index of the present level among PLACES
    age: Tensor  # int64, iterations at this level
    moments: Tensor  # float64 [..., 6, 6]: fading sums of products of 1, t, t^2, z, z^2 and the reward; t = 0 is now
    clear: Tensor  # bool, whether rewards differed between levels by more than noise so far


class Sought(NamedTuple):
    """Report of :class:`Seek`, as tensors of the state's shape."""

    level: Tensor  # float64, the present level
    best: Tensor  # float64, the level where the fitted reward is highest
    step: Tensor  # float64, difference of the next level from the present one, once it may move
    clear: Tensor  # bool, whether rewards differed between levels by more than noise so far


@dataclass(frozen=True, eq=False)
class Seek(DiCo):
    r"""Hold diversity at a level, as :class:`DiCo` does, and move the level towards more reward between iterations.

    Rewards of the last iterations are fitted by a parabola over levels :math:`z` plus one over time :math:`t`, which
    stands for the learning curve:

    .. math:: r = a_0 + a_1 t + a_2 t^2 + b_1 z + b_2 z^2 + \text{noise}, \qquad
        z^\ast = \arg\max_z \; b_1 z + b_2 z^2 + c \, s(z)

    where :math:`s` is the standard error of the fit at a level. The level moves towards :math:`z^\ast`, by at most a
    seventh of the range. The rewards of the first ``settle`` iterations at a level do not count, because the team and
    the estimate still follow the last move. The level moves again after one reward that counts.

    Args:
        target: Lowest and highest level, above 0. The lowest is the first.
        settle: Number of iterations after a move whose reward does not count.
        explore: The c above: weight of the standard error, for levels that were not tried recently.
        memory: Number of rewards after which the weight of a reward has fallen to a third.

    Raises:
        InputError: For values out of range.

    Example:
        >>> seek = Seek((0.05, 0.8), tau=0.05)
        >>> state = seek.initial()
        >>> for iteration in range(60):
        ...     level = float(seek.level(state))  # a rollout; then seek.step(deviations, state) in each gradient step
        ...     reward = torch.tensor(0.01 * iteration - (level - 0.3) ** 2)
        ...     state = seek.observe(reward, state)
        >>> sought = seek.report(state)
        >>> abs(float(sought.best) - 0.3) < 0.05, bool(sought.clear)
        (True, True)
    """

    target: tuple[float, float]  # type: ignore[assignment]
    _: KW_ONLY
    settle: int = 1
    explore: float = 2.0
    memory: float = 50.0

    def __post_init__(self) -> None:
        if not isinstance(self.target, Sequence) or len(self.target) != 2:
            raise InputError("target", "to be the lowest and the highest level", describe(self.target))
        low = check_number("target", self.target[0], above=0)
        high = check_number("target", self.target[1], above=low)
        check_integer("settle", self.settle, "to be an integer, at least 0", low=0)
        check_number("explore", self.explore, low=0)
        check_number("memory", self.memory, above=1)
        object.__setattr__(self, "target", low)
        super().__post_init__()
        object.__setattr__(self, "target", (low, high))

    def initial(self, shape: Sequence[int] = (), device: torch.device | str | None = None) -> SeekState:
        """Return the state before the first measurement, at the lowest level."""
        state = super().initial(shape, device)
        zero = torch.zeros_like(state.estimate, dtype=torch.int64)
        moments = state.estimate.new_zeros(*state.estimate.shape, ALL + 1, ALL + 1)
        return SeekState(state.estimate, state.initialized, zero, zero.clone(), moments, zero.bool())

    def level(self, state: State) -> Tensor:
        """Return the present level, float64."""
        assert isinstance(state, SeekState)
        return self._levels(state.place)

    def _levels(self, places: Tensor) -> Tensor:
        low, high = self.target
        return low + (high - low) * places.double() / (PLACES - 1)

    def step(
        self, measured: Tensor | Measurement, state: State, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, State, Status]:
        """Update DiCo's part of the state with one measurement: :meth:`Controller.step` at the present level."""
        held = self.retarget(self.level(state))
        scale, after, status = super(Seek, held).step(measured, state, generator=generator)
        return scale, replace(state, estimate=after.estimate, initialized=after.initialized), status

    def scale(self, state: State) -> Tensor:
        """Return the scale at the present level without a new measurement, as for rollouts."""
        return super(Seek, self.retarget(self.level(state))).scale(state)

    def observe(self, reward: Tensor | float, state: State) -> SeekState:
        """Return the state after an iteration at the present level; its level may differ.

        Args:
            reward: Mean reward of the iteration, ``[]`` or ``[runs]``; one that is not finite does not count.
            state: State that :meth:`initial` or :meth:`step` returned.
        """
        assert isinstance(state, SeekState)
        reward, own = torch.as_tensor(reward, dtype=torch.float64).detach().to(state.estimate), _features(state.place)
        if reward.shape not in ((), state.place.shape):
            expected = f"with shape {tuple(state.place.shape)}, the mean over environments and agents"
            raise InputError("reward", expected, shape_of(reward))
        counts = (state.age >= self.settle) & reward.isfinite()
        row = torch.cat([own, torch.where(counts, reward, 0.0).expand(state.place.shape).unsqueeze(-1)], -1)
        shift = torch.eye(ALL + 1, dtype=own.dtype, device=own.device)
        shift[1, 0], shift[2, 0], shift[2, 1] = -1 / UNIT, UNIT**-2, -2 / UNIT  # t = 0 is an iteration later
        older = shift @ state.moments @ shift.T
        newer = (1 - 1 / self.memory) * older + row.unsqueeze(-1) * row.unsqueeze(-2)
        state = replace(state, moments=torch.where(counts[..., None, None], newer, older))
        _, wanted, clear = self._fit(state)
        move = torch.where(counts, (wanted - state.place).clamp(-STRIDE, STRIDE), 0)
        age = torch.where(move == 0, state.age + 1, 0)
        return replace(state, place=state.place + move, age=age, clear=state.clear | clear)

    def report(self, state: State) -> Sought:
        """Return the level, the best one by the fit, the next step, and whether rewards differed by more than noise."""
        assert isinstance(state, SeekState)
        best, wanted, _ = self._fit(state)
        step = self._levels(state.place + (wanted - state.place).clamp(-STRIDE, STRIDE)) - self.level(state)
        return Sought(self.level(state), self._levels(best), step, state.clear)

    def _fit(self, state: SeekState) -> tuple[Tensor, Tensor, Tensor]:
        """Return places, of the highest fit and of the level to move towards, and whether rewards differ by level."""
        moments = state.moments
        centre = torch.eye(ALL + 1, dtype=moments.dtype, device=moments.device).expand(moments.shape).clone()
        centre[..., ALL, 0] = -moments[..., ALL, 0] / moments[..., 0, 0].clamp_min(1)  # rewards minus their mean
        moments = centre @ moments @ centre.mT
        products, against, total = moments[..., :ALL, :ALL], moments[..., :ALL, ALL], moments[..., ALL, ALL]
        inverse = torch.linalg.inv(products + RIDGE * torch.eye(ALL, dtype=moments.dtype, device=moments.device))
        fitted = (inverse @ against.unsqueeze(-1)).squeeze(-1)
        freedom = moments[..., 0, 0] - ALL
        variance = (total - (fitted * against).sum(-1)).clamp_min(1e-12 * total) / freedom.clamp_min(1)
        every = _features(torch.arange(PLACES, device=moments.device))
        curve = fitted @ every.T
        error = ((every @ inverse) * every).sum(-1).sqrt() * variance.sqrt().unsqueeze(-1)
        shape = fitted[..., TREND:].unsqueeze(-1)
        explained = (shape.mT @ torch.linalg.inv(inverse[..., TREND:, TREND:]) @ shape)[..., 0, 0]
        freedom = freedom.clamp_min(1)  # with two coefficients, the F distribution has this closed form
        clear = (1 + explained / (freedom * variance)) ** (-freedom / 2) < CLEAR
        return curve.argmax(-1), (curve + self.explore * error).argmax(-1), clear


def _features(place: Tensor) -> Tensor:
    """Return 1, t, t^2, z and z^2 of places at the present time, ``[..., 5]``."""
    z = 2 * place.double() / (PLACES - 1) - 1
    zero = torch.zeros_like(z)
    return torch.stack([zero + 1, zero, zero, z, z.square()], -1)
