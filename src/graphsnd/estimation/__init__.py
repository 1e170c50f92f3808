"""7 AT A BUDGET: designs, intervals, and measurements that stop when they are sure enough."""

from graphsnd.estimation.advice.advise import advise
from graphsnd.estimation.advice.verdict import Advice, Goal
from graphsnd.estimation.answer import estimate
from graphsnd.estimation.control import difference_estimate
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
from graphsnd.estimation.projections.lengths import ProjectedSnd, projected_snd
from graphsnd.estimation.streaming.accumulator import SndAccumulator

__all__ = [
    "Advice",
    "AgentSubset",
    "AllPairs",
    "Budget",
    "Design",
    "Estimate",
    "FixedGraph",
    "FreshCirculant",
    "FreshDesign",
    "FreshMatching",
    "Goal",
    "ObservationSubset",
    "ProjectedSnd",
    "SndAccumulator",
    "SortedProjections",
    "Weighting",
    "advise",
    "difference_estimate",
    "estimate",
    "measure",
    "projected_snd",
]
