"""A level of diversity for each group of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior import Norm, Points
from graphsnd.control.controllers import Generators, Measured
from graphsnd.control.dico import DiCo
from graphsnd.control.measurement import Measurement, copy_without_waiting, measure_points
from graphsnd.control.state import State, Status
from graphsnd.designs import Design
from graphsnd.errors import InputError, shape_of


@checked
@dataclass(frozen=True, eq=False)
class PerGroup:
    """DiCo within each group of a partition: every group has its own target, estimate and scale.

    Diversity between groups is not controlled. The scale is one number for each agent, ``[..., agents]``, the same
    within a group; state and status have the shape ``[..., groups]``.

    Args:
        groups: Agents of each group, at least two; every agent is in one of them.
        dico: With a target for each group, a tensor ``[groups]``; its design is used within each group.

    Raises:
        InputError: For groups that are no partition, or another number of targets.

    Example:
        >>> pairs = PerGroup([[0, 1], [2, 3]], DiCo(torch.tensor([0.1, 0.3])))
        >>> pairs.step(torch.tensor([[[0.0], [0.2], [5.0], [6.0]]]), pairs.initial())[0]
        tensor([0.5000, 0.5000, 0.3000, 0.3000], dtype=torch.float64)
    """

    groups: Sequence[Sequence[int]]
    dico: DiCo

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

    @property
    def agents(self) -> int:
        """Number of agents in all groups."""
        return sum(len(group) for group in self.groups)

    @property
    def design(self) -> Design | str:
        """The pairs to measure within each group."""
        return self.dico.design

    @property
    def through(self) -> bool:
        """Whether gradients flow through measurements into the scale."""
        return self.dico.through

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Return the state before the first measurement, ``[groups]``, or ``[*shape, groups]``."""
        return State.start((*(shape or ()), len(self.groups)), device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Update with points of agents, or diversities ``[..., groups]``: :meth:`~graphsnd.control.Controller.step`."""
        if isinstance(measured, Points):
            measured = self.measure(measured.values, generator, norm=measured.norm)
        elif isinstance(measured, Tensor):
            measured = self.measure(measured, generator) if measured.dim() > 2 else Measurement.given(measured)
        elif not isinstance(measured, Measurement):
            raise InputError("measured", "to be points, diversities or a Measurement", type(measured).__name__)
        if measured.value.shape[-1:] != (len(self.groups),):
            raise InputError("measured", f"with shape (..., {len(self.groups)})", tuple(measured.value.shape))
        scale, after, status = self._dico_on(measured.value.device).step(measured, state)
        return self._to_agents(scale), after, status

    def scale(self, state: State) -> Tensor:
        """Return for every agent the scale of its group."""
        return self._to_agents(self._dico_on(state.estimate.device).scale(state))

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

    def _dico_on(self, device: torch.device) -> DiCo:
        return self.dico.retarget(copy_without_waiting(torch.as_tensor(self.dico.target), device))

    def _to_agents(self, scale: Tensor) -> Tensor:
        owner = {agent: place for place, group in enumerate(self.groups) for agent in group}
        return scale[..., [owner[agent] for agent in range(self.agents)]]
