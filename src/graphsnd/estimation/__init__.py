"""7 AT A BUDGET: designs, intervals, and measurements that stop when they are sure enough."""

from graphsnd.estimation.answer import estimate
from graphsnd.estimation.designs import (
    AgentSubset,
    AllPairs,
    Design,
    FixedGraph,
    FreshCirculant,
    FreshDesign,
    FreshMatching,
    ObservationSubset,
    SortedProjections,
    Weighting,
)
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.measure import measure
from graphsnd.estimation.plan import Budget

__all__ = [
    "AgentSubset",
    "AllPairs",
    "Budget",
    "Design",
    "Estimate",
    "FixedGraph",
    "FreshCirculant",
    "FreshDesign",
    "FreshMatching",
    "ObservationSubset",
    "SortedProjections",
    "Weighting",
    "estimate",
    "measure",
]
