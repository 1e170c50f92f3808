"""Sources of distances: an evaluated behaviour, or policies that are evaluated as needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from typing_extensions import Unpack

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance, embed
from graphsnd.behavior.points import Norm, Points
from graphsnd.designs import Design
from graphsnd.designs.template import Template
from graphsnd.errors import InputError, check_tensor
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.kernels.dispatch import sum_over_blocks
from graphsnd.kernels.reference import extremes
from graphsnd.sums import add_last
from graphsnd.teams.policies import PoliciesTeam, TeamOptions, as_team, hint_shared
from graphsnd.teams.team import Team

BLOCK, WIDTH = 1 << 24, 8  # numbers in one block of points, and of one agent where that is not known yet
TRIED = 256  # observations at which a zero is explained


@dataclass(eq=False)
class Source:
    """Agents on shared observations, and a distance between their behaviours.

    Policies are evaluated when they are asked, and each answer says which family it is and which distance fits.
    """

    agents: int
    observations: int
    batch_shape: Sequence[int]  # shape of the observations before they were pooled
    names: tuple[str, ...] | None  # names of the agents
    device: torch.device  # where points are computed
    backend: str  # of the kernels
    asked: Distance | str | None  # the distance that was asked for
    points: Points | None = None  # all agents at all observations; None for policies
    team: Team | None = None  # the policies
    inputs: Tensor | None = None  # their observations, [observations, features]
    by_agent: bool = False  # whether the last axis of the observations counts the agents that made them
    distance: Distance = field(init=False, repr=False)  # of policies once some have answered
    family: str = field(init=False, repr=False)  # the class of what they answered

    @cached_property
    def like(self) -> Points:
        """Some of the points, for their kind; policies are asked for them."""
        return self.ask_two() if self.points is None else self.points

    def ask_two(self) -> Points:
        """Return what two agents do at two observations; it says the family of policies, and the distance that fits."""
        index = torch.arange(min(2, self.observations), device=self.device)
        return self.select(index, torch.arange(2, device=self.device).expand(len(index), -1))

    @property
    def evaluations(self) -> int:
        """Number of policies evaluated at each observation where all agents are asked; 0 for a behaviour."""
        return self.agents if self.points is None else 0

    def blocks(self) -> Iterator[tuple[Points, float]]:
        """Yield all agents on contiguous observations that fit in memory, and their share of all observations."""
        rows = self.observations if self.points is not None else max(1, BLOCK // (self.agents * WIDTH))
        for start in range(0, self.observations, rows):
            points = self.select(slice(start, start + rows), None)
            yield points, points.observations / self.observations

    @torch.no_grad()
    def select(self, index: Tensor | slice, agents: Tensor | None) -> Points:
        """Return ``agents [t, size]``, or all, on observations ``index [t]``."""
        if self.points is not None:
            if isinstance(index, slice):
                return self.points
            index = index.to(self.device)
            if agents is None:
                return self.points.replace(tuple(part.index_select(0, index) for part in self.points.parts))
            return self.points.replace(tuple(part[index.unsqueeze(1), agents] for part in self.points.parts))
        assert self.team is not None
        assert self.inputs is not None
        inputs = self.inputs[index]
        behavior = self.team.evaluate(inputs) if agents is None else self.team.partial(inputs, agents)
        self.distance, self.family = as_distance(behavior, self.asked), type(behavior).__name__
        return behavior.embed(self.distance)

    def bound(self) -> float | None:
        """Return a certified upper bound on every distance at every observation, or None."""
        like = self.like  # policies say with it which distance fits
        if self.points is not None:
            return min(largest_distance(like), self.distance.maximum or math.inf)
        assert self.team is not None
        return self.team.bound(self.distance)

    @torch.no_grad()
    def explain_zero(self) -> str:
        """Return the reason for an SND of exactly 0: shared parameters, or constant outputs."""
        if self.team is not None and (common := self.team.alike()):
            return f"all {self.agents} agents {common}"
        places = torch.linspace(0, self.observations - 1, min(self.observations, TRIED), device=self.device)
        values = self.select(places.round().long(), None).values
        if not bool((values == values[:, :1]).all()):
            return "the agents of each pair that was measured act alike on these observations."
        first, top = values[0, 0], values.abs().max()
        if len(values) > 1 and bool((values == first).all()):
            numbers = ", ".join(f"{number:.3g}" for number in first[:8].tolist())
            action = f": the action {numbers}" if self.family == "Deterministic" else ""
            return f"every agent does the same on every observation{action}. Look for dead or saturated outputs."
        known = {
            "Deterministic": f"every action is 0 or ±{float(top):.3g}",
            "Categorical": "every probability is 0 or 1",
        }
        if self.family in known and bool(((values == 0) | (values.abs() == top)).all()):
            return f"{known[self.family]}, the same for all agents. Look for saturated outputs."
        hint = f" {hint_shared(self.team)}" if type(self.team) is PoliciesTeam else ""
        return f"all {self.agents} agents act alike on these observations.{hint}"

    def pair_means(self, index: Tensor) -> Tensor:
        """Return the mean distance over all pairs at observations ``index [t]``, float64 ``[t]`` on the CPU."""
        rows = max(1, BLOCK // (self.agents * WIDTH))
        parts = (self.select(part, None) for part in index.to(self.device).split(rows))
        totals = [kernels.pair_totals(part, backend=self.backend).cpu() for part in parts]
        return torch.cat(totals) / math.comb(self.agents, 2)

    def distances(self, index: Tensor, agents: Tensor, template: Template) -> Tensor:
        """Return ``[t, m]`` along the template's edges, with ``agents [t, size]`` at observations ``index [t]``."""
        edges = template.list_edges(self.device)
        # Policies are evaluated for no other agents; points that are known are read in whole rows where most count.
        if template.size == self.agents or (self.points is not None and 2 * template.size > self.agents):
            # Of these two ways to index, a CPU takes a third of the time for this one.
            own = agents.gather(1, edges.reshape(1, -1).expand(len(agents), -1)).unflatten(1, edges.shape)
            return kernels.observation_edges(self.select(index, None), own, backend=self.backend)
        points = self.select(index, agents)
        return kernels.observation_edges(points, edges.expand(len(index), -1, -1), backend=self.backend)


