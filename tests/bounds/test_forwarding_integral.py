"""Integral routings: real paths, loads that add up, and an integer program that says how good they are."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from graphsnd import graphs
from graphsnd.bounds.forwarding import forwarding_index, integral
from graphsnd.bounds.forwarding import index as index_module
from graphsnd.errors import InputError


def integer_program(G: nx.Graph) -> int:
    """The integral index itself, with a binary variable for every simple path."""
    edges = {frozenset(e): k for k, e in enumerate(G.edges)}
    paths = [(p, path) for p, pair in enumerate(itertools.combinations(G, 2)) for path in nx.all_simple_paths(G, *pair)]
    use, share = np.zeros((len(edges), len(paths) + 1)), np.zeros((len(G) * (len(G) - 1) // 2, len(paths) + 1))
    for k, (pair, path) in enumerate(paths):
        share[pair, k] = 1
        for step in itertools.pairwise(path):
            use[edges[frozenset(step)], k] = 1
    use[:, -1] = -1
    constraints = [LinearConstraint(use, -np.inf, 0), LinearConstraint(share, 1, 1)]
    objective = np.eye(len(paths) + 1)[-1]
    return round(milp(objective, constraints=constraints, integrality=1, bounds=Bounds(0, np.inf)).fun)


def shortest_path_load(G: nx.Graph) -> int:
    """The largest load when networkx picks the shortest paths."""
    load: dict[frozenset[int], int] = {}
    for s, t in itertools.combinations(G, 2):
        for step in itertools.pairwise(nx.shortest_path(G, s, t)):
            load[frozenset(step)] = load.get(frozenset(step), 0) + 1
    return max(load.values())


@pytest.mark.parametrize("seed", range(8))
def test_small_graphs_against_the_integer_program(seed: int) -> None:
    G = nx.gnm_random_graph(6, 8, seed=seed)
    G.add_edges_from(nx.utils.pairwise(range(6)))
    index = forwarding_index(graphs.from_networkx(G))
    best = integer_program(G)
    assert index.integral_lower <= best <= index.integral <= best + 1


def test_search_finds_most_small_optima() -> None:
    missed = 0
    for seed in range(12):
        G = nx.gnm_random_graph(6, 9, seed=100 + seed)
        G.add_edges_from(nx.utils.pairwise(range(6)))
        missed += forwarding_index(graphs.from_networkx(G)).integral > integer_program(G)
    assert missed <= 2


@pytest.mark.parametrize("graph", [
    graphs.random_regular(40, 4, seed=0),
    graphs.bernoulli(40, 0.15, seed=2),
    graphs.from_networkx(nx.path_graph(30)),
    graphs.from_networkx(nx.barbell_graph(8, 4)),
])  # fmt: skip
def test_order_of_the_values(graph: graphs.Graph) -> None:
    index = forwarding_index(graph, "lp")
    assert math.ceil(index.lower) == index.integral_lower
    assert index.lower <= index.upper <= index.integral <= shortest_path_load(graph.to_networkx())


@pytest.mark.parametrize("graph", [graphs.random_regular(30, 3, seed=4), graphs.from_networkx(nx.path_graph(9))])
def test_routing_is_a_certificate(graph: graphs.Graph) -> None:
    index = forwarding_index(graph, routing=True)
    routing, G = index.routing, graph.to_networkx()
    load = dict.fromkeys(map(tuple, graph.edges.tolist()), 0)
    for i, j in itertools.combinations(range(graph.n), 2):
        path = routing.path(i, j)
        assert (path[0], path[-1]) == (i, j)
        assert routing.path(j, i) == path[::-1]
        assert nx.is_simple_path(G, path)
        for a, b in itertools.pairwise(path):
            load[min(a, b), max(a, b)] += 1
    assert list(load.values()) == routing.loads().tolist()
    assert max(load.values()) == index.integral


def test_paths_outgrow_their_first_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    grown = []
    grow = integral.Paths._grow
    monkeypatch.setattr(integral.Paths, "_grow", lambda self: (grown.append(1), grow(self)))
    index = forwarding_index(graphs.from_networkx(nx.path_graph(60)), routing=True)
    assert grown
    assert index.integral == 900
    assert index.routing.path(0, 59) == list(range(60))


def test_without_room_for_paths_the_bound_is_still_a_routing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.random_regular(30, 4, seed=0)
    best = forwarding_index(graph)
    monkeypatch.setattr(index_module, "ENTRIES", 10)
    index = forwarding_index(graph)
    assert index.integral == int(index.integral) >= best.integral
    assert index.integral <= 2 * best.integral
    with pytest.raises(InputError, match="`routing`"):
        forwarding_index(graph, routing=True)


def test_asking_for_no_pair_is_an_error() -> None:
    routing = forwarding_index(graphs.complete(3), routing=True).routing
    with pytest.raises(InputError, match="two different agents"):
        routing.path(1, 1)
