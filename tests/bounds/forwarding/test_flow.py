"""Multicommodity flow: its bracket holds the optimum, and is narrow."""

import networkx as nx
import pytest

from graphsnd import graphs
from graphsnd.bounds.forwarding import flow, forwarding_index
from tests.bounds.forwarding.test_index import METHODS, check_certificates, graph_of


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
    monkeypatch.setattr(flow, "LOADS_BYTES", 8 * graph.m * 7)
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


@pytest.mark.slow
def test_five_hundred_agents() -> None:
    index = forwarding_index(graphs.random_regular(500, 9, seed=0), tolerance=0.01)
    assert index.gap <= 0.01
