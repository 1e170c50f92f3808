"""Routings with one path per pair: closed forms, real paths, and an integer program that says how good they are."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from graphsnd import graphs
from graphsnd.bounds.forwarding import build_network, forwarding_index
from paper.expanders import integral
from paper.expanders.integral import integral_index
from tests.bounds.test_forwarding import path_matrices


def integer_program(G: nx.Graph) -> int:
    """The integral index itself, with a binary variable for every simple path."""
    use, share, objective = path_matrices(G)
    constraints = [LinearConstraint(use, -np.inf, 0), LinearConstraint(share, 1, 1)]
    return round(milp(objective, constraints=constraints, integrality=1, bounds=Bounds(0, np.inf)).fun)


def shortest_path_load(G: nx.Graph) -> int:
    """The largest load when networkx picks the shortest paths."""
    load: dict[frozenset[int], int] = {}
    for s, t in itertools.combinations(G, 2):
        for step in itertools.pairwise(nx.shortest_path(G, s, t)):
            load[frozenset(step)] = load.get(frozenset(step), 0) + 1
    return max(load.values())


def integral_cycle(n: int) -> int:
    # Antipodal pairs choose between two half circles; covers of neighbouring edges differ by one, so for n divisible
    # by 4 they cannot all be equal.
    return n * n // 8 + 1 if n % 4 == 0 else -(-(n * n if n % 2 == 0 else n * n - 1) // 8)


def bounds_of(G: nx.Graph, method: str = "auto") -> tuple[float, float]:
    """The lower bound of the fractional index, and the load of the routing that was found."""
    graph = graphs.from_networkx(G)
    lower = forwarding_index(graph, method).lower
    return lower, integral_index(graph, lower)


@pytest.mark.parametrize("n", range(3, 14))
def test_cycles_have_their_integral_index(n: int) -> None:
    assert bounds_of(nx.cycle_graph(n))[1] == integral_cycle(n)


@pytest.mark.parametrize("seed", range(8))
def test_small_graphs_against_the_integer_program(seed: int) -> None:
    G = nx.gnm_random_graph(6, 8, seed=seed)
    G.add_edges_from(nx.utils.pairwise(range(6)))
    lower, routed = bounds_of(G)
    best = integer_program(G)
    assert math.ceil(lower) <= best <= routed <= best + 1


def test_search_finds_most_small_optima() -> None:
    missed = 0
    for seed in range(12):
        G = nx.gnm_random_graph(6, 9, seed=100 + seed)
        G.add_edges_from(nx.utils.pairwise(range(6)))
        missed += bounds_of(G)[1] > integer_program(G)
    assert missed <= 2


@pytest.mark.parametrize("graph", [
    graphs.random_regular(40, 4, seed=0),
    graphs.bernoulli(40, 0.15, seed=2),
    graphs.from_networkx(nx.path_graph(30)),
    graphs.from_networkx(nx.barbell_graph(8, 4)),
])  # fmt: skip
def test_order_of_the_values(graph: graphs.Graph) -> None:
    index = forwarding_index(graph, "lp")
    routed = integral_index(graph, index.lower)
    assert routed == int(routed)
    assert index.upper <= routed * (1 + 1e-8)  # rounded outwards
    assert index.lower <= routed <= shortest_path_load(graph.to_networkx())


@pytest.mark.parametrize("graph", [graphs.random_regular(30, 3, seed=4), graphs.from_networkx(nx.path_graph(9))])
def test_paths_join_their_pairs_and_add_up_to_the_loads(graph: graphs.Graph) -> None:
    paths = integral.Paths(build_network(graph))
    paths.sweep(forwarding_index(graph).lower, integral.HOPS[0], math.inf, integral.CHUNK)
    load = np.zeros(graph.m)
    for pair, (i, j) in enumerate(itertools.combinations(range(graph.n), 2)):
        steps = paths.steps[pair, : paths.hops[pair]]
        agents = [j]
        for a, b in graph.edges[steps.tolist()].tolist():
            agents.append(b if a == agents[-1] else a)
        assert agents[-1] == i
        assert nx.is_simple_path(graph.to_networkx(), agents)
        load[steps] += 1
    assert load.tolist() == paths.load.tolist()


def test_long_paths() -> None:
    assert bounds_of(nx.path_graph(60))[1] == 900


@pytest.mark.parametrize("degree", [7, 14])
def test_random_regular_is_narrow(degree: int) -> None:
    graph = graphs.random_regular(100, degree, seed=0)
    lower = forwarding_index(graph).lower
    assert integral_index(graph, lower) <= math.ceil(lower) + 2


@pytest.mark.slow
def test_five_hundred_agents() -> None:
    graph = graphs.random_regular(500, 9, seed=0)
    lower = forwarding_index(graph).lower
    assert integral_index(graph, lower) <= math.ceil(lower) + 2
