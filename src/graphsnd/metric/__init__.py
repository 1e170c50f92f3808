"""Equation (1), SND, Graph-SND and the Horvitz-Thompson estimator."""

from graphsnd.metric.decomposition import decompose
from graphsnd.metric.diversity import by_observation, graph_snd, horvitz_thompson, snd
from graphsnd.metric.pair_distances import contributions, pairwise

__all__ = ["by_observation", "contributions", "decompose", "graph_snd", "horvitz_thompson", "pairwise", "snd"]
