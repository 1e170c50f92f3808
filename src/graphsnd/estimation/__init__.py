"""8 AT A BUDGET: the one verb, intervals, measurements that stop when they are sure enough, and advice."""

from graphsnd.estimation.accumulator import SndAccumulator
from graphsnd.estimation.advice import Advice
from graphsnd.estimation.advising import advise
from graphsnd.estimation.costs import Budget
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.measuring import SlowMeasurementWarning, measure
from graphsnd.estimation.projections import ProjectedSnd, projected_snd

__all__ = [
    "Advice",
    "Budget",
    "Estimate",
    "ProjectedSnd",
    "SlowMeasurementWarning",
    "SndAccumulator",
    "advise",
    "measure",
    "projected_snd",
]
