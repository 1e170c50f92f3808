"""Where distances come from: a behaviour that has been evaluated, or policies that are evaluated as far as needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.designs.template import Template, find_neighbours, integer_seed
from graphsnd.errors import InputError, check_tensor
from graphsnd.kernels.dispatch import sum_over_blocks
from graphsnd.kernels.pairfunctions import extremes, slowness
from graphsnd.kernels.relabelling import can_sum, regular_sums
from graphsnd.sums import add_last
from graphsnd.teams import Team, as_team

BLOCK = 1 << 24  # numbers in one block of points of policies


@dataclass(frozen=True, eq=False)
class Source:
    """Agents on shared observations, and a distance between what they do."""

    distance: Distance
    family: str  # name of the behaviour's class
    names: tuple[str, ...] | None  # names of the agents
    agents: int
    batch_shape: Sequence[int]  # shape of the observations before they were pooled
    like: Points  # some of the points, for their kind and device
    backend: str  # of the kernels
    points: Points | None  # all agents at all observations; None for policies that are evaluated when asked
    team: Team | None = None  # the policies
    inputs: Tensor | None = None  # their observations, [observations, features]

    @property
    def observations(self) -> int:
        """Number of observations."""
        return math.prod(self.batch_shape)

    @property
    def device(self) -> torch.device:
        """Where points are computed."""
        return self.like.parts[0].device

    @property
    def about(self) -> dict[str, Any]:
        """What every estimate says of the team, see :func:`~graphsnd.estimation.intervals.make_estimate`."""
        own = {"agents": self.agents, "observations": self.observations, "distance": self.distance.name}
        return {**own, "names": self.names or ()}

    @property
    def evaluations(self) -> int:
        """Number of policies evaluated at each observation where all agents are asked; 0 for a behaviour."""
        return self.agents if self.points is None else 0

    def block(self, start: int, stop: int) -> Points:
        """Return all agents on observations ``start`` to ``stop``."""
        if self.points is not None:
            return self.points if stop - start == self.observations else self.points.slice(start, stop)
        return self._ask(None, slice(start, stop))

    def blocks(self) -> Iterator[tuple[Points, float]]:
        """Yield all agents on contiguous observations that fit in memory, and their share of all observations."""
        rows = self.observations
        if self.points is None:
            rows = max(1, BLOCK // (self.agents * self.like.features))
        for start in range(0, self.observations, rows):
            points = self.block(start, min(start + rows, self.observations))
            yield points, points.observations / self.observations

    def select(self, index: Tensor, agents: Tensor | None) -> Points:
        """Return ``agents [t, size]``, or all, on observations ``index [t]``."""
        if self.points is None:
            return self._ask(agents, index)
        values = self.points.values[index] if agents is None else self.points.values[index.unsqueeze(1), agents]
        return replace(self.points, values=values)

    @torch.no_grad()
    def _ask(self, agents: Tensor | None, index: Tensor | slice) -> Points:
        assert self.team is not None
        assert self.inputs is not None
        inputs = self.inputs[index]
        behavior = self.team.evaluate(inputs) if agents is None else self.team.partial(inputs, agents)
        return behavior.embed(self.distance)

    def bound(self) -> float | None:
        """Return a certified upper bound on every distance at every observation, or None."""
        if self.points is None:
            assert self.team is not None
            return self.team.bound(self.distance)
        return min(largest_distance(self.points), self.distance.maximum or math.inf)

    def slowness(self) -> float:
        """Return the time of a distance, in those of Euclidean ones of as many features."""
        return slowness(self.like)

    def pair_means(self, index: Tensor) -> Tensor:
        """Return the mean distance over all pairs at observations ``index [t]``, float64 ``[t]`` on the CPU."""
        rows = max(1, BLOCK // (self.agents * self.like.features))
        parts = (self.select(part, None) for part in index.to(self.device).split(rows))
        totals = [kernels.pair_totals(part, backend=self.backend).cpu() for part in parts]
        return torch.cat(totals) / math.comb(self.agents, 2)

    def distances(self, index: Tensor, agents: Tensor, template: Template) -> Tensor:
        """Return ``[t, m]`` along the template's edges, with ``agents [t, size]`` at observations ``index [t]``."""
        edges = template.list_edges(self.device)
        # Policies are evaluated for no other agents; points that are known are read in whole rows where most count.
        if template.size == self.agents or (self.points is not None and 2 * template.size > self.agents):
            return kernels.observation_edges(self.select(index, None), agents[:, edges], backend=self.backend)
        points = self.select(index, agents)
        return kernels.observation_edges(points, edges.expand(len(index), -1, -1), backend=self.backend)

    def regular_sums(self, index: Tensor, template: Template, generator: torch.Generator) -> Tensor | None:
        """Return sums over edges laid on random agents, see :func:`~graphsnd.kernels.relabelling.regular_sums`.

        None where the distances themselves are needed for them.
        """
        if self.points is None or not can_sum(self.points, self.backend):
            return None
        neighbours = find_neighbours(template, self.device)
        if neighbours is None:
            return None
        return regular_sums(self.points, index.to(self.device), neighbours, integer_seed(generator))


