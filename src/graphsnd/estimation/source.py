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
from graphsnd.behavior import Behavior, Distance, Energy, Joint, Norm, Points, Samples, default_distance, embed
from graphsnd.behavior.distances import check_distance
from graphsnd.behavior.joint import JointDistance
from graphsnd.designs import Template
from graphsnd.designs.relabelled import find_neighbours
from graphsnd.designs.subsets import integer_seed
from graphsnd.errors import InputError, check_tensor
from graphsnd.kernels.dispatch import sum_over_blocks
from graphsnd.kernels.pairfunctions import extremes, slowness
from graphsnd.kernels.relabelling import can_sum, regular_sums
from graphsnd.sums import add_last, mean
from graphsnd.teams import Team, as_team

BLOCK = 1 << 24  # numbers in one block of points
NOISE = 1 << 12  # agents and observations whose samples are split


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
        self.distance, self.backend, self.names = distance or default_distance(behavior), backend, behavior._names
        self.family, self.batch_shape = type(behavior).__name__, behavior.batch_shape
        self.points = points = self.given.detach()
        self.agents, self.observations, self.features = points.agents, points.observations, points.features
        self.device, self.slowness = points.parts[0].device, slowness(points)
        self.noise_floor = _noise_floor(behavior, self.distance) if _has_samples(behavior) else None

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
        self.distance, self.family = check_distance(distance, first), type(first).__name__
        points = first._embed(self.distance)
        self.agents, self.observations, self.features = team.agents, len(self.inputs), points.features
        self.device, self.proportional, self.slowness = device, team.proportional, slowness(points)

    @torch.no_grad()
    def block(self, start: int, stop: int) -> Points:  # noqa: D102
        return self.team.evaluate(self.inputs[start:stop])._embed(self.distance)

    @torch.no_grad()
    def select(self, index: Tensor, agents: Tensor | None) -> Points:  # noqa: D102
        inputs = self.inputs[index]
        behavior = self.team.evaluate(inputs) if agents is None else self.team.partial(inputs, agents)
        return behavior._embed(self.distance)

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


def _has_samples(behavior: Behavior) -> bool:
    parts = behavior.parts.values() if isinstance(behavior, Joint) else ()
    return isinstance(behavior, Samples) or any(map(_has_samples, parts))


def _noise_floor(behavior: Behavior, distance: Distance) -> float | None:
    """Return about the mean distance of two agents that act alike; None where samples are too few to be split.

    Of a joint it is the weighted mean of its parts', as the distance is, and of a part without samples it is 0.

    From random halves of each agent's samples. Noise falls with a power of their number. Of the energy distance it is
    1/2, exactly so for squares. Of sorted samples it is between 1/4 (discrete actions) and 1/2 (densities with light
    tails), and halves and quarters tell. With 1/2 for all, the noise would come out up to a fifth too small.
    """
    if isinstance(behavior, Joint):
        parts, weights = behavior.parts.values(), behavior.distance.weights
        each = distance.distances if isinstance(distance, JointDistance) else [distance] * len(parts)
        floors = list(map(_noise_floor, parts, each))
        known = [weight * floor for weight, floor in zip(weights, floors, strict=True) if floor is not None]
        return math.fsum(known) if len(known) == len(floors) else None
    if not isinstance(behavior, Samples):
        return 0.0
    count, debias = behavior.samples.shape[-2], getattr(distance, "debias", False)
    half, quarter, fewest = count // 2, count // 4, 2 if debias else 1
    if half < fewest:
        return None
    if not getattr(distance, "pooled", False):  # enough for two digits; all might take longer than a budget
        order = torch.randperm(behavior.observations, generator=torch.Generator().manual_seed(0))
        rows = order[: max(1, NOISE // behavior.agents)].to(behavior.samples.device)
        behavior = Samples(behavior.samples.reshape(-1, *behavior.samples.shape[-3:])[rows], validate=False)
    noise = _split_distance(behavior, distance, half)
    power = 0.5 if debias or isinstance(distance, Energy) else 0.25
    if noise and quarter >= fewest and not isinstance(distance, Energy):
        ratio = max(1.0, _split_distance(behavior, distance, quarter) / noise)
        power = min(0.5, max(0.25, math.log(ratio) / math.log(half / quarter)))
    return noise * (half / count) ** power


@torch.no_grad()
def _split_distance(behavior: Samples, distance: Distance, size: int) -> float:
    """Return the mean distance between two random parts of ``size`` samples of one agent."""
    agents = torch.arange(behavior.agents, device=behavior.samples.device)
    pairs = torch.stack([agents, agents + behavior.agents], dim=1)
    return float(mean(kernels.edge_sums(distance.embed(behavior._split(size)), pairs)))


@sum_over_blocks
def largest_distance(points: Points) -> float:
    """Return an upper bound on the distance of any two agents at any observation.

    From the box around the agents of each observation where the norm is one of a difference; for the energy distance
    from the two ends of the sorted samples, between which all distribution functions are; otherwise, by the triangle
    inequality, from the two largest distances to the mean agent.
    """
    points = points.detach().metric()
    # Rounded up by more than the rounding of the distances, so that "certified" survives float32.
    slack = 1 + 16 * torch.finfo(points.result_dtype).eps
    if points.norm in (Norm.EUCLIDEAN, Norm.HALF_L1):
        sides = torch.cat([high - low for high, low in map(extremes, points.parts)], dim=-1).double()
        sizes = add_last(sides.square()).sqrt() if points.norm is Norm.EUCLIDEAN else add_last(sides) / 2
        return float(sizes.max()) * slack
    if points.norm is Norm.ENERGY:
        ends = replace(points, values=torch.stack(extremes(points.values), dim=1))
        edge = torch.tensor([[0, 1]], device=points.values.device)
        return float(kernels.observation_edges(ends, edge.expand(points.observations, -1, -1)).max()) * slack
    # Covariances without a rotation between them are farther apart, by a percent or two, and need no SVD.
    norm = Norm.EUCLIDEAN if points.norm is Norm.BURES else points.norm
    with_center = replace(points, values=torch.cat([points.values, points.center().values], dim=1), norm=norm)
    others = torch.arange(points.agents, device=points.values.device)
    star = torch.stack([others, torch.full_like(others, points.agents)], dim=1)
    radii = kernels.observation_edges(with_center, star.expand(points.observations, -1, -1))
    return float(radii.topk(2, dim=1).values.sum(dim=1).max()) * slack
