"""Many small networks in one launch, forwards and backwards."""

from graphsnd.kernels.gpu.networks.engine import Fused

__all__ = ["Fused"]
