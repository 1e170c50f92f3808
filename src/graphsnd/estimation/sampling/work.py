"""What measuring costs, in multiply-adds of the sweep over all pairs that take as long."""

from __future__ import annotations

from dataclasses import dataclass

from graphsnd.estimation.designs import AllPairs, Design, FreshDesign
from graphsnd.estimation.sampling.source import Source

# About a second of work, in multiply-adds of policies and feature differences of pairs.
CHEAP = {"cpu": 4e9, "cuda": 4e12}
PARTIAL = 4.0  # a policy evaluated on a few observations costs this much more for each than in one large batch


@dataclass(frozen=True)
class Rate:
    """What sampling costs, in units of one distance in the sweep over all pairs, whose points stay in registers.

    Measured at 100 to 2000 agents with 4 features, on one core and on an H200; rough.
    """

    call: float  # an estimate, however small: launches, allocations, looks
    point: float  # an agent at an observation, visited once to bound the distances
    draw: float  # an observation with its agents drawn afresh
    agent: float  # among them
    pair: float  # among them
    edge: float  # of a graph that is kept for all observations


RATES = {"cpu": Rate(1e7, 60.0, 3000.0, 180.0, 80.0, 4.0), "cuda": Rate(1e10, 50.0, 1000.0, 2500.0, 500.0, 4.0)}


def work(source: Source, design: Design, draws: float, *, bounded: bool = False) -> float:
    """Time of a design on that many observations.

    Args:
        source: Team and observations.
        design: What is measured at each.
        draws: Observations, each time they are visited.
        bounded: Whether all points are visited once for a bound on the distances.
    """
    n = source.agents
    rate = RATES.get(source.device.type, RATES["cpu"])
    agents, pairs = source.evaluations(design), design.pairs(n)
    units = draws * pairs * (1.0 if isinstance(design, AllPairs) else rate.edge)
    if isinstance(design, FreshDesign):
        units = draws * (rate.draw + agents * rate.agent + pairs * rate.pair)
    if not isinstance(design, AllPairs):
        units += rate.call + bounded * n * source.observations * rate.point
    share = 1.0 if agents == n else PARTIAL
    return units * source.features * 2 + draws * agents * source.policy_cost * share


def seconds(source: Source, design: Design) -> float:
    """Roughly how long a design takes on all observations."""
    return work(source, design, source.observations) / CHEAP.get(source.device.type, CHEAP["cpu"])


def counts(source: Source, design: Design, draws: float) -> float:
    """The same without prices: distances and policy evaluations as they are counted."""
    n = source.agents
    return draws * (design.pairs(n) * source.features * 2 + source.evaluations(design) * source.policy_cost)
