"""What to measure, what it will cost, what it guarantees, and what speaks against the rest."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from graphsnd.estimation.designs import Design, FixedGraph


class Goal(Enum):
    """What the number is for: the rows of the paper's table on choosing a graph."""

    GLOBAL = "global"  # SND of the whole team, at a tolerance that is guaranteed
    LOCAL = "local"  # how different agents are that meet: the graph defines the measure
    PROXY = "proxy"  # a cheap stand-in for SND, looked at again and again inside training


@dataclass(frozen=True)
class Recipe(Design):
    """A graph that takes more to build than the number of agents, or whose size is all that matters here.

    Example:
        >>> Recipe("5 nearest neighbours", 500, "gs.graphs.knn(positions, 5)").evaluations(100)
        100
    """

    label: str
    edges: float  # for each observation
    call: str = ""  # Python that builds the graph

    @property
    def name(self) -> str:  # noqa: D102
        return self.label

    def pairs(self, n: int) -> float:  # noqa: D102
        return self.edges

    def evaluations(self, n: int) -> int:  # noqa: D102
        return n


@dataclass(frozen=True)
class Expense:
    """What a measurement is expected to take, pilot included."""

    observations: int  # visits of observations; more than there are where all are visited several times
    distances: int
    evaluations: int  # policies on observations that have to be evaluated for it
    work: float  # roughly; multiply-adds of the sweep over all pairs that take as long


@dataclass(frozen=True)
class Alternative:
    """One way to get the number."""

    name: str
    design: Design
    radius: float | None  # relative to SND, holds for every team; None where no bound on the distances is known
    typical: float  # relative to SND, for large samples
    cost: Expense
    met: bool  # whether the radius that decides is within the tolerance
    why: str  # it was chosen, or not


@dataclass(frozen=True)
class Advice:
    """A recommended design and the reasons for it."""

    goal: Goal
    design_name: str
    design: Design
    guarantee: str
    radius: float | None  # relative to SND, guaranteed; 0 when exact, None where no bound on the distances is known
    typical: float  # relative to SND, for large samples
    cost: Expense
    reasons: tuple[str, ...]
    rejected: tuple[Alternative, ...]
    assumptions: tuple[str, ...]
    call: str  # Python that does it

    @property
    def recommended(self) -> Alternative:
        """The recommendation beside which the rejected alternatives stand."""
        why = self.reasons[0]
        return Alternative(self.design_name, self.design, self.radius, self.typical, self.cost, True, why)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; designs by their names."""
        plain = asdict(self, dict_factory=_without_designs)
        return {**plain, "goal": self.goal.value}

    def __str__(self) -> str:
        lines = [self.design_name, f"  guarantee: {self.guarantee}", f"  cost: {spending(self.cost)}"]
        lines += [f"  because {reason}" for reason in self.reasons]
        lines += [f"  not {a.name}: {a.why} ({spending(a.cost)})" for a in self.rejected]
        lines += [f"  assuming that {assumption}" for assumption in self.assumptions]
        return "\n".join([*lines, f"  run: {self.call}"])


def spending(cost: Expense) -> str:
    """A cost in words.

    Example:
        >>> spending(Expense(100, 2800, 800, 1.2e7))
        '2,800 distances, 800 policy evaluations, work of 1.2e+07 multiply-adds'
    """
    evaluated = f", {cost.evaluations:,} policy evaluations" if cost.evaluations else ""
    return f"{cost.distances:,} distances{evaluated}, work of {cost.work:.2g} multiply-adds"


def percent(share: float | None) -> str:
    """A relative radius.

    Example:
        >>> percent(0.01), percent(0.0), percent(None), percent(1.234)
        ('1%', 'exact', 'unknown', '123%')
    """
    if share is None:
        return "unknown"
    return "exact" if share == 0 else f"{100 * share:.{2 if share < 1 else 3}g}%"


def written(design: Design) -> str:
    """A design as Python.

    Example:
        >>> written(FixedGraph.regular(7))
        'gs.FixedGraph.regular(7)'
    """
    if isinstance(design, FixedGraph):
        family, _, number = design.label.partition(":")
        return f"gs.FixedGraph.{family}({number})"
    return f"gs.{design!r}"


def _without_designs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in items if key != "design"}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
