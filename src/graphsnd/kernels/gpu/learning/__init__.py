"""Controlled learning's elementwise work, fused: the objective and the optimiser."""

from graphsnd.kernels.gpu.learning.adam import adam
from graphsnd.kernels.gpu.learning.objective import Constants, furthest, losses

__all__ = ["Constants", "adam", "furthest", "losses"]
