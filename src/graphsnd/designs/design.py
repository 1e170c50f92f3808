"""Designs as values, and the parser of their texts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor

from graphsnd import graphs
from graphsnd.behavior.behavior import stack_agents
from graphsnd.designs.template import Template
from graphsnd.errors import (
    InputError,
    check_finite,
    check_integer,
    check_layout,
    check_number,
    check_tensor,
    check_type,
    plain_tensor,
    shape_of,
    suggest,
)
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import check_edges

Draw = Graph | MovingGraph | Template  # one graph for the call; or for each observation a graph, or random agents
Generator = torch.Generator | None


class Design(ABC):
    """Which pairs of agents are measured: an immutable value.

    ``str(design)`` is what :func:`~graphsnd.designs.parse` reads. A graph of your own has a name for results
    in place of it.

    Attributes:
        family: The word it is written with, as in ``bernoulli:0.1``.
        example: Example of its text.
        number: The type of its parameter, None where it has none.
        least: Smallest value of an integer.
        unbiased: Whether its mean distance is unbiased for SND; otherwise it defines a local measure.
        needs_positions: Whether it needs the agents' positions.

    Example:
        >>> import graphsnd as gs
        >>> design = gs.designs.parse("agents:4")
        >>> str(design), design.pairs(1000), design.evaluations(1000), design.unbiased
        ('agents:4', 6, 4, True)
    """

    family: ClassVar[str]
    example: ClassVar[str]
    number: ClassVar[type[int] | type[float] | None] = None
    least: ClassVar[int] = 1
    unbiased: ClassVar[bool] = True
    needs_positions: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items() if self.number is int else ():
            if value is not None:
                integer = check_integer(name, value, f"to be an integer, at least {self.least}", low=self.least)
                object.__setattr__(self, name, integer)

    @abstractmethod
    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Draw:
        """Choose pairs.

        Args:
            n: Number of agents.
            generator: A seeded generator, which is advanced; only random graphs read it.
            positions: Positions of the agents, ``[n, d]``, or ``[observations, n, d]`` for a graph at each observation;
                only designs that need positions read them.

        Returns:
            A graph for all observations of the call; a graph for each observation; or a template whose places other
            random agents take at each observation.

        Raises:
            InputError: For a parameter that ``n`` agents do not allow, and when a generator or positions are missing.
        """

    def pairs(self, n: int) -> float:
        """Return the number of distances per observation of ``n`` agents, expected or at most; all by default."""
        return math.comb(n, 2)

    def evaluations(self, n: int) -> int:
        """Return the number of policies that are evaluated for each observation."""
        return n

    def __str__(self) -> str:
        """Return what :func:`~graphsnd.designs.parse` reads."""
        text = self.family
        for value in vars(self).values():
            if value is not None:
                short = f"{value:g}"  # six digits are what people write; all of them where six are not the number
                text += f":{short if not isinstance(value, int) and float(short) == value else value}"
        return text


@dataclass(frozen=True)
class Complete(Design):
    """All pairs at all observations: SND itself, without sampling error.

    Example:
        >>> Complete().pairs(10), str(Complete())
        (45, 'complete')
    """

    family = example = "complete"

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Template:  # noqa: D102
        return Template(n)


@dataclass(frozen=True)
class Fixed(Design):
    """A graph of your own with its weights, or one for each observation: it defines a measure, which is not SND.

    Example:
        >>> from graphsnd import graphs
        >>> Fixed(graphs.circulant(5, 2)).pairs(5), str(Fixed(graphs.circulant(5, 2)))
        (5, 'circulant')
    """

    graph: Graph | MovingGraph  # on the agents of the team

    family = example = "fixed"
    unbiased = False

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.graph.m if isinstance(self.graph, Graph) else round(self.graph.m / len(self.graph))

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Draw:  # noqa: D102
        if self.graph.n != n:
            raise InputError("design", f"on {n} agents", f"a graph on {self.graph.n}", f"Build it with n = {n}.")
        return self.graph

    def __str__(self) -> str:
        """Return how the graph was built: a name, which cannot be parsed."""
        return self.graph.family


class _Random(Design):
    """A random graph for all observations, made by ``make`` from the design's only number."""

    make: ClassVar[Callable[..., Graph]]

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Graph:
        if generator is None:
            raise InputError("generator", f"for {self}, which draws its pairs", None, "Pass a seeded torch.Generator.")
        return type(self).make(n, *vars(self).values(), seed=generator)


