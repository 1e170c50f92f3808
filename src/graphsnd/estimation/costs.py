"""What measuring costs, what may be spent, and which design that affords: the one model of cost."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from graphsnd.arguments import checked
from graphsnd.designs import Agents, Complete, Design, Matching, Pairs, RelabelledDesign, Ring
from graphsnd.errors import InputError, describe, number
from graphsnd.estimation.source import Workload
from graphsnd.graphs import Graph, MovingGraph

FILE = Path(__file__).with_name("costs.json")  # measured: python -m benchmarks share, then --costs
MOST_DISTANCES = 1 << 24  # of random agents, over all observations: some seconds


@dataclass(frozen=True)
class Rate:
    """What a device does in a second, and what sampling costs it; rough.

    Prices are in units of one distance in the sweep over all pairs, whose points stay in registers.
    """

    second: float  # multiply-adds of that sweep, two for each feature of a distance
    policy: float  # multiply-adds of the sweep that take as long as one of a policy, in one large batch
    partial: float  # a policy evaluated on a few observations costs this much more for each
    call: float  # a measurement, however small: launches, allocations, looks
    point: float  # an agent at an observation, visited once to bound the distances
    draw: float  # an observation whose agents are drawn
    agent: float  # among them
    pair: float  # among them
    edge: float  # of a graph that is kept for all observations


RATES = {device: Rate(**row["rates"]) for device, row in json.loads(FILE.read_text(encoding="utf-8")).items()}


def work(source: Workload, design: Design, draws: float, *, bounded: bool = False) -> float:
    """Return the multiply-adds of the sweep over all pairs that take as long as a design.

    Args:
        source: Team and observations.
        design: What is measured at each.
        draws: Observations, each time they are visited.
        bounded: Whether all points are visited once for a bound on the distances.
    """
    n = source.agents
    rate = _rate(source)
    agents, pairs = source.evaluations(design), design.pairs(n)
    units = draws * pairs * (1.0 if isinstance(design, Complete) else rate.edge)
    if isinstance(design, RelabelledDesign):
        units = draws * (rate.draw + agents * rate.agent + pairs * rate.pair)
    units += draws * pairs * (source.slowness - 1)  # prices are of Euclidean distances
    if not isinstance(design, Complete):
        units += rate.call + bounded * n * source.observations * rate.point
    share = 1.0 if agents == n else rate.partial
    return units * source.features * 2 + draws * agents * source.policy_cost * rate.policy * share


def _rate(source: Workload) -> Rate:
    return RATES.get(source.device.type, RATES["cpu"])


def to_seconds(work: float, source: Workload) -> float:
    """Return roughly how long that much work takes where the points are."""
    return work / _rate(source).second


def policy_cost_of(seconds: float, source: Workload) -> float:
    """Return the multiply-adds of a policy that takes so long on an observation."""
    return seconds * _rate(source).second / _rate(source).policy


def complete_seconds(source: Workload) -> float:
    """Return roughly how long all pairs at all observations take."""
    return to_seconds(work(source, Complete(), source.observations), source)


def counts(source: Workload, design: Design, draws: float) -> float:
    """Return the same as :func:`work` without prices: distances and policy evaluations as they are counted."""
    n = source.agents
    return draws * (design.pairs(n) * source.features * 2 + source.evaluations(design) * source.policy_cost)


@dataclass(frozen=True)
class Cost:
    """What a measurement takes."""

    observations: int = 0  # visits of observations; more than there are where all are visited several times
    distances: int = 0
    evaluations: int = 0  # policies on observations that have to be evaluated for it
    work: float = 0.0  # roughly; multiply-adds of the sweep over all pairs that take as long

    @classmethod
    def of(cls, source: Workload, design: Design, draws: int, *, bounded: bool = False) -> Cost:
        """Return the cost of a design at that many observations, see :func:`work`."""
        evaluations = draws * source.evaluations(design) if source.policy_cost else 0
        distances = round(draws * design.pairs(source.agents))
        return cls(draws, distances, evaluations, work(source, design, draws, bounded=bounded))

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


@checked(own="distances evaluations seconds")
@dataclass(frozen=True)
class Budget:
    """The most that may be spent; None is no limit.

    Example:
        >>> Budget(distances=1_000_000)
        Budget(distances=1000000, evaluations=None, seconds=None)
    """

    distances: int | None = None  # most pair distances, over all observations; None for any number
    evaluations: int | None = None  # policies on observations
    seconds: float | None = None  # most seconds; None for any

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if value is not None and not 0 < number(value) < math.inf:
                raise InputError(f"budget.{name}", "to be positive and finite", describe(value))
            if value is not None and name != "seconds":
                object.__setattr__(self, name, int(value))  # 1e6 is how people write a million
        if self.distances is self.evaluations is self.seconds is None:
            raise InputError("budget", "with at least one limit", "none", "Write Budget(distances=1_000_000).")

    @classmethod
    def parse(cls, text: str, argument: str = "budget") -> Budget:
        """Read ``1e6`` (distances), ``1e6e`` (policy evaluations) or ``5s`` (seconds).

        Raises:
            InputError: For anything else, naming ``argument``.

        Example:
            >>> Budget.parse("2.5s")
            Budget(distances=None, evaluations=None, seconds=2.5)
        """
        body = text.strip().lower()
        kind = {"s": "seconds", "e": "evaluations"}.get(body[-1:], "distances")
        try:
            amount: dict[str, Any] = {kind: float(body if kind == "distances" else body[:-1])}
            return cls(**amount)
        except ValueError:  # of a text that is no number, and of a number that is no budget
            fix = "Write 1e6 for a million distances, 1e6e for policy evaluations, 5s for seconds."
            raise InputError(argument, "to be a positive number, alone or with s or e", repr(text), fix) from None

    def draws(self, source: Workload, design: Design, spent: Cost = Cost()) -> int | None:  # noqa: B008
        """Return how many observations a design can visit, after what was spent; None without a limit on counts."""
        limits = []
        if self.distances is not None:
            limits.append(int((self.distances - spent.distances) // max(1, design.pairs(source.agents))))
        if self.evaluations is not None and source.policy_cost:
            limits.append(int((self.evaluations - spent.evaluations) // source.evaluations(design)))
        return max(0, min(limits)) if limits else None

    def affords_all(self, source: Workload) -> bool:
        """Return whether the counts allow all pairs at all observations."""
        draws = self.draws(source, Complete())
        return draws is None or draws >= source.observations


UNLIMITED = Budget(seconds=sys.float_info.max)
DesignOrGraph = Design | Graph | MovingGraph  # what to measure


def choose(source: Workload, budget: Budget | None, *, tolerance: bool) -> tuple[DesignOrGraph, str]:
    """Choose the design for these agents, observations and policies, and say why."""
    budget = budget or UNLIMITED
    affordable = budget.affords_all(source)
    if affordable and complete_seconds(source) <= min(1.0, budget.seconds or 1.0):
        return Complete(), "all pairs at all observations take about a second or less, so nothing is sampled"
    # Half of the time, since the forecast is rough; of policies nothing is known that it could rest on.
    fits = budget.seconds is None or (not source.policy_cost and complete_seconds(source) <= budget.seconds / 2)
    if affordable and not tolerance and fits:
        return Complete(), "the budget allows all pairs at all observations"
    if source.policy_cost and source.proportional:
        why = "policies have to be evaluated, so only a few random agents are, at each observation"
        return Agents(_subset_size(source, budget)), why
    if tolerance or budget.distances is None:
        return Agents(_subset_size(source, budget)), "all agents have been evaluated, so only distances cost time"
    n, each = source.agents, budget.distances // source.observations
    if each < 1:
        why = "the budget allows less than one distance per observation, so observations are drawn"
        return Pairs(min(8, n // 2)), why
    if each >= n:
        fitting: Design = Ring(min(2 * (each // n), n - 1 - (n - 1) % 2))
    else:
        fitting = Matching() if each >= n // 2 else Pairs(each)
    return fitting, f"the budget allows {each:,} distances per observation"


def _subset_size(source: Workload, budget: Budget) -> int:
    """Return eight agents, or more where the budget of evaluations allows more at every observation.

    Distances grow with the square of the agents, and evaluating policies should remain what takes the time: where they
    are too many, the budget goes into several passes over all observations with fewer agents at each.
    """
    size = (budget.evaluations or 0) // source.observations
    size = max(8, size // max(1, math.ceil(math.comb(size, 2) * source.observations / MOST_DISTANCES)))
    if budget.distances is not None:
        size = min(size, max(4, math.isqrt(2 * (budget.distances // source.observations))))
    return min(size, source.agents)