def as_source(
    team: Any, observations: Any, distance: Distance | str | None, backend: str, **options: Unpack[TeamOptions]
) -> Source:
    """Return a behaviour, or a team (or what :func:`~graphsnd.teams.as_team` accepts) on observations, as a source."""
    if isinstance(observations, Graph | MovingGraph | Design | str):
        raise InputError("observations", "to be a tensor", f"{observations}, which says which pairs", "Write design=.")
    if unknown := options.keys() - TeamOptions.__annotations__.keys():
        raise TypeError(f"measure() got an unexpected keyword argument {min(unknown)!r}")
    if options and isinstance(team, Behavior | Team):
        fix = "Pass it where policies become a team or behaviour: as_team(policies, ...), evaluate(policies, ...)."
        raise InputError(min(options), "only beside policies", f"a {type(team).__name__}, which has settled it", fix)
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
    made = as_team(team, **options)
    if made.whole:  # sequences and joint observations are not taken apart
        with torch.no_grad():
            return _from_behavior(made.evaluate(observations), distance, backend, made)
    return _from_policies(made, observations, distance, backend)


def _from_behavior(behavior: Behavior, distance: Distance | str | None, backend: str, team: Team | None) -> Source:
    points = embed(behavior, distance).detach()
    source = Source(
        points.agents, points.observations, behavior.batch_shape, behavior._names, device=points.parts[0].device,
        backend=backend, asked=distance, points=points, team=team,
    )  # fmt: skip
    source.distance, source.family = as_distance(behavior, distance), type(behavior).__name__
    return source


def _from_policies(team: Team, observations: Any, distance: Distance | str | None, backend: str) -> Source:
    pooled = team.read_observations(observations)
    fix = "A single observation: observations[None]. One number per observation: observations[:, None]."
    pooled = check_tensor("observations", pooled, 1 + team.feature_dims, "(..., features)", fix=fix)
    team._check_observations(pooled)
    inputs, shape = pooled.detach().flatten(0, -1 - team.feature_dims), pooled.shape[: -team.feature_dims]
    if not len(inputs):
        raise InputError("observations", "to be at least one", "none")
    with torch.no_grad():  # a joint module tells its size, and its agents' names, only when it is evaluated
        names = team._names if team.proportional else team.evaluate(inputs[:1])._names
    if team.agents < 2:
        raise InputError("team", "of at least 2 agents", team.agents, "Diversity needs a pair.")
    source = Source(
        team.agents, len(inputs), shape, names, device=inputs.device, backend=backend, asked=distance, team=team,
        inputs=inputs, by_agent=isinstance(observations, Mapping) and team.arrays is None and len(shape) > 1,
    )  # fmt: skip
    if not team.proportional:
        source.like = source.ask_two()  # tries a joint module row by row, since it will be shown observations pooled
    return source


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
    with_center = points.replace(torch.cat([points.values, points.center().values], dim=1), norm)
    others = torch.arange(points.agents, device=points.values.device)
    star = torch.stack([others, torch.full_like(others, points.agents)], dim=1)
    radii = kernels.observation_edges(with_center, star.expand(points.observations, -1, -1))
    return float(radii.topk(2, dim=1).values.sum(dim=1).max()) * slack
