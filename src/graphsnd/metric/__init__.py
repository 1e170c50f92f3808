"""5 ONE NUMBER: distances of equation (1), SND, Graph-SND, the Horvitz-Thompson estimator."""

from graphsnd.metric.decomposition import Decomposition, decompose
from graphsnd.metric.diversity import by_observation, graph_snd, horvitz_thompson, snd
from graphsnd.metric.pair_distances import contributions, edge_distances, pairwise

__all__ = [
    "Decomposition",
    "by_observation",
    "contributions",
    "decompose",
    "edge_distances",
    "graph_snd",
    "horvitz_thompson",
    "pairwise",
    "snd",
]
