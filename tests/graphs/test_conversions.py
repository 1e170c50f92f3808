import itertools

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import graphsnd as gs
from graphsnd.graphs import bernoulli, from_adjacency, from_edge_index, from_networkx


def pairs_of(graph):
    return [tuple(edge) for edge in graph.edges.tolist()]


def test_adjacency_round_trip():
    upper = np.triu(np.random.default_rng(0).integers(0, 4, size=(9, 9)), 1)
    matrix = torch.tensor(upper + upper.T, dtype=torch.float64)
    graph = from_adjacency(matrix)
    assert np.array_equal(networkx.to_numpy_array(graph.to_networkx()), matrix)
    theirs = networkx.from_numpy_array(matrix.numpy())
    assert pairs_of(graph) == sorted(theirs.edges)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32])
def test_adjacency_of_ones_has_unit_weights(dtype):
    graph = from_adjacency(torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).to(dtype))
    assert graph.weights is None
    assert pairs_of(graph) == [(0, 1), (1, 2)]


def test_adjacency_of_integers_and_of_nothing():
    assert from_adjacency(torch.tensor([[0, 3], [3, 0]])).weights.tolist() == [3.0]
    assert from_adjacency(torch.zeros(3, 3)).m == 0


def test_adjacency_keeps_the_gradient():
    matrix = torch.tensor([[0.0, 2.0], [2.0, 0.0]], requires_grad=True)
    from_adjacency(matrix).weights.sum().backward()
    assert matrix.grad.tolist() == [[0.0, 1.0], [0.0, 0.0]]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_edge_index_merges_directions(data):
    n = data.draw(st.integers(2, 7))
    pairs = data.draw(st.lists(st.sampled_from(list(itertools.combinations(range(n), 2))), unique=True))
    listed = []
    for i, j in pairs:
        listed += data.draw(st.sampled_from([[(i, j)], [(j, i)], [(i, j), (j, i)]]))
    listed = data.draw(st.permutations(listed))
    edge_index = torch.tensor(listed, dtype=torch.int64).reshape(-1, 2).T
    weights = torch.tensor([float(i * j + min(i, j)) for i, j in listed])
    graph = from_edge_index(edge_index, n, weights)
    assert pairs_of(graph) == sorted(pairs)
    assert graph.weights.tolist() == [float(i * j + i) for i, j in sorted(pairs)]
    assert from_edge_index(edge_index, n).weights is None


def test_networkx_round_trip():
    theirs = networkx.gnp_random_graph(12, 0.4, seed=1)
    assert networkx.utils.graphs_equal(from_networkx(theirs).to_networkx(), theirs)


def test_networkx_integer_nodes_keep_their_numbers():
    theirs = networkx.Graph()
    theirs.add_nodes_from([2, 0, 1])
    theirs.add_edge(2, 0)
    assert pairs_of(from_networkx(theirs)) == [(0, 2)]


def test_networkx_other_nodes_are_numbered_in_their_order():
    theirs = networkx.Graph([("scout", "tank"), ("tank", "medic")])
    assert pairs_of(from_networkx(theirs)) == [(0, 1), (1, 2)]
    gaps = networkx.Graph([(10, 5), (5, 7)])
    assert pairs_of(from_networkx(gaps)) == [(0, 1), (1, 2)]


def test_networkx_nodes_of_any_kind_are_ordered_by_names():
    path = networkx.path_graph(4)
    assert pairs_of(from_networkx(path, [0, 1, 2, 3])) == pairs_of(from_networkx(path))
    assert pairs_of(from_networkx(path, [0, 2, 1, 3])) == [(0, 2), (1, 2), (1, 3)]
    assert pairs_of(from_networkx(networkx.Graph([((0, 1), "b"), ("b", 5)]), ("b", 5, (0, 1)))) == [(0, 1), (0, 2)]


def test_networkx_weights():
    theirs = networkx.path_graph(3)
    assert from_networkx(theirs).weights is None
    theirs[1][2]["weight"] = 3
    assert from_networkx(theirs).weights.tolist() == [1.0, 3.0]


def test_weights_too_small_for_float32_are_kept():
    graph = from_networkx(networkx.Graph([(0, 1, {"weight": 1e-300}), (1, 2, {"weight": 3e-300})]))
    assert graph.weights.tolist() == [1e-300, 3e-300]
    team = gs.Deterministic(torch.tensor([[[0.0], [1.0], [3.0]]]))
    assert float(gs.graph_snd(team, graph)) == pytest.approx((1 * 1 + 3 * 2) / 4)


def test_adjacency_with_weights_and_without() -> None:
    graphs = [bernoulli(5, 0.5, seed=seed) for seed in range(4)]
    A = torch.zeros(4, 5, 5)
    for o, graph in enumerate(graphs):
        A[o, graph.edges[:, 0], graph.edges[:, 1]] = 1 + torch.rand(graph.m)
    A = A + A.mT
    moving = from_adjacency(A)
    assert [moving[o].edges.tolist() for o in range(4)] == [graph.edges.tolist() for graph in graphs]
    for o in range(4):
        assert torch.equal(moving[o].weights, from_adjacency(A[o]).weights)
    assert from_adjacency(A > 0).weights is None
    assert len(from_adjacency(A.view(2, 2, 5, 5))) == 4
