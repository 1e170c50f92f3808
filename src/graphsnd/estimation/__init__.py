"""7 AT A BUDGET: measurements with intervals."""

from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.measure import measure

__all__ = ["Estimate", "measure"]
