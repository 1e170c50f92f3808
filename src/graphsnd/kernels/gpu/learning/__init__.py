"""Controlled learning's elementwise work, fused: the objective and the optimiser."""

from graphsnd.kernels.gpu.learning.adam import adam
from graphsnd.kernels.gpu.learning.objective import losses, outside

__all__ = ["adam", "losses", "outside"]