@dataclass(frozen=True)
class Bernoulli(_Random):
    """Each pair with probability ``p``, the paper's own choice.

    Example:
        >>> str(Bernoulli(0.1)), Bernoulli(0.1).pairs(100)
        ('bernoulli:0.1', 495.0)
    """

    p: float  # probability of each pair, in (0, 1]

    family, example, number = "bernoulli", "bernoulli:0.1", float
    make = staticmethod(graphs.bernoulli)

    def __post_init__(self) -> None:
        check_number("p", self.p, above=0, high=1)

    def pairs(self, n: int) -> float:  # noqa: D102
        return self.p * math.comb(n, 2)


@dataclass(frozen=True)
class Uniform(_Random):
    """``m`` different pairs, every set of ``m`` equally likely.

    Example:
        >>> Uniform(30).draw(100, torch.Generator().manual_seed(0)).m
        30
    """

    m: int  # pairs

    family, example, number = "uniform", "uniform:500", int
    make = staticmethod(graphs.uniform)

    def pairs(self, n: int) -> int:  # noqa: D102
        return self.m


@dataclass(frozen=True)
class Regular(_Random):
    """A random graph in which each agent has ``degree`` neighbours, so that effects of single agents cancel.

    Example:
        >>> Regular(9).pairs(100)
        450.0
    """

    degree: int  # neighbours of each agent

    family, example, number = "regular", "regular:8", int
    make = staticmethod(graphs.random_regular)

    def pairs(self, n: int) -> float:  # noqa: D102
        return n * self.degree / 2


@dataclass(frozen=True)
class Nearest(Design):
    """Each agent and its ``k`` nearest neighbours: a local measure, not SND.

    A mutual pair counts once. Of equally near neighbours those with the lower index are taken.

    Example:
        >>> Nearest(1).draw(3, positions=torch.tensor([[0.0], [1.0], [3.0]])).edges.tolist()
        [[0, 1], [1, 2]]
    """

    k: int  # neighbours of each agent

    family, example, number = "knn", "knn:5", int
    unbiased, needs_positions = False, True

    def pairs(self, n: int) -> int:  # noqa: D102
        return min(n * self.k, math.comb(n, 2))

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Graph | MovingGraph:  # noqa: D102
        return graphs.knn(_positions(positions, n, self), self.k)


@dataclass(frozen=True)
class Radius(Design):
    """All pairs at most ``r`` apart: a local measure, not SND.

    Example:
        >>> Radius(1.0).draw(3, positions=torch.tensor([[0.0], [1.0], [2.5]])).edges.tolist()
        [[0, 1]]
    """

    r: float  # in the units of positions

    family, example, number = "radius", "radius:0.5", float
    unbiased, needs_positions = False, True

    def __post_init__(self) -> None:
        check_number("r", self.r, above=0, fix="It is a distance in the units of positions.")

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Graph | MovingGraph:  # noqa: D102
        return graphs.radius(_positions(positions, n, self), self.r)


class _Redrawn(Design):
    """A template, the same object for each draw, so that what was computed from it is kept."""

    def pairs(self, n: int) -> int:
        return self.draw(n).m

    def evaluations(self, n: int) -> int:
        return self.draw(n).size

    def draw(self, n: int, generator: Generator = None, positions: Tensor | None = None) -> Template:
        return _template(self, n)

    def _build(self, n: int) -> Template:
        raise NotImplementedError


@lru_cache(maxsize=64)
def _template(design: _Redrawn, n: int) -> Template:
    check_edges("n", 2 * n)
    return design._build(n)


@dataclass(frozen=True)
class Matching(_Redrawn):
    """Random pairs of agents, no agent twice, redrawn for each observation.

    With all agents in pairs every agent counts once, so whatever is an effect of single agents cancels.

    Args:
        count: Pairs per observation; as many as there are when None, or when the team is smaller.

    Example:
        >>> Matching().pairs(100), Matching(20).evaluations(100)
        (50, 40)
    """

    count: int | None = None

    family = example = "matching"
    number = int

    def _build(self, n: int) -> Template:
        count = n // 2 if self.count is None else min(self.count, n // 2)
        return Template(2 * count, torch.arange(2 * count).view(count, 2))


