"""The linear program, against one over all paths."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from graphsnd import graphs
from graphsnd.bounds.forwarding import forwarding_index
from graphsnd.errors import InputError
from tests.bounds.forwarding.test_index import check_certificates, graph_of


def path_matrices(G: nx.Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loads of the edges, shares of the pairs and the objective, with one variable for every simple path."""
    edges = {frozenset(e): k for k, e in enumerate(G.edges)}
    paths = [(p, path) for p, pair in enumerate(itertools.combinations(G, 2)) for path in nx.all_simple_paths(G, *pair)]
    use, share = np.zeros((len(edges), len(paths) + 1)), np.zeros((len(G) * (len(G) - 1) // 2, len(paths) + 1))
    for k, (pair, path) in enumerate(paths):
        share[pair, k] = 1
        for step in itertools.pairwise(path):
            use[edges[frozenset(step)], k] = 1
    use[:, -1] = -1
    return use, share, np.eye(len(paths) + 1)[-1]


def path_program(G: nx.Graph) -> float:
    """The fractional index with one variable for every simple path: small graphs only."""
    use, share, objective = path_matrices(G)
    return linprog(objective, use, np.zeros(len(use)), share, np.ones(len(share)), method="highs-ds").fun


@pytest.mark.parametrize("seed", range(6))
def test_linear_program_equals_one_over_paths(seed: int) -> None:
    G = nx.gnm_random_graph(7, 11, seed=seed)
    G.add_edges_from(nx.utils.pairwise(range(7)))
    index = forwarding_index(graph_of(G), "lp")
    assert index.lower == pytest.approx(path_program(G), rel=1e-8)
    assert index.gap < 1e-8
    check_certificates(graph_of(G), index)


def test_lp_refuses_what_would_take_minutes() -> None:
    with pytest.raises(InputError, match='Use method="flow"'):
        forwarding_index(graphs.random_regular(400, 8), "lp")
