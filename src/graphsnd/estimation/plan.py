"""What to measure when nobody says, and how much of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphsnd.errors import InputError
from graphsnd.estimation.designs import AgentSubset, AllPairs, Design, FreshCirculant, FreshMatching
from graphsnd.estimation.sampling.source import Source
from graphsnd.estimation.sampling.work import seconds

DEFAULT_REL_TOL = 0.01


@dataclass(frozen=True)
class Budget:
    """The most that may be spent; None is no limit.

    Example:
        >>> Budget(distances=1_000_000)
        Budget(distances=1000000, evaluations=None, seconds=None)
    """

    distances: int | None = None
    evaluations: int | None = None  # policies on observations
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("distances", "evaluations", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"budget.{name}", "to be positive and finite", value)
            if value is not None and name != "seconds":
                object.__setattr__(self, name, int(value))  # 1e6 is how people write a million
        if self.distances is self.evaluations is self.seconds is None:
            raise InputError("budget", "with at least one limit", "none", "Write Budget(distances=1_000_000).")

    def draws(self, source: Source, design: Design, distances: int = 0, evaluations: int = 0) -> int | None:
        """How many observations a design can visit, after what has been spent; None without a limit on counts."""
        limits = []
        if self.distances is not None:
            limits.append(int((self.distances - distances) // max(1, design.pairs(source.agents))))
        if self.evaluations is not None and source.policy_cost:
            limits.append(int((self.evaluations - evaluations) // source.evaluations(design)))
        return max(0, min(limits)) if limits else None


@dataclass(frozen=True)
class Plan:
    """A design and the reason for it."""

    design: Design
    why: str


def is_cheap(source: Source) -> bool:
    """Whether all pairs at all observations take about a second or less."""
    return seconds(source, AllPairs()) <= 1.0


def affords_all(source: Source, budget: Budget | None) -> bool:
    """Whether the budget's counts allow all pairs at all observations."""
    draws = None if budget is None else budget.draws(source, AllPairs())
    return draws is None or draws >= source.observations


def choose(source: Source, budget: Budget | None, *, tolerance: bool) -> Plan:
    """The design for these agents, observations and policies."""
    time = math.inf if budget is None or budget.seconds is None else budget.seconds
    if is_cheap(source) and affords_all(source, budget) and seconds(source, AllPairs()) <= time:
        return Plan(AllPairs(), "all pairs at all observations take about a second or less, so nothing is sampled")
    counted = budget is not None and (budget.distances is not None or budget.evaluations is not None)
    if counted and not tolerance and affords_all(source, budget) and budget is not None and budget.seconds is None:
        return Plan(AllPairs(), "the budget allows all pairs at all observations")
    if source.policy_cost and source.proportional:
        size = _subset_size(source, budget)
        why = "policies have to be evaluated, so only a few random agents are, at each observation"
        return Plan(AgentSubset(size), why)
    if budget is None or budget.distances is None or tolerance:
        why = "all agents have been evaluated, and a fresh ring an observation averages the noise of the pairs away"
        return Plan(FreshCirculant(4), why)
    return _spend(budget.distances, source)


def _subset_size(source: Source, budget: Budget | None) -> int:
    """Eight agents, or more where the budget allows more at every observation."""
    size = 8
    if budget is not None and budget.evaluations is not None:
        size = max(size, budget.evaluations // source.observations)
    if budget is not None and budget.distances is not None:
        most = budget.distances // source.observations
        size = min(size, max(4, int((2 * most) ** 0.5)))
    return min(size, source.agents)


def _spend(distances: int, source: Source) -> Plan:
    """All of a number of distances on agents that have been evaluated: as many a observation as it allows."""
    n, each = source.agents, distances // source.observations
    if each >= n:
        degree = min(2 * (each // n), n - 1 - (n - 1) % 2)
        return Plan(FreshCirculant(degree), f"the budget allows {each:,} distances an observation: a ring of them")
    if each >= 1:
        count = min(each, n // 2)
        return Plan(FreshMatching(count), f"the budget allows {each:,} distances an observation: disjoint pairs")
    return Plan(FreshMatching(min(8, n // 2)), "the budget allows less than one distance an observation: some of them")
