"""A level of diversity for each group of agents, and one between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import Any, ClassVar

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior.points import Norm, Points
from graphsnd.control.controllers import Generators, Measured, State, Status, is_diversity, wrap_tensor
from graphsnd.control.dico import Bootstrap, DiCo
from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.designs import Design
from graphsnd.devices import copy_without_waiting
from graphsnd.errors import InputError, check_number, shape_of
from graphsnd.graphs import Graph
from graphsnd.sums import add_last, mean_last

STEPS = 48  # of the search for the scale between groups; most searches end after six
CLOSE = 1e-10  # relative error at which it ends


@checked
@dataclass(frozen=True, eq=False)
class PerGroup:
    r"""DiCo within each group of a partition, and on request between groups: every level has its target and scale.

    Diversity between groups is the mean distance of two agents of different groups. A deviation is its group's mean
    :math:`m_g(o)` and a rest, and each has a scale,

    .. math:: b_i'(o) = t\, m_g(o) + s_g\, (b_i(o) - m_g(o)).

    Distances within group g are :math:`s_g` times what they were, whatever t is. With all :math:`s_g` given, the
    diversity between groups is a convex function of t, whose rising branch meets the target at one t. Where all of it
    is above the target, the level between groups gives way: t is where it is lowest, and the status says ``saturated``.

    Without ``between`` the scale is one number for each agent, ``[..., agents]``, the same within a group. With it, the
    scale is a matrix ``[..., agents, agents]`` that maps the deviations of all agents at an observation to scaled ones
    (:func:`~graphsnd.teams.controlled.scale_deviation`). State and status have the shape ``[..., levels]``: groups in
    order, then between. What ``status.measured`` says of the last level is the diversity between groups at the scales
    of the step, on its points.

    Args:
        groups: Agents of each group, at least two; every agent is in one of them.
        dico: With a target for each group, a tensor ``[groups]``; its design is used within each group.
        between: Wanted diversity between groups; not controlled when None. Measured on all pairs.

    Raises:
        InputError: For groups that are no partition, another number of targets, or a level between groups that no team
            can have beside these levels within.

    Example:
        >>> pairs = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.3])))
        >>> values = torch.tensor([[[0.0], [0.2], [5.0], [6.0]]])
        >>> pairs.step(values, pairs.initial())[0]
        tensor([0.5000, 0.5000, 0.3000, 0.3000], dtype=torch.float64)
        >>> both = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.3])), between=2.7)
        >>> (both.step(values, both.initial())[0].float() @ values).flatten() - 0.2
        tensor([-0.2000, -0.1000,  2.4000,  2.7000])
    """

    groups: Sequence[Sequence[int]]
    dico: DiCo
    _: KW_ONLY
    between: float | None = None

    applied: ClassVar[bool] = False

    def __post_init__(self) -> None:
        listed = [agent for group in self.groups for agent in group]
        if sorted(listed) != list(range(len(listed))):
            raise InputError("groups", f"to hold each agent 0 .. {len(listed) - 1} once", self.groups)
        if any(len(group) < 2 for group in self.groups):
            raise InputError("groups", "of at least 2 agents each", self.groups, "Diversity needs a pair.")
        if tuple(torch.as_tensor(self.dico.target).shape) != (len(self.groups),):
            fix = "Write DiCo(torch.tensor([0.1, 0.3])) for two groups."
            raise InputError("dico", f"with {len(self.groups)} targets, one for each group", self.dico.target, fix)
        if self.between is not None:
            self._check_between(self.between)

    def _check_between(self, between: float) -> None:
        check_number("between", between, above=0)
        if len(self.groups) < 2:
            raise InputError("between", "only beside two groups or more", between)
        # Two agents of a group are no further apart than both are from an agent of another: W_g <= 2 B_gh.
        sizes, within = [len(group) for group in self.groups], torch.as_tensor(self.dico.target).tolist()
        couples = list(combinations(range(len(sizes)), 2))
        pairs = [sizes[g] * sizes[h] for g, h in couples]
        least = sum(p * max(within[g], within[h]) / 2 for p, (g, h) in zip(pairs, couples, strict=True)) / sum(pairs)
        if between < least:
            fix = "By the triangle inequality; lower the levels within groups, or raise the one between them."
            raise InputError("between", f"to be at least {least:.4g} beside {within} within groups", between, fix)

    @property
    def agents(self) -> int:
        """Number of agents in all groups."""
        return sum(len(group) for group in self.groups)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels: of the groups, and between them."""
        within = tuple(f"group {place}" for place in range(len(self.groups)))
        return within if self.between is None else (*within, "between groups")

    @property
    def design(self) -> Design | Graph | str:
        """The pairs to measure within each group."""
        return self.dico.design

    @property
    def through(self) -> bool:
        """Whether gradients flow through measurements into the scale."""
        return self.dico.through

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement, ``[levels]``, or ``[*shape, levels]``."""
        return State.start((*(shape or ()), len(self.levels)), device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update with points of agents, or without ``between`` with diversities ``[..., groups]``.

        See :meth:`~graphsnd.control.Controller.step`.
        """
        given = wrap_tensor(measured)
        within = self.measure(given.values, generator, norm=given.norm) if isinstance(given, Points) else given
        if within.value.shape[-1:] != (len(self.groups),):
            raise InputError("measured", f"with shape (..., {len(self.groups)})", tuple(within.value.shape))
        if state.estimate.shape[-1:] != (len(self.levels),):
            expected = f"with shape (..., {len(self.levels)})"
            raise InputError("state", expected, shape_of(state.estimate), "Use initial().")
        dico, count = self._dico_on(within.value.device), len(self.groups)
        scale, after, status = dico.step(within, _select_levels(state, slice(count)))
        if self.between is None:
            return self._to_agents(scale), after, replace(status, levels=self.levels)
        if not isinstance(given, Points) or given.norm is not Norm.EUCLIDEAN:
            raise InputError("measured", "to be points under the Euclidean norm for a level between groups", "others")
        last, after_last, report = self._step_between(given.values, scale, _select_levels(state, slice(count, None)))
        both = State(*map(_join_levels, vars(after).values(), vars(after_last).values()))
        joined = Status(*map(_join_levels, vars(status).values(), vars(report).values()))
        return self._to_agents(_join_levels(scale, last)), both, replace(joined, levels=self.levels)

    def scale(self, state: State) -> Tensor:
        """Return for every agent the scale of its group; with a level between groups the matrix of all."""
        dico, count = self._dico_on(state.estimate.device), len(self.groups)
        scale = dico.scale(_select_levels(state, slice(count)))
        if self.between is not None:
            last = _select_levels(state, slice(count, None))
            scale = _join_levels(scale, torch.where(last.begun, self.between / last.estimate, 1.0))
        return self._to_agents(scale)

    def measure(self, values: Tensor, generator: Generators = None, *, norm: Norm = Norm.EUCLIDEAN) -> Measurement:
        """Return the diversity within every group, of points ``[..., observations, agents, features]``.

        Returns:
            ``[..., groups]``.

        Raises:
            InputError: For another number of agents.
        """
        if values.dim() < 3 or values.shape[-2] != self.agents:
            raise InputError("values", f"(..., observations, {self.agents} agents, features)", shape_of(values))
        measurements = []
        for group in self.groups:
            chosen = values.index_select(-2, torch.tensor(list(group), device=values.device))
            measurements.append(measure_points(self.design, chosen, generator, norm=norm))
        parts = [[getattr(each, name) for each in measurements] for name in ("value", "pairs", "empty")]
        return Measurement(*(torch.stack(part, -1) for part in parts))

    def _step_between(self, values: Tensor, scale: Tensor, state: State) -> tuple[Tensor, State, Status]:
        """Return the scale of group means ``[..., 1]``, its state, and what happened, given the scales within groups.

        The state holds the target over the smoothed scale, as DiCo's does. The scale itself is smoothed: near 0, where
        geometry gives out, its inverse is anything.
        """
        assert self.between is not None
        target, (low, high), tau = self.between, self.dico.bounds, self.dico.tau
        aa, ab, bb = self._across(values if self.through else values.detach(), scale)
        wanted, reached = solve_scale(aa, ab, bb, target)
        valid = is_diversity(mean_last(aa)) & is_diversity(mean_last(bb))
        wanted, reached, valid = (part.unsqueeze(-1) for part in (wanted, reached, valid))
        before = torch.where(state.begun, target / torch.where(state.begun, state.estimate, 1.0), 1.0)
        fresh = wanted.clamp(low, high)
        first = torch.ones_like(fresh) if self.dico.bootstrap is Bootstrap.TARGET else fresh
        t = torch.where(valid, torch.where(state.begun, (1 - tau) * before + tau * fresh, first), before)
        applied = mean_last((t * (t * aa + 2 * ab) + bb).clamp_min(0).sqrt()).unsqueeze(-1).detach()
        estimate, begun = target / t.detach(), state.begun | valid
        after = State(torch.where(begun, estimate, state.estimate), begun, state.integral, state.steps + 1)
        saturated = valid & ~(reached & (wanted >= low) & (wanted <= high))
        no, at = torch.zeros_like(valid), torch.full_like(applied, target)
        zero = valid & (applied == 0)
        return t, after, Status(at, applied, after.estimate, t.detach(), saturated, zero, no, ~valid)

    def _across(self, values: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return squares and products of both parts of the difference of each two agents of different groups.

        The parts are that of group means and that of scaled rests; float64 ``[..., observations x pairs]`` each.
        """
        owner, wide = self._owners(values.device), values.double()
        mean = self._mean_matrix(values.device) @ wide
        rest = (wide - mean) * scale[..., owner].unsqueeze(-2).unsqueeze(-1)
        i, j = torch.combinations(torch.arange(self.agents, device=values.device)).unbind(1)
        across = owner[i] != owner[j]
        a, b = (part.index_select(-2, i[across]) - part.index_select(-2, j[across]) for part in (mean, rest))
        return add_last(a * a).flatten(-2), add_last(a * b).flatten(-2), add_last(b * b).flatten(-2)

    def _dico_on(self, device: torch.device) -> DiCo:
        return self.dico.retarget(copy_without_waiting(torch.as_tensor(self.dico.target), device))

    def _owners(self, device: torch.device) -> Tensor:
        """Return the group of each agent, int64 ``[agents]``."""
        owner = {agent: place for place, group in enumerate(self.groups) for agent in group}
        return copy_without_waiting(torch.tensor([owner[agent] for agent in range(self.agents)]), device)

    def _mean_matrix(self, device: torch.device) -> Tensor:
        """Return the matrix that puts the mean of its group in place of each agent, float64 ``[agents, agents]``."""
        owner = self._owners(device)
        alike = (owner == owner.unsqueeze(1)).double()
        return alike / alike.sum(1, keepdim=True)

    def _to_agents(self, scale: Tensor) -> Tensor:
        own = scale[..., self._owners(scale.device)]
        if self.between is None:
            return own
        mean = self._mean_matrix(scale.device)
        rest = torch.eye(self.agents, dtype=mean.dtype, device=mean.device) - mean
        return scale[..., -1, None, None] * mean + own.unsqueeze(-1) * rest


def _join_levels(within: Any, between: Any) -> Any:
    return torch.cat([within, between], -1) if isinstance(within, Tensor) else within


def _select_levels(state: State, levels: slice) -> State:
    return State(*(part[..., levels] for part in state.tensors().values()))


def solve_scale(aa: Tensor, ab: Tensor, bb: Tensor, target: float) -> tuple[Tensor, Tensor]:
    r"""Return the scale t at which the mean of :math:`|t a + b|` is the target, ``[...]``, and whether there is one.

    The mean f is convex in t. To the right of the wanted t, and only there, f is above the target and rises. So a
    bracket shrinks around it: by Newton's steps from its right end, which for a convex function do not pass a solution,
    and by halves where there is none and they would. What is left then is the t of the lowest mean.

    Args:
        aa: Squares of a, ``[..., k]``, float64.
        ab: Products of a and b.
        bb: Squares of b.
        target: Above 0.

    Returns:
        The scale, differentiable where there is one; infinite where all a are 0.

    Example:
        >>> squares = (torch.tensor([value], dtype=torch.float64) for value in (4.0, 0.0, 9.0))
        >>> solve_scale(*squares, 5.0)  # sqrt(4 t^2 + 9) = 5
        (tensor(2., dtype=torch.float64), tensor(True))
    """

    def evaluate(t: Tensor) -> tuple[Tensor, Tensor]:
        t = t.unsqueeze(-1)
        length = (t * (t * aa + 2 * ab) + bb).clamp_min(0).sqrt()
        slope = torch.where(length > 0, (t * aa + ab) / torch.where(length > 0, length, 1), 0)
        return mean_last(length), mean_last(slope)

    with torch.no_grad():
        speed = mean_last(aa.sqrt())
        moves = speed > 0
        low = torch.zeros_like(speed)
        high = torch.where(moves, (target + mean_last(bb.sqrt())) / torch.where(moves, speed, 1), 0)
        value, slope = evaluate(high)
        for _ in range(STEPS):
            done = ((value - target).abs() <= CLOSE * target) | (high - low <= CLOSE * high)
            if done.device.type == "cpu" and bool(done.all()):
                break
            newton = high - (value - target) / torch.where(slope > 0, slope, 1)
            t = torch.where(newton > low, newton, (low + high) / 2)
            here, rise = evaluate(t)
            right = (here > target) & (rise > 0)
            low = torch.where(right, low, t)
            high, value, slope = (torch.where(right, *pair) for pair in ((t, high), (here, value), (rise, slope)))
        reached = moves & (value <= (1 + 1e-6) * target)
    # One more step of Newton's, with the gradient of the distances: that of the solution itself.
    exact = high - (evaluate(high)[0] - target) / torch.where(slope > 0, slope, 1)
    return torch.where(moves, torch.where(reached, exact, high), torch.inf), reached
