from __future__ import annotations

import itertools

import networkx
import pytest
import torch

import graphsnd as gs
from paper.expanders.facts import equal_split, look
from paper.expanders.small import small_graphs


@pytest.mark.parametrize("seed", range(4))
def test_equal_split_is_edge_betweenness(seed: int) -> None:
    graph = gs.graphs.random_regular(14, 3, seed=seed)
    crowd = networkx.edge_betweenness_centrality(graph.to_networkx(), normalized=False)
    assert equal_split(graph) == pytest.approx(max(crowd.values()), rel=1e-6)


def best_routing(graph: networkx.Graph) -> int:
    """The index by trying every choice of simple paths."""
    choices = [list(networkx.all_simple_edge_paths(graph, i, j)) for i, j in itertools.combinations(graph, 2)]
    loads = []
    for routing in itertools.product(*choices):
        count: dict[frozenset[int], int] = {}
        for path in routing:
            for edge in path:
                count[frozenset(edge)] = count.get(frozenset(edge), 0) + 1
        loads.append(max(count.values()))
    return min(loads)


def test_small_graphs_by_hand() -> None:
    found = small_graphs()
    assert found["ring_4"] == best_routing(networkx.cycle_graph(4))
    assert found["ring_5"] == best_routing(networkx.cycle_graph(5))
    assert found["ring_4_fractional"] == pytest.approx(2)  # 4 edges of load 1, two diagonals over 8 half edges
    assert found["ring_5_ordered"] == pytest.approx(2 * 3)
    assert found["complete"] == 1


def test_a_disconnected_graph_has_no_index() -> None:
    found = look(gs.graphs.cliques([0, 0, 0, 1, 1, 1]), family="cliques", degree=2)
    assert not found.connected
    assert found.ratio_low == pytest.approx(0, abs=1e-9)
    names = ("forwarding_lower", "forwarding_upper", "integral_lower", "integral_upper", "betweenness")
    assert all(getattr(found, name) is None for name in (*names, "distortion_low", "distortion_high"))


def test_bad_graphs() -> None:
    empty = gs.Graph(9, torch.empty(0, 2, dtype=torch.int64))
    weighted = gs.Graph(9, torch.tensor([[0, 1]]), torch.tensor([2.0]))
    for graph in (empty, weighted):
        with pytest.raises(gs.InputError, match="graph"):
            look(graph, family="", degree=1)
