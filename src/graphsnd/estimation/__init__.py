"""Estimation: ``measure`` with its intervals, stopping at a tolerance, accumulators and advice."""

from graphsnd.estimation.accumulator import SndAccumulator
from graphsnd.estimation.advice import advise
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.measuring import measure

__all__ = ["Estimate", "SndAccumulator", "advise", "measure"]
