import itertools
from typing import Any

import networkx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsnd.graphs import Graph, MovingGraph, complete


def edges_of(*pairs):
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)


@st.composite
def edge_lists(draw):
    """(n, pairs i < j, the same pairs shuffled and flipped, the order of the shuffle)."""
    n = draw(st.integers(2, 9))
    pairs = draw(st.lists(st.sampled_from(list(itertools.combinations(range(n), 2))), unique=True))
    order = draw(st.permutations(range(len(pairs))))
    flips = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    mixed = [pairs[at][::-1] if flip else pairs[at] for at, flip in zip(order, flips, strict=True)]
    return n, pairs, mixed, order


@settings(max_examples=60, deadline=None)
@given(edge_lists())
def test_any_listing_of_the_same_edges_gives_the_same_graph(case):
    n, pairs, mixed, order = case
    weights = torch.arange(len(pairs), dtype=torch.float64) + 0.5
    graph = Graph(n, edges_of(*mixed), weights[list(order)])
    assert [tuple(edge) for edge in graph.edges.tolist()] == sorted(pairs)
    assert graph.edges.dtype == torch.int64
    assert graph.edges.is_contiguous()
    carried = dict(zip(map(tuple, graph.edges.tolist()), graph.weights.tolist(), strict=True))
    assert carried == dict(zip(pairs, weights.tolist(), strict=True))


@settings(max_examples=30, deadline=None)
@given(edge_lists())
def test_networkx_agrees(case):
    n, pairs, mixed, _ = case
    graph = Graph(n, edges_of(*mixed))
    theirs = networkx.Graph()
    theirs.add_nodes_from(range(n))
    theirs.add_edges_from(pairs)
    assert networkx.utils.graphs_equal(graph.to_networkx(), theirs)
    assert graph.degrees().tolist() == [degree for _, degree in sorted(theirs.degree)]
    assert graph.is_complete == (theirs.number_of_edges() == n * (n - 1) // 2)


def test_weights_keep_their_gradient():
    weights = torch.tensor([1.0, 3.0], requires_grad=True)
    graph = Graph(3, edges_of((2, 1), (1, 0)), weights)
    (graph.weights * torch.tensor([10.0, 20.0])).sum().backward()
    assert weights.grad.tolist() == [20.0, 10.0]


def test_other_integer_dtypes_are_converted_and_non_contiguous_edges_accepted():
    rows = torch.tensor([[0, 2, 9], [1, 0, 9]], dtype=torch.int32)[:, :2]
    graph = Graph(3, rows, torch.tensor([1, 2]))
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    assert graph.edges.dtype == torch.int64
    assert graph.weights.dtype == torch.get_default_dtype()
    assert graph.weights.tolist() == [2.0, 1.0]


def test_to_is_itself_where_it_is_already():
    graph = Graph(3, edges_of((0, 1)), torch.ones(1), inclusion=0.5, family="mine")
    assert graph.to("cpu") is graph


def pairs_of(moving: Any) -> list[list[tuple[int, int]]]:
    return [[(i, j) for i, j in moving[o].edges.tolist()] for o in range(len(moving))]


def test_stack_slice_and_items() -> None:
    graphs = [complete(4), Graph(4, torch.tensor([[2, 1]]), torch.tensor([3.0])), Graph(4, torch.zeros(0, 2).long())]
    moving = MovingGraph.stack(graphs)
    assert moving.starts.tolist() == [0, 6, 7, 7]
    assert [graph.m for graph in moving] == [6, 1, 0]
    assert moving.weights.tolist() == [1.0] * 6 + [3.0]
    assert moving.owners().tolist() == [0] * 6 + [1]
    part = moving.slice(1, 3)
    assert (pairs_of(part), part.starts.tolist(), part.weights.tolist()) == ([[(1, 2)], []], [0, 1, 1], [3.0])
    assert moving.to("cpu") is moving


def test_the_constructor_sorts_and_checks() -> None:
    edges, weights = torch.tensor([[2, 0], [0, 1], [1, 0]]), torch.tensor([2.0, 1.0, 5.0])
    moving = MovingGraph(3, edges, torch.tensor([0, 2, 2, 3]), weights)
    assert pairs_of(moving) == [[(0, 1), (0, 2)], [], [(0, 1)]]
    assert moving.weights.tolist() == [1.0, 2.0, 5.0]
    named = MovingGraph(3, edges, torch.tensor([0, 2, 2, 3]), names=["a", "b", "c"])
    assert MovingGraph.stack(list(named)).names == ("a", "b", "c")
