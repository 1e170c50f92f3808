"""What every design says about itself, and the design that measures all pairs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.errors import InputError, as_tensor, check_finite, check_integer, shape_of
from graphsnd.graphs import Graph, MovingGraph


@checked
@dataclass(frozen=True, eq=False)
class Selection:
    """The pairs that a design chose for O observations of n agents, before anything is evaluated.

    Example:
        >>> import torch, graphsnd as gs
        >>> drawn = gs.designs.Matching().select(3, 10, torch.Generator().manual_seed(0), device=torch.device("cpu"))
        >>> drawn.edges.shape, drawn.pairs(10)  # [O, m, 2]
        (torch.Size([3, 5, 2]), 5)
    """

    edges: Tensor | Graph | MovingGraph | None  # None for all pairs; int64 [m, 2] the same at all observations,
    # [O, m, 2] for each its own; or graphs, with weights
    agents: Tensor | None = None  # int64 [O, k], agents to evaluate, among whom edges then count; None for all agents
    empty: bool = False  # the draw had no pairs, so all are measured instead
    weights: Tensor | None = None  # [O, m] beside edges of each observation, 0 for what only fills up

    def pairs(self, agents: int) -> int:
        """Return the number of distances for each observation, rounded where they differ."""
        if isinstance(self.edges, MovingGraph):
            return round(self.edges.m / len(self.edges))
        if isinstance(self.edges, Graph):
            return self.edges.m
        return math.comb(agents, 2) if self.edges is None else self.edges.shape[-2]

    def take(self, values: Tensor) -> Tensor:
        """Return the outputs of the selected agents, from those of all agents ``[O, n, F]``."""
        if self.agents is None:
            return values
        rows = torch.arange(len(values), device=values.device).unsqueeze(1)
        return values[rows, self.agents.to(values.device)]


@dataclass(frozen=True, eq=False)
class Call:
    """What a design is told when it selects pairs, see :meth:`Design.select`."""

    observations: int
    agents: int
    generator: torch.Generator | None
    device: torch.device
    positions: Tensor | None


@checked
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
                check_integer(name, value, f"to be an integer, at least {self.least}", low=self.least)

    def pairs(self, n: int) -> float:
        """Return the number of distances per observation of ``n`` agents, expected or at most; all by default."""
        return math.comb(n, 2)

    def evaluations(self, n: int) -> int:
        """Return the number of policies that are evaluated for each observation."""
        return n

    def inclusion(self, n: int) -> float:
        """Return the probability that a given pair is measured at a given observation, the same for every pair."""
        return self.pairs(n) / math.comb(n, 2)

    def select(
        self,
        observations: int,
        agents: int,
        generator: torch.Generator | None,
        *,
        device: torch.device,
        positions: Tensor | None = None,
    ) -> Selection:
        """Choose the pairs of one call, as a controller does in each optimiser step.

        Args:
            observations: Their number.
            agents: Size of the team.
            generator: On the CPU; only designs without chance do without.
            device: Where the outputs will be.
            positions: Where all agents are when the observation is made, ``[observations, agents, d]``; only read by
                designs that need positions.

        Raises:
            InputError: When a generator or positions are missing.
        """
        return self._select(Call(observations, agents, generator, device, positions))

    @abstractmethod
    def _select(self, call: Call) -> Selection: ...

    def __str__(self) -> str:
        """Return what :func:`~graphsnd.designs.parse` reads."""
        return ":".join([self.family, *(_write(value) for value in vars(self).values() if value is not None)])


def _write(value: float) -> str:
    short = f"{value:g}"
    # Six digits are what people write; all of them where six are not the number.
    return short if not isinstance(value, int) and float(short) == value else str(value)


@checked
@dataclass(frozen=True)
class Complete(Design):
    """All pairs at all observations: SND itself, without sampling error.

    Example:
        >>> Complete().pairs(10), str(Complete())
        (45, 'complete')
    """

    family = example = "complete"

    def _select(self, call: Call) -> Selection:
        return Selection(None)


def require_generator(generator: torch.Generator | None, design: Design) -> torch.Generator:
    """Return the generator; raise where a design that draws has none."""
    if generator is None:
        raise InputError("generator", f"for {design}, which draws its pairs", None, "Pass a seeded torch.Generator.")
    return generator


def require_positions(positions: Tensor | None, shape: tuple[int, ...], design: Design) -> Tensor:
    """Return the positions; raise unless they are there with the leading ``shape``."""
    positions = as_tensor(positions)
    if positions is None or positions.dim() != len(shape) + 1 or positions.shape[: len(shape)] != shape:
        got = "none" if positions is None else shape_of(positions)
        fix = "Or use a design that needs none, such as regular:8."
        raise InputError("positions", f"with shape ({', '.join(map(str, shape))}, d) for {design}", got, fix)
    check_finite("positions", positions)
    return positions
