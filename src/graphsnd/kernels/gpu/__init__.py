"""The Triton backend: tiles of pairs held in registers, observations across the grid."""

from graphsnd.kernels.autograd import Differentiable
from graphsnd.kernels.gpu.launch import Triton

backend = Differentiable(Triton())

__all__ = ["backend"]
