"""What every design says about itself; all pairs, and graphs of your own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.designs.template import Template
from graphsnd.errors import InputError, check_integer
from graphsnd.graphs import Graph, MovingGraph

Draw = Graph | MovingGraph | Template  # one graph for the call; or for each observation a graph, or random agents


class Design(ABC):
    """Which pairs of agents are measured: an immutable value.

    ``str(design)`` is what :func:`~graphsnd.designs.parse` reads. Only a
    :class:`~graphsnd.designs.Fixed` one holds more than a line of text says; its text is a name for results.

    Attributes:
        family: The word it is written with, as in ``bernoulli:0.1``.
        example: One way to write it.
        number: The type of its parameter, None where it has none.
        least: Smallest value of an integer.
        unbiased: Whether its mean distance is unbiased for SND; otherwise it defines a local measure.
        needs_positions: Whether it must be told where the agents are.

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
                whole = check_integer(name, value, f"to be an integer, at least {self.least}", low=self.least)
                object.__setattr__(self, name, whole)

    @abstractmethod
    def draw(self, n: int, generator: torch.Generator | None = None, positions: Tensor | None = None) -> Draw:
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

    def draw(self, n: int, generator: torch.Generator | None = None, positions: Tensor | None = None) -> Template:  # noqa: D102
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

    def draw(self, n: int, generator: torch.Generator | None = None, positions: Tensor | None = None) -> Draw:  # noqa: D102
        if self.graph.n != n:
            raise InputError("design", f"on {n} agents", f"a graph on {self.graph.n}", f"Build it with n = {n}.")
        return self.graph

    def __str__(self) -> str:
        """Return how the graph was built: a name, which cannot be parsed."""
        return self.graph.family
