"""Which pairs count: the :class:`Graph` over agents and the ways to build one.

Fixed graphs (:func:`complete`, :func:`cliques`, :func:`circulant`, the ``from_*`` converters) say which pairs the user
cares about. Random graphs (:func:`bernoulli`, :func:`uniform`, :func:`random_regular`, and any fixed graph after
:func:`relabelled`) give every pair the same known chance, kept in ``Graph.inclusion``, so that the metric can be
estimated from few pairs. Spatial graphs (:func:`knn`, :func:`radius`) join agents that are close in some feature;
with features at each observation they are a :class:`MovingGraph`, one graph per observation.
Memory follows the edges, never the square of the agents, except where the input is that square itself
(:func:`from_adjacency`). So does time, but for the spatial graphs, which compare all pairs in blocks.
"""

from graphsnd.graphs.conversions import from_adjacency, from_edge_index, from_networkx
from graphsnd.graphs.fixed import circulant, cliques, complete
from graphsnd.graphs.graph import Graph as Graph
from graphsnd.graphs.graph import MovingGraph
from graphsnd.graphs.random import bernoulli, relabelled, uniform
from graphsnd.graphs.regular import random_regular
from graphsnd.graphs.spatial import knn, radius

__all__ = [
    "MovingGraph",
    "bernoulli",
    "circulant",
    "cliques",
    "complete",
    "from_adjacency",
    "from_edge_index",
    "from_networkx",
    "knn",
    "radius",
    "random_regular",
    "relabelled",
    "uniform",
]