def as_source(team: Any, observations: Any, distance: Distance | None, backend: str) -> Source:
    """Return a behaviour, or a team (or what :func:`~graphsnd.teams.as_team` accepts) on observations, as a source."""
    if isinstance(team, Behavior):
        if observations is not None:
            raise InputError("observations", "only beside a team", "a behaviour, which has been evaluated")
        return _from_behavior(team, distance, backend, None)
    policies = isinstance(team, Team | Sequence | Mapping) and not isinstance(team, str)
    if observations is None and not policies and not callable(team):
        embed(team, distance)  # raises: it is neither policies nor a behaviour, and the error says how to wrap it
    if observations is None:
        fix = "Pass a tensor (..., features). Where these are actions, not policies: graphsnd.Deterministic(actions)."
        raise InputError("observations", "beside a team of policies", None, fix)
    made = as_team(team)
    if made.whole:  # sequences and joint observations are not taken apart
        with torch.no_grad():
            return _from_behavior(made.evaluate(observations), distance, backend, made)
    return _from_policies(made, observations, distance, backend)


def _from_behavior(behavior: Behavior, distance: Distance | None, backend: str, team: Team | None) -> Source:
    points = embed(behavior, distance).detach()
    return Source(
        distance=as_distance(behavior, distance),
        family=type(behavior).__name__,
        names=behavior._names,
        agents=points.agents,
        batch_shape=behavior.batch_shape,
        like=points,
        backend=backend,
        points=points,
        team=team,
    )


@torch.no_grad()
def _from_policies(team: Team, observations: Any, distance: Distance | None, backend: str) -> Source:
    given = team.read_observations(observations)
    fix = "A single observation: observations[None]. One number per observation: observations[:, None]."
    observations = check_tensor("observations", given, 1 + team.feature_dims, "(..., features)", fix=fix)
    inputs = observations.detach().flatten(0, -1 - team.feature_dims)
    if not len(inputs):
        raise InputError("observations", "to be at least one", "none")
    # A joint module tells its size, and its agents' names, only when it is evaluated.
    names = team._names if team.proportional else team.evaluate(inputs[:1])._names
    if team.agents < 2:
        raise InputError("team", "of at least 2 agents", team.agents, "Diversity needs a pair.")
    pilot = inputs[:2]
    first = team.partial(pilot, torch.arange(2, device=inputs.device).expand(len(pilot), -1))
    chosen = as_distance(first, distance)
    return Source(
        distance=chosen,
        family=type(first).__name__,
        names=names,
        agents=team.agents,
        batch_shape=observations.shape[: -team.feature_dims],
        like=first.embed(chosen),
        backend=backend,
        points=None,
        team=team,
        inputs=inputs,
    )


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
