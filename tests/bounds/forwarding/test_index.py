"""The forwarding index: closed forms, an independent linear program, and certificates checked by networkx."""

import networkx as nx
import pytest
import torch

from graphsnd import graphs
from graphsnd.bounds.forwarding import ForwardingIndex, forwarding_index, index
from graphsnd.errors import InputError

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


@pytest.mark.parametrize(("options", "name"), [
    ({"method": "simplex"}, "method"),
    ({"tolerance": -1.0}, "tolerance"),
    ({"seconds": -1.0}, "seconds"),
])  # fmt: skip
def test_bad_options_are_named(options, name: str) -> None:
    with pytest.raises(InputError, match=f"`{name}`"):
        forwarding_index(graphs.complete(3), **options)


def test_large_graphs_warn_before_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graphs.complete(6)
    monkeypatch.setattr(index, "LONG", 6 * 15 - 1)
    with pytest.warns(UserWarning, match="6 agents and 15 edges may take minutes"):
        forwarding_index(graph)
    forwarding_index(graph, "betweenness")
    forwarding_index(graph, seconds=1.0)
