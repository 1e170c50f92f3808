"""SND of a team that several processes or devices share, on the process groups of ``torch.distributed``."""

from graphsnd.distributed.diversity import accumulate, graph_snd, merge, snd

__all__ = ["accumulate", "graph_snd", "merge", "snd"]
