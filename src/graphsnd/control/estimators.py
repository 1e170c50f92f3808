"""How a controller measures: all pairs, a graph that is redrawn at every call, or pairs of each observation's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior import Norm
from graphsnd.control.plan import Measurement, Plan, carry_out
from graphsnd.errors import InputError, check_inclusion, check_integer, shape_of
from graphsnd.estimation import FreshDesign
from graphsnd.estimation.sampling.draws import device_generator, ordered_subsets
from graphsnd.graphs import Graph

Builder = Callable[[int, torch.Generator], Graph]


class Estimator(ABC):
    """Maps points of a team to one number, drawing pairs from a generator.

    :meth:`plan` draws, and says which agents must answer which observation; nothing need be evaluated before.
    :meth:`measure` does both steps on points that are there already.

    Attributes:
        looks: Whether it must be told where agents are.
    """

    looks: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """As :func:`~graphsnd.control.parse_estimator` reads it, where it can."""

    @abstractmethod
    def plan(
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Plan:
        """Draw.

        Args:
            observations: How many.
            agents: Size of the team.
            generator: On the CPU; only estimators without chance do without.
            device: Where the outputs will be.
            positions: Where all agents are when the observation is made, ``[observations, agents, d]``; only read by
                estimators that look at neighbours.

        Raises:
            InputError: When a generator or positions are missing.
        """

    def measure(
        self,
        values: Tensor,
        generator: torch.Generator | Sequence[torch.Generator] | None = None,
        *,
        positions: Tensor | None = None,
        norm: Norm = Norm.EUCLIDEAN,
    ) -> Measurement:
        """Measure outputs of all agents.

        Args:
            values: ``[observations, agents, features]``, or ``[runs, ...]`` of the same.
            generator: For the draws; one for each run where runs are stacked.
            positions: ``[observations, agents, d]``, or ``[runs, ...]`` of the same.
            norm: Of the distances.

        Returns:
            ``[]`` or ``[runs]``, differentiable in ``values``.

        Raises:
            InputError: For other shapes, or what the estimator misses.
        """
        if values.dim() not in (3, 4) or values.shape[-2] < 2:
            expected = "with shape (observations, agents, features), at least 2 agents"
            raise InputError("values", expected, shape_of(values))
        stacked = values.dim() == 4
        every = values if stacked else values.unsqueeze(0)
        where = None if positions is None else positions if stacked else positions.unsqueeze(0)
        sources = list(generator) if isinstance(generator, Sequence) else [generator] * len(every)
        if len(sources) != len(every):
            raise InputError("generator", f"to be {len(every)}, one for each run", len(sources))
        plans = []
        for run, source in enumerate(sources):
            place = None if where is None else where[run]
            plans.append(self.plan(every.shape[1], every.shape[2], source, device=values.device, positions=place))
        taken = torch.stack([plan.take(part) for plan, part in zip(plans, every, strict=True)])
        found = carry_out(plans, taken, norm)
        if stacked:
            return found
        return Measurement(found.value[0], found.pairs[0], found.empty[0])


@dataclass(frozen=True)
class Full(Estimator):
    """All pairs at all observations: SND.

    Example:
        >>> Full().measure(torch.tensor([[[0.0], [3.0], [6.0]]])).value
        tensor(4., dtype=torch.float64)
    """

    name = "full"

    def plan(  # noqa: D102
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Plan:
        return Plan(None)


@dataclass(frozen=True)
class FreshGraph(Estimator):
    """Graph-SND of a graph that is drawn anew at every call and used at all its observations, as in the paper.

    A draw without edges measures all pairs instead, the paper's rule, and says so. Given that it is not empty a
    Bernoulli graph's mean is unbiased for SND, so the whole is.

    Args:
        builder: From the number of agents and a generator to an unweighted graph.
        label: For people to read.

    Example:
        >>> FreshGraph.bernoulli(1.0).measure(torch.tensor([[[0.0], [3.0]]]), torch.Generator()).value
        tensor(3., dtype=torch.float64)
    """

    builder: Builder
    label: str = "graph"

    @classmethod
    def bernoulli(cls, p: float) -> FreshGraph:
        """Every pair with probability ``p``."""
        check_inclusion("p", p)
        return cls(partial(_bernoulli, p), f"bernoulli:{p:g}")

    @classmethod
    def uniform(cls, m: int) -> FreshGraph:
        """``m`` pairs."""
        return cls(partial(_uniform, m), f"uniform:{m}")

    @classmethod
    def regular(cls, degree: int) -> FreshGraph:
        """A random regular graph."""
        return cls(partial(_regular, degree), f"regular:{degree}")

    @property
    def name(self) -> str:  # noqa: D102
        return self.label

    def plan(  # noqa: D102
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Plan:
        graph = self.builder(agents, needed(generator, self.name))
        if graph.weights is not None:
            raise InputError("builder", "to give graphs without weights", repr(graph))
        if graph.m == 0:
            return Plan(None, empty=True)
        return Plan(graph.edges)


@dataclass(frozen=True)
class PerObservation(Estimator):
    """Other pairs at every observation, as many as a graph has, so that the graphs' noise averages away.

    With :class:`~graphsnd.AgentSubset` the plan names the agents that must answer; the others need not be evaluated.

    Args:
        design: A fresh design of :mod:`graphsnd.estimation`.

    Example:
        >>> from graphsnd import FreshMatching
        >>> team = torch.tensor([0.0, 3.0, 3.0]).view(1, 3, 1).expand(30_000, -1, -1)
        >>> PerObservation(FreshMatching()).measure(team, torch.Generator().manual_seed(0)).value.round(decimals=1)
        tensor(2., dtype=torch.float64)
    """

    design: FreshDesign

    @property
    def name(self) -> str:  # noqa: D102
        return self.design.name

    def plan(  # noqa: D102
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Plan:
        (size, edges), source = _template(self.design, agents, device), needed(generator, self.name)
        if 2 * size > agents:
            own = device_generator(source, device)
            return Plan(ordered_subsets(agents, size, observations, own, device)[:, edges])
        # Plain engines sort requests by agent, which on a GPU would have to be waited for.
        drawn = ordered_subsets(agents, size, observations, source, torch.device("cpu"))
        return Plan(edges.expand(observations, -1, -1), agents=drawn)


@dataclass(frozen=True)
class Nearest(Estimator):
    """Graph-SND of every observation's own graph of ``k`` nearest neighbours; a local measure, not SND.

    By default the mean is over undirected pairs, a mutual pair counting once, as the paper defines it. ``directed``
    counts it twice, as the reference controller did.

    Args:
        k: Neighbours of each agent. Of equally near ones those with the lower index are taken.
        directed: Whether mutual pairs count twice.

    Example:
        >>> places = torch.tensor([[[0.0], [1.0], [3.0]]])
        >>> Nearest(1).measure(torch.tensor([[[0.0], [2.0], [6.0]]]), positions=places).value
        tensor(3., dtype=torch.float64)
    """

    k: int = 3
    directed: bool = False

    looks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_integer("k", self.k, "to be an integer, at least 1", low=1)

    @property
    def name(self) -> str:  # noqa: D102
        return f"knn:{self.k}"

    def plan(  # noqa: D102
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Plan:
        if positions is None or positions.shape[:2] != (observations, agents):
            got = "none" if positions is None else shape_of(positions)
            raise InputError("positions", f"with shape ({observations}, {agents}, d) for {self.name}", got)
        if self.k >= agents:
            raise InputError("k", f"below the {agents} agents", self.k)
        near = _nearest(positions, self.k)
        mine = torch.arange(agents, device=near.device).repeat_interleave(self.k).expand(observations, -1)
        edges = torch.stack([mine, near.flatten(1)], -1)
        return Plan(edges, weights=None if self.directed else _once(near))


@lru_cache(maxsize=32)
def _template(design: FreshDesign, agents: int, device: torch.device) -> tuple[int, Tensor]:
    """Size and edges of a design, kept on the device: every copy from the host would be waited for."""
    template = design.template(agents)
    return template.size, template.edges.to(device)


def _nearest(positions: Tensor, k: int) -> Tensor:
    """The k nearest others of every agent, ``[O, n, k]``; a stable sort, because agents may stand in one place."""
    apart = (positions.unsqueeze(1) - positions.unsqueeze(2)).square().sum(-1)
    apart.diagonal(dim1=1, dim2=2).fill_(torch.inf)
    return apart.sort(dim=2, stable=True).indices[..., :k]


def _once(near: Tensor) -> Tensor:
    """Half for each direction of a mutual pair, 1 for a single one, ``[O, n * k]``."""
    agents = near.shape[1]
    chosen = torch.zeros(len(near), agents, agents, dtype=torch.bool, device=near.device).scatter_(2, near, True)
    back = chosen.transpose(1, 2).gather(2, near)
    return torch.where(back, 0.5, 1.0).flatten(1)


def needed(generator: torch.Generator | None, name: str) -> torch.Generator:
    """The generator, for an estimator that draws."""
    if generator is None:
        raise InputError("generator", f"for {name}, which draws its pairs", None, "Pass a seeded torch.Generator.")
    return generator


# Named, so that estimators can be pickled: frameworks send them between processes.
def _bernoulli(p: float, n: int, generator: torch.Generator) -> Graph:
    return graphs.bernoulli(n, p, seed=generator)


def _uniform(m: int, n: int, generator: torch.Generator) -> Graph:
    return graphs.uniform(n, m, seed=generator)


def _regular(degree: int, n: int, generator: torch.Generator) -> Graph:
    return graphs.random_regular(n, degree, seed=generator)
