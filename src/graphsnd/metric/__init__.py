"""5 ONE NUMBER: distances of equation (1), SND, Graph-SND and the Horvitz-Thompson estimator."""

from graphsnd.metric.distances import contributions, edge_distances, pairwise
from graphsnd.metric.diversity import graph_snd, horvitz_thompson, snd
from graphsnd.metric.own import OwnObservations, own_observations

__all__ = [
    "OwnObservations",
    "contributions",
    "edge_distances",
    "graph_snd",
    "horvitz_thompson",
    "own_observations",
    "pairwise",
    "snd",
]
