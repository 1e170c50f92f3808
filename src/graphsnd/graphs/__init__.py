"""Which pairs of agents count: the :class:`Graph` and the ways to build one.

Fixed graphs (:func:`complete`, :func:`cliques`, the ``from_*`` converters) say which pairs the user cares about. Random
designs (:func:`bernoulli`, :func:`uniform`, :func:`random_regular`) give every pair the same known chance, kept in
``Graph.inclusion``, so that the metric can be estimated from few pairs. Spatial graphs (:func:`knn`, :func:`radius`)
join agents that are close in some feature. Expanders (:func:`circulant`, :func:`hypercube`, :func:`paley`,
:func:`margulis`, :func:`lps`) are fixed graphs with a large spectral gap; :func:`relabelled` makes a random design of
any fixed graph. Memory follows the edges, never the square of the agents, except where the
input is that square itself (:func:`from_adjacency`). So does time, but for the spatial graphs: a GPU looks at all pairs
in blocks, and the k-d tree on the CPU slows down as features are added.
"""

from graphsnd.graphs.expanders import circulant, hypercube, margulis, paley
from graphsnd.graphs.fixed import cliques, complete, from_adjacency, from_edge_index, from_networkx
from graphsnd.graphs.graph import Graph, Sampling
from graphsnd.graphs.lps import lps
from graphsnd.graphs.random import bernoulli, random_regular, uniform
from graphsnd.graphs.relabelled import relabelled
from graphsnd.graphs.spatial import knn, radius
from graphsnd.graphs.trim import trim

__all__ = [
    "Graph",
    "Sampling",
    "bernoulli",
    "circulant",
    "cliques",
    "complete",
    "from_adjacency",
    "from_edge_index",
    "from_networkx",
    "hypercube",
    "knn",
    "lps",
    "margulis",
    "paley",
    "radius",
    "random_regular",
    "relabelled",
    "trim",
    "uniform",
]
