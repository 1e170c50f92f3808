"""The forwarding index: closed forms, independent linear programs, and certificates checked by networkx."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from graphsnd import graphs
from graphsnd.bounds import forwarding
from graphsnd.bounds.forwarding import ForwardingIndex, forwarding_index

METHODS = ("lp", "flow", "betweenness")


def graph_of(G: nx.Graph) -> graphs.Graph:
    return graphs.from_networkx(nx.convert_node_labels_to_integers(G))


def distance_sum(G: nx.Graph, weight: str | None = None) -> float:
    return sum(sum(lengths.values()) for _, lengths in nx.all_pairs_dijkstra_path_length(G, weight=weight)) / 2


def check_certificates(graph: graphs.Graph, index: ForwardingIndex) -> None:
    """The lower bound follows from the lengths alone; the bounds are in order."""
    G = graph.to_networkx()
    for (i, j), length in zip(graph.edges.tolist(), index.lengths.tolist(), strict=True):
        G[i][j]["length"] = length
    assert distance_sum(G, "length") / float(index.lengths.sum()) == pytest.approx(index.lower, rel=3e-9)
    assert index.lower <= index.upper


def fractional_cycle(n: int) -> float:
    return n * n / 8 if n % 2 == 0 else (n * n - 1) / 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("G", "value"), [
    *((nx.complete_graph(n), 1.0) for n in (2, 3, 7)),
    *((nx.cycle_graph(n), fractional_cycle(n)) for n in range(3, 11)),
    *((nx.hypercube_graph(k), 2.0 ** (k - 1)) for k in (1, 2, 3, 4)),
    *((nx.star_graph(n - 1), n - 1.0) for n in (3, 6, 11)),
    *((nx.complete_bipartite_graph(a, b), 1 + (a * (a - 1) + b * (b - 1)) / (a * b)) for a, b in ((2, 3), (3, 3))),
    (nx.path_graph(9), 20.0),
    (nx.petersen_graph(), 5.0),
    (nx.grid_2d_graph(4, 4, periodic=True), 8.0),
    (nx.balanced_tree(2, 3), 7 * 8.0),
])  # fmt: skip
def test_closed_forms(method: str, G: nx.Graph, value: float) -> None:
    index = forwarding_index(graph_of(G), method)
    assert index.lower <= value * (1 + 1e-12)
    assert value <= index.upper * (1 + 1e-12)
    assert index.gap < 1e-8
    check_certificates(graph_of(G), index)


def test_weights_do_not_enter_and_auto_says_what_it_did() -> None:
    graph = graphs.random_regular(12, 3, seed=0)
    weighted = graphs.Graph(12, graph.edges, torch.rand(graph.m, generator=torch.Generator().manual_seed(0)))
    plain, same = forwarding_index(graph), forwarding_index(weighted)
    assert (plain.lower, plain.upper, plain.method) == (same.lower, same.upper, "lp")
    assert forwarding_index(graphs.complete(4)).method == "betweenness"


def test_betweenness_is_that_of_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.bernoulli(40, 0.15, seed=2)
    centrality = nx.edge_betweenness_centrality(graph.to_networkx(), normalized=False)
    for entries in (forwarding.ENTRIES, 1000):
        monkeypatch.setattr(forwarding, "ENTRIES", entries)
        assert forwarding_index(graph, "betweenness").upper == pytest.approx(max(centrality.values()))


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


@pytest.mark.parametrize(("name", "graph"), [
    ("regular", graphs.random_regular(30, 5, seed=1)),
    ("bernoulli", graphs.bernoulli(30, 0.2, seed=3)),
    ("grid", graph_of(nx.grid_2d_graph(5, 6))),
    ("barbell", graph_of(nx.barbell_graph(6, 3))),
    ("hubs", graph_of(nx.barabasi_albert_graph(30, 2, seed=0))),
])  # fmt: skip
def test_flow_brackets_the_linear_program(name: str, graph: graphs.Graph) -> None:
    exact, near, quick = (forwarding_index(graph, method, tolerance=0.005) for method in METHODS)
    assert exact.gap < 1e-8
    for index in (near, quick):
        assert index.lower <= exact.upper
        assert exact.lower <= index.upper
        check_certificates(graph, index)
    assert near.gap < 0.03
    assert near.gap <= quick.gap


def test_blocks_of_sources_bracket_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.random_regular(60, 5, seed=0)
    whole = forwarding_index(graph, "flow")
    monkeypatch.setattr(forwarding, "BLOCKS", 7)
    blocks = forwarding_index(graph, "flow")
    assert blocks.lower <= whole.upper
    assert whole.lower <= blocks.upper
    assert blocks.gap < 0.1


@pytest.mark.parametrize("degree", [7, 14])
def test_random_regular_is_narrow(degree: int) -> None:
    graph = graphs.random_regular(100, degree, seed=0)
    index = forwarding_index(graph, tolerance=0.02)
    assert index.method == "flow"
    assert index.gap <= 0.02
    check_certificates(graph, index)


def test_stopping_at_once_keeps_the_bounds_certified() -> None:
    graph = graphs.random_regular(60, 5, seed=0)
    index = forwarding_index(graph, "flow", seconds=0.0)
    check_certificates(graph, index)
    assert index.upper >= forwarding_index(graph, "flow").lower
