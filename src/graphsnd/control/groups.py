"""A level of diversity for each group of agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.behavior import Norm, Points
from graphsnd.control.controllers import Generators, Measured
from graphsnd.control.dico import BOUNDS, Bootstrap, DiCo
from graphsnd.control.measurement import Measurement, measure_points
from graphsnd.control.state import State, Status
from graphsnd.designs import Complete, Design
from graphsnd.errors import InputError


@dataclass(frozen=True, eq=False)
class PerGroup:
    """DiCo within each group of a partition: every group has a target, an estimate and a scale of its own.

    Diversity between groups is what it becomes. The scale is one number for each agent, ``[..., agents]``, the same
    within a group; state and status have the shape ``[..., groups]``.

    Args:
        groups: Agents of each group, at least two; every agent is in one of them.
        targets: One for each group, above 0.
        tau: As for :class:`~graphsnd.control.DiCo`, and so the rest.
        bootstrap: What first estimates are.
        bounds: Least and largest scale.
        design: Used within each group.
        through: Whether gradients flow through measurements.

    Raises:
        InputError: For groups that are no partition, or other values out of range.

    Example:
        >>> pairs = PerGroup([[0, 1], [2, 3]], [0.1, 0.3])
        >>> pairs.step(torch.tensor([[[0.0], [0.2], [5.0], [6.0]]]), pairs.initial())[0]
        tensor([0.5000, 0.5000, 0.3000, 0.3000], dtype=torch.float64)
    """

    groups: Sequence[Sequence[int]]
    targets: Sequence[float]
    _: KW_ONLY
    tau: float = 0.01
    bootstrap: Bootstrap = Bootstrap.MEASURED
    bounds: tuple[float, float] = BOUNDS
    design: Design = Complete()  # noqa: RUF009
    through: bool = False

    applied: ClassVar[bool] = False

    def __post_init__(self) -> None:
        listed = [agent for group in self.groups for agent in group]
        if sorted(listed) != list(range(len(listed))):
            raise InputError("groups", f"to hold each agent 0 .. {len(listed) - 1} once", self.groups)
        if any(len(group) < 2 for group in self.groups):
            raise InputError("groups", "of at least 2 agents each", self.groups, "Diversity needs a pair.")
        if len(self.targets) != len(self.groups):
            raise InputError("targets", f"to be {len(self.groups)}, one for each group", len(self.targets))
        self._inner(torch.device("cpu"))

    @property
    def agents(self) -> int:
        """In all groups."""
        return sum(len(group) for group in self.groups)

    def initial(self, shape: Sequence[int] | None = None, device: torch.device | str | None = None) -> State:
        """Nothing measured, ``[groups]``, or ``[*shape, groups]``."""
        return State.start((*(shape or ()), len(self.groups)), device)

    def step(self, measured: Measured, state: State, *, generator: Generators = None) -> tuple[Tensor, State, Status]:
        """Take in points of all agents, or diversities ``[..., groups]``, see :meth:`Controller.step`."""
        if isinstance(measured, Points):
            measured = self.measure(measured.values, generator, norm=measured.norm)
        elif isinstance(measured, Tensor) and measured.dim() > 2:
            measured = self.measure(measured, generator)
        elif isinstance(measured, Tensor):
            measured = Measurement.given(measured)
        if measured.value.shape[-1:] != (len(self.groups),):
            raise InputError("measured", f"with shape (..., {len(self.groups)})", tuple(measured.value.shape))
        scale, after, status = self._inner(measured.value.device).step(measured, state)
        return self._to_agents(scale), after, status

    def scale(self, state: State) -> Tensor:
        """For every agent that of its group."""
        return self._to_agents(self._inner(state.estimate.device).scale(state))

    def measure(self, values: Tensor, generator: Generators = None, *, norm: Norm = Norm.EUCLIDEAN) -> Measurement:
        """Diversity within every group, of points ``[..., observations, agents, features]``: ``[..., groups]``.

        Raises:
            InputError: For another number of agents.
        """
        if values.shape[-2] != self.agents:
            raise InputError("values", f"of {self.agents} agents", values.shape[-2])
        found = []
        for group in self.groups:
            chosen = values.index_select(-2, torch.tensor(list(group), device=values.device))
            found.append(measure_points(self.design, chosen, generator, norm=norm))
        parts = [[getattr(one, name) for one in found] for name in ("value", "pairs", "empty")]
        return Measurement(*(torch.stack(part, -1) for part in parts))

    def _inner(self, device: torch.device) -> DiCo:
        target = torch.tensor(list(self.targets), dtype=torch.float64)
        if device.type == "cuda":
            target = target.pin_memory().to(device, non_blocking=True)
        options = {"tau": self.tau, "bootstrap": self.bootstrap, "bounds": self.bounds, "through": self.through}
        return DiCo(1.0, **options).retarget(target) if device.type == "cuda" else DiCo(target, **options)  # type: ignore[arg-type]

    def _to_agents(self, scale: Tensor) -> Tensor:
        owner = [0] * self.agents
        for place, group in enumerate(self.groups):
            for agent in group:
                owner[agent] = place
        return scale[..., owner]
