"""Where distances come from: a behaviour that has been evaluated, or a team that is evaluated as far as needed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.designs import Template
from graphsnd.designs.relabelled import find_neighbours
from graphsnd.designs.subsets import integer_seed
from graphsnd.errors import InputError, check_tensor
from graphsnd.kernels.dispatch import sum_over_blocks
from graphsnd.kernels.pairfunctions import extremes, slowness
from graphsnd.kernels.relabelling import can_sum, regular_sums
from graphsnd.sums import add_last
from graphsnd.teams import Team, as_team

BLOCK = 1 << 24  # numbers in one block of points


class Source(ABC):
    """Shared observations, ``n`` agents, and a distance."""

    agents: int
    observations: int
    features: int  # of the embedded points
    device: torch.device
    policies = False  # whether policies have to be evaluated
    proportional = True  # whether asking few agents costs less than asking all
    slowness = 1.0  # of a distance, in Euclidean ones of as many features
    batch_shape: Sequence[int]  # how the observations were laid out before they were pooled
    distance: Distance
    backend: str  # of the kernels
    family: str  # of the behaviours
    names: tuple[str, ...] | None  # of the agents
    team: Team | None = None  # whose policies answer, or have answered
    noise_floor: float | None = None  # of samples

    @abstractmethod
    def block(self, start: int, stop: int) -> Points:
        """Return all agents on observations ``start`` to ``stop``."""

    @abstractmethod
    def select(self, index: Tensor, agents: Tensor | None) -> Points:
        """Return ``agents [t, size]``, or all, on observations ``index [t]``."""

    @abstractmethod
    def bound(self) -> float | None:
        """Return a certified upper bound on every distance at every observation, or None."""

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Return contiguous ranges of observations whose points fit in memory together."""
        rows = max(1, BLOCK // (self.agents * self.features))
        return ((i, min(i + rows, self.observations)) for i in range(0, self.observations, rows))

    def join(self, rows: list[Tensor]) -> Tensor:
        """Return what was measured at each observation, block by block, as one tensor on the CPU."""
        return torch.cat(rows)

    def add(self, sums: Tensor) -> Tensor:
        """Return sums over all observations, from those over the blocks."""
        return sums

    def regular_sums(self, index: Tensor, template: Template, generator: torch.Generator) -> Tensor | None:
        """Return sums over edges laid on random agents, see :func:`~graphsnd.kernels.relabelling.regular_sums`.

        None where the distances themselves are needed for them.
        """
        return None

    def pair_means(self, index: Tensor) -> Tensor:
        """Return the mean distance over all pairs at observations ``index [t]``, float64 ``[t]`` on the CPU."""
        rows = max(1, BLOCK // (self.agents * self.features))
        parts = (self.select(part, None) for part in index.to(self.device).split(rows))
        totals = [kernels.pair_totals(part, backend=self.backend).cpu() for part in parts]
        return torch.cat(totals) / math.comb(self.agents, 2)

    def distances(self, index: Tensor, agents: Tensor, template: Template) -> Tensor:
        """Return ``[t, m]`` along the template's edges, with ``agents [t, size]`` at observations ``index [t]``."""
        edges = template.edges.to(self.device)
        # Policies are evaluated for no other agents; points that are known are read in whole rows where most count.
        if template.size == self.agents or (not self.policies and 2 * template.size > self.agents):
            return kernels.observation_edges(self.select(index, None), agents[:, edges], backend=self.backend)
        points = self.select(index, agents)
        return kernels.observation_edges(points, edges.expand(len(index), -1, -1), backend=self.backend)


class BehaviorSource(Source):
    """Points of all agents at all observations, in memory."""

    def __init__(
        self, behavior: Behavior, distance: Distance | None, backend: str = "auto", *, fewest: int = 2
    ) -> None:
        self.given = embed(behavior, distance, fewest=fewest)
        self.distance, self.backend, self.names = as_distance(behavior, distance), backend, behavior._names
        self.family, self.batch_shape = type(behavior).__name__, behavior.batch_shape
        self.points = points = self.given.detach()
        self.agents, self.observations, self.features = points.agents, points.observations, points.features
        self.device, self.slowness = points.parts[0].device, slowness(points)

    def block(self, start: int, stop: int) -> Points:  # noqa: D102
        return self.points.slice(start, stop)

    def blocks(self) -> Iterator[tuple[int, int]]:  # noqa: D102
        return iter([(0, self.observations)])

    def select(self, index: Tensor, agents: Tensor | None) -> Points:  # noqa: D102
        values = self.points.values[index] if agents is None else self.points.values[index.unsqueeze(1), agents]
        return replace(self.points, values=values)

    def regular_sums(self, index: Tensor, template: Template, generator: torch.Generator) -> Tensor | None:  # noqa: D102
        neighbours = find_neighbours(template, self.device) if can_sum(self.points, self.backend) else None
        if neighbours is None:
            return None
        return regular_sums(self.points, index.to(self.device), neighbours, integer_seed(generator))

    def bound(self) -> float:  # noqa: D102
        return min(largest_distance(self.points), self.distance.maximum or math.inf)


class TeamSource(Source):
    """Policies and observations; nothing is evaluated before it is needed."""

    team: Team
    policies = True

    def __init__(
        self, team: Team, observations: Tensor, distance: Distance | None, backend: str = "auto", *, fewest: int = 2
    ) -> None:
        given = team.read_observations(observations)
        fix = "A single observation: observations[None]. One number per observation: observations[:, None]."
        observations = check_tensor("observations", given, 1 + team.feature_dims, "(..., features)", fix=fix)
        inputs = observations.detach().flatten(0, -1 - team.feature_dims)
        self.batch_shape = observations.shape[: -team.feature_dims]
        self.team, self.inputs, self.backend, self.names = team, inputs, backend, team._names
        if not len(self.inputs):
            raise InputError("observations", "to be at least one", "none")
        device = self.inputs.device
        with torch.no_grad():
            if not team.proportional:
                # A joint module tells its size, and its agents' names, only when it is evaluated.
                self.names = team.evaluate(self.inputs[:1])._names
            if team.agents < fewest:
                raise InputError("team", "of at least 2 agents", team.agents, "Diversity needs a pair.")
            pilot = self.inputs[:2]
            first = team.partial(pilot, torch.arange(fewest, device=device).expand(len(pilot), -1))
        self.distance, self.family = as_distance(first, distance), type(first).__name__
        points = first.embed(self.distance)
        self.agents, self.observations, self.features = team.agents, len(self.inputs), points.features
        self.device, self.proportional, self.slowness = device, team.proportional, slowness(points)

    @torch.no_grad()
    def block(self, start: int, stop: int) -> Points:  # noqa: D102
        return self.team.evaluate(self.inputs[start:stop]).embed(self.distance)

    @torch.no_grad()
    def select(self, index: Tensor, agents: Tensor | None) -> Points:  # noqa: D102
        inputs = self.inputs[index]
        behavior = self.team.evaluate(inputs) if agents is None else self.team.partial(inputs, agents)
        return behavior.embed(self.distance)

    def bound(self) -> float | None:  # noqa: D102
        return self.team.bound(self.distance)


def as_source(team: Any, observations: Any, distance: Distance | None, backend: str, *, fewest: int = 2) -> Source:
    """Wrap a behaviour without observations, or a team (or what :func:`~graphsnd.teams.as_team` accepts) with them."""
    if isinstance(team, Source):
        return team
    if isinstance(team, Behavior):
        if observations is not None:
            raise InputError("observations", "only beside a team", "a behaviour, which has been evaluated")
        return BehaviorSource(team, distance, backend, fewest=fewest)
    policies = isinstance(team, Team | Sequence | Mapping) and not isinstance(team, str)
    if observations is None and not policies and not callable(team):
        embed(team, distance)  # raises: it is neither policies nor a behaviour, and the error says how to wrap it
    if observations is None:
        fix = "Pass a tensor (..., features). Where these are actions, not policies: graphsnd.Deterministic(actions)."
        raise InputError("observations", "beside a team of policies", None, fix)
    made = as_team(team)
    if not made.whole:
        return TeamSource(made, observations, distance, backend, fewest=fewest)
    with torch.no_grad():  # sequences and joint observations are not taken apart
        evaluated = BehaviorSource(made.evaluate(observations), distance, backend, fewest=fewest)
    evaluated.team = made
    return evaluated


@sum_over_blocks
def largest_distance(points: Points) -> float:
    """Return an upper bound on the distance of any two agents at any observation.

    From the box around the agents of each observation where the norm is one of a difference; otherwise, by the triangle
    inequality, from the two largest distances to the mean agent.
    """
    points = points.detach().metric()
    # Rounded up by more than the rounding of the distances, so that "certified" survives float32.
    slack = 1 + 16 * torch.finfo(points.result_dtype).eps
    if points.norm in (Norm.EUCLIDEAN, Norm.HALF_L1):
        sides = torch.cat([high - low for high, low in map(extremes, points.parts)], dim=-1).double()
        sizes = add_last(sides.square()).sqrt() if points.norm is Norm.EUCLIDEAN else add_last(sides) / 2
        return float(sizes.max()) * slack
    # Covariances without a rotation between them are farther apart, by a percent or two, and need no SVD.
    norm = Norm.EUCLIDEAN if points.norm is Norm.BURES else points.norm
    with_center = replace(points, values=torch.cat([points.values, points.center().values], dim=1), norm=norm)
    others = torch.arange(points.agents, device=points.values.device)
    star = torch.stack([others, torch.full_like(others, points.agents)], dim=1)
    radii = kernels.observation_edges(with_center, star.expand(points.observations, -1, -1))
    return float(radii.topk(2, dim=1).values.sum(dim=1).max()) * slack
