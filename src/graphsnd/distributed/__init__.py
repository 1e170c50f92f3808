"""The same numbers over several processes and devices, on the process groups of ``torch.distributed``."""

from graphsnd.distributed.accumulating import accumulate, merge
from graphsnd.distributed.diversity import graph_snd, pairwise, snd
from graphsnd.distributed.loads import load

__all__ = ["accumulate", "graph_snd", "load", "merge", "pairwise", "snd"]
