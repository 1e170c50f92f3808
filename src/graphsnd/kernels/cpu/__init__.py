"""The numba backend: compiled once, cached on disk, threads over observations, vector lanes inside."""

from graphsnd.kernels.autograd import Differentiable
from graphsnd.kernels.cpu.launch import Numba

backend = Differentiable(Numba())

__all__ = ["backend"]
