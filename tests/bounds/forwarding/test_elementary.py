"""The bounds that need no search."""

import networkx as nx
import numpy as np
import pytest

from graphsnd import graphs
from graphsnd.bounds.forwarding import flow
from graphsnd.bounds.forwarding.elementary import elementary_bounds
from graphsnd.bounds.forwarding.network import build_network


def test_betweenness_is_that_of_networkx() -> None:
    graph = graphs.bernoulli(40, 0.15, seed=2)
    net = build_network(graph)
    loads = flow.empty_loads(net)
    bracket = elementary_bounds(net, loads)
    centrality = nx.edge_betweenness_centrality(graph.to_networkx(), normalized=False)
    np.testing.assert_allclose(loads.sum(axis=0), [centrality[tuple(e)] for e in graph.edges.tolist()], rtol=1e-12)
    assert bracket.upper == pytest.approx(max(centrality.values()))