@dataclass(frozen=True)
class Ring(_Redrawn):
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

    def _build(self, n: int) -> Template:
        if self.degree >= n - 1:
            return Template(n)
        around = torch.arange(n)
        rings = [torch.stack([around, (around + shift) % n], dim=1) for shift in range(1, self.degree // 2 + 1)]
        return Template(n, torch.cat(rings))


@dataclass(frozen=True)
class Agents(_Redrawn):
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

    def _build(self, n: int) -> Template:
        return Template(min(self.count, n))


# By the word before the colon; the help of cli/measure.py says what each measures.
FORMS: dict[str, type[Design]] = {
    form.family: form for form in (Complete, Bernoulli, Uniform, Regular, Nearest, Radius, Matching, Ring, Agents)
}


def as_design(design: Design | Graph | MovingGraph | str | None) -> Design:
    """Return a design as it is, the one that a text or a graph stands for, or all pairs for None.

    Example:
        >>> as_design("ring:4"), as_design(graphs.circulant(9, 2)).unbiased, as_design(None)
        (Ring(degree=4), False, Complete())
    """
    if isinstance(design, str):
        return parse(design)
    if isinstance(design, Graph | MovingGraph):
        return Fixed(design)
    fix = "For example 'agents:8', 'knn:5' or gs.graphs.cliques(roles)."
    check_type("design", design, (Design, type(None)), "to be a design, its name, or a graph", fix)
    return design or Complete()


def parse(text: str, argument: str = "design") -> Design:
    """Return the design that is written ``family`` or ``family:number``; the inverse of ``str(design)``.

    A design of your own graph has no such text: give the object.

    Args:
        text: Text of a design, for example ``bernoulli:0.1``.
        argument: Name in errors: an argument or an option of the command line.

    Raises:
        InputError: For any other text; the message lists all forms.

    Example:
        >>> parse("bernoulli:0.1"), str(parse("matching"))
        (Bernoulli(p=0.1), 'matching')
    """
    family, colon, rest = text.strip().lower().partition(":")
    form = FORMS.get(family)
    if form is None:
        expected = f"to be one of {', '.join(form.example for form in FORMS.values())}"
        raise InputError(argument, expected, repr(text), suggest(family, FORMS))
    if not colon and form.example == family:
        return form()
    if form.number is None:
        raise InputError(argument, f"to be {family} without a number", repr(text), f"Write {form.example}.")
    try:
        value = form.number(rest)
    except ValueError:
        kind = "an integer" if form.number is int else "a number"
        expected = f"to be {family} with {kind} after the colon"
        raise InputError(argument, expected, f"{rest!r} in {text!r}", f"Write {form.example}.") from None
    try:
        return form(value)  # type: ignore[call-arg]
    except InputError as error:
        raise InputError(argument, f"as in {form.example}", repr(text), str(error)) from None


def _positions(given: Tensor | None, n: int, design: Design) -> Tensor:
    """Return positions ``[n, d]`` or ``[observations, n, d]``; raise for others."""
    positions = plain_tensor(given)
    if positions is None or positions.dim() not in (2, 3) or positions.shape[-2] != n:
        got = "none" if positions is None else shape_of(positions)
        fix = "Or use a design that needs none, such as regular:8."
        raise InputError("positions", f"with shape (..., {n}, d) for {design}", got, fix)
    check_finite("positions", positions)
    return positions


def pool_positions(positions: Any, batch_shape: Sequence[int], names: Sequence[str] | None = None) -> Tensor | None:
    """Return positions ``[agents, d]`` or ``[observations, agents, d]``, pooled as the observations are.

    Args:
        positions: ``[..., agents, d]``, or a dict of ``[..., d]`` by agent; None for none.
        batch_shape: Shape of the observations before they were pooled.
        names: The agents in order.
    """
    if positions is None:
        return None
    places = check_tensor("positions", stack_agents("positions", positions, names), 2, "(..., agents, d)")
    if places.dim() == 2:
        return places
    check_layout("positions", places.shape[:-2], batch_shape)
    places = places.flatten(0, -3)
    if len(places) != math.prod(batch_shape):
        raise InputError("positions", f"at {math.prod(batch_shape)} observations", f"at {len(places)}")
    return places
