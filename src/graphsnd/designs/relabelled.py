r"""Designs that draw pairs for each observation: a small graph laid over randomly chosen agents.

A uniformly random ordered subset of agents takes the places of a template, and its edges say which pairs are measured.
Every pair of agents is then measured at an observation with the same probability, so the mean over the edges has mean
:math:`\mathrm{SND}_o`, the diversity at that observation; the mean over all observations has mean SND; and over a
random subset of observations as well, by the law of total expectation. The noise of different observations is
independent and averages away, which that of one graph kept for all observations does not. The mean is one over the
edges of a uniformly random relabelling of one graph, whose variance :mod:`graphsnd.bounds` knows exactly.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.bounds.relabelling import factor_from_counts
from graphsnd.designs.design import Call, Design, Selection, require_generator
from graphsnd.designs.subsets import ordered_subsets
from graphsnd.errors import InputError
from graphsnd.graphs.checks import check_edges


@checked
@dataclass(frozen=True, eq=False)
class Template:
    """Which places are paired.

    Example:
        >>> template = Matching().template(6)
        >>> template.size, template.edges.tolist(), template.degrees().tolist()
        (6, [[0, 1], [2, 3], [4, 5]], [1, 1, 1, 1, 1, 1])
    """

    size: int  # places, each taken by another agent
    edges: Tensor  # int64 [m, 2], places

    @property
    def m(self) -> int:
        """Number of distances for each observation."""
        return self.edges.shape[0]

    def degrees(self) -> Tensor:
        """Return the number of edges at every place, ``[size]``."""
        return torch.bincount(self.edges.reshape(-1), minlength=self.size)

    def factor(self, n: int) -> float:
        """Return the c for which the variance of the mean is at most c times that of the distances, for every team."""
        return factor_from_counts(n, self.m, self.meeting())

    def meeting(self) -> int:
        """Return the number of pairs of edges that share a place."""
        return self._meeting

    @cached_property
    def _meeting(self) -> int:
        # Kept: each measurement asks three times, and torch counts more than 2**15 ends with all threads, of which
        # those on busy cores are waited for.
        degrees = self.degrees()
        return int((degrees * (degrees - 1) // 2).sum())


@lru_cache(maxsize=64)
def find_neighbours(template: Template, device: torch.device) -> Tensor | None:
    """Return the places joined to each place, int32 ``[degree, size]``; None unless all have the same degree."""
    degrees = template.degrees()
    if not (degrees == degrees[0]).all():
        return None
    ends = torch.cat([template.edges, template.edges.flip(1)]).cpu()
    places = ends[ends[:, 0].argsort(stable=True), 1].view(template.size, -1)
    return places.T.to(device, torch.int32).contiguous()


@checked
class RelabelledDesign(Design):
    """A template over other random agents at each observation.

    Example:
        >>> import torch, graphsnd as gs
        >>> design = gs.designs.parse("matching:2")
        >>> design.template(100).edges.tolist(), design.evaluations(100)
        ([[0, 1], [2, 3]], 4)
        >>> design.select(3, 100, torch.Generator().manual_seed(0), device=torch.device("cpu")).agents.shape  # [O, k]
        torch.Size([3, 4])
    """

    def template(self, n: int) -> Template:
        """Return the template for a team of ``n``."""
        return _template(self, n, torch.device("cpu"))

    @abstractmethod
    def build(self, n: int) -> Template:
        """Return a new template for a team of ``n``."""

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.template(n).m

    def evaluations(self, n: int) -> int:  # noqa: D102
        return self.template(n).size

    def _select(self, call: Call) -> Selection:
        template, source = _template(self, call.agents, call.device), require_generator(call.generator, self)
        size, count = template.size, call.observations
        check_edges("observations", count * max(size, template.m))
        if 2 * size > call.agents:
            return Selection(ordered_subsets(call.agents, size, count, source, call.device)[:, template.edges])
        # Plain engines sort requests by agent, which on a GPU would have to be waited for.
        drawn = ordered_subsets(call.agents, size, count, source, torch.device("cpu"))
        return Selection(template.edges.expand(count, -1, -1), agents=drawn)


@lru_cache(maxsize=64)
def _template(design: RelabelledDesign, n: int, device: torch.device) -> Template:
    """Return a template on a device, kept: forecasts ask often, and each copy from the host would be waited for."""
    check_edges("n", 2 * n)
    template = design.build(n)
    return Template(template.size, template.edges.to(device))


@checked
@dataclass(frozen=True)
class Matching(RelabelledDesign):
    """Random pairs of agents, no agent twice, redrawn for each observation.

    With all agents in pairs every agent counts once, so whatever is an effect of single agents cancels.

    Args:
        count: Pairs of each observation; as many as there are when None, or when the team is smaller.

    Example:
        >>> Matching().pairs(100), round(Matching().inclusion(100), 4), Matching(20).evaluations(100)
        (50, 0.0101, 40)
    """

    count: int | None = None

    family = example = "matching"
    number = int

    def build(self, n: int) -> Template:  # noqa: D102
        count = n // 2 if self.count is None else min(self.count, n // 2)
        return Template(2 * count, torch.arange(2 * count).view(count, 2))


@checked
@dataclass(frozen=True)
class Ring(RelabelledDesign):
    """A ring on a random order of the agents, each joined to the ``degree`` nearest on it, redrawn per observation.

    Every agent has the same degree, so effects of single agents cancel, and the edges of an agent show without bias how
    large the variance is.

    Args:
        degree: Partners of each agent, even; all others when the team is smaller.

    Example:
        >>> Ring(8).pairs(100), Ring(8).pairs(5)
        (400, 10)
    """

    degree: int

    family, example, number = "ring", "ring:8", int
    least = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degree % 2:
            raise InputError("degree", "to be even and at least 2", self.degree)

    def build(self, n: int) -> Template:  # noqa: D102
        if self.degree >= n - 1:
            return Template(n, torch.combinations(torch.arange(n)))
        around = torch.arange(n)
        rings = [torch.stack([around, (around + shift) % n], dim=1) for shift in range(1, self.degree // 2 + 1)]
        return Template(n, torch.cat(rings))


@checked
@dataclass(frozen=True)
class Agents(RelabelledDesign):
    """All pairs among ``count`` random agents, redrawn for each observation: only they need to be evaluated.

    This is the design whose cost does not grow with the team.

    Args:
        count: Agents for each observation, at least 2; all when the team is smaller.

    Example:
        >>> Agents(8).pairs(10_000), Agents(8).evaluations(10_000)
        (28, 8)
    """

    count: int

    family, example, number = "agents", "agents:4", int
    least = 2

    def build(self, n: int) -> Template:  # noqa: D102
        size = min(self.count, n)
        return Template(size, torch.combinations(torch.arange(size)))
