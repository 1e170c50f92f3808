"""The same numbers over several processes and devices, on the process groups of ``torch.distributed``."""

from graphsnd.distributed.accumulating import accumulate, merge
from graphsnd.distributed.diversity import graph_snd, snd

__all__ = ["accumulate", "graph_snd", "merge", "snd"]
