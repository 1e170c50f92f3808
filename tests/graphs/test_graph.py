import itertools

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsnd.errors import InputError
from graphsnd.graphs import Graph, complete


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


def test_weights_reach_networkx():
    graph = Graph(3, edges_of((2, 0), (0, 1)), torch.tensor([0.5, 2.0]))
    assert dict(graph.to_networkx()[0]) == {1: {"weight": 2.0}, 2: {"weight": 0.5}}


def test_counts_of_small_and_empty_graphs():
    empty = Graph(5, edges_of())
    assert (empty.m, empty.pairs, empty.is_complete) == (0, 10, False)
    assert empty.degrees().tolist() == [0] * 5
    two = Graph(2, edges_of((1, 0)))
    assert two.is_complete


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


def test_the_input_is_copied():
    rows = edges_of((0, 1), (1, 2))
    graph = Graph(3, rows)
    rows[0, 0] = 2
    assert graph.edges.tolist() == [[0, 1], [1, 2]]


def test_frozen_and_compared_by_identity():
    graph = complete(3)
    with pytest.raises(AttributeError):
        graph.n = 4
    assert graph != complete(3)
    assert len({graph, graph, complete(3)}) == 2


def test_to_is_itself_where_it_is_already():
    graph = Graph(3, edges_of((0, 1)), torch.ones(1), inclusion=0.5, family="mine")
    assert graph.to("cpu") is graph
    for device in ("meta", "cuda:99", "gpu", b"cpu", True, None):
        with pytest.raises(InputError, match="`device` to be a device"):
            graph.to(device)


def test_repr_says_what_people_ask():
    assert repr(Graph(3, edges_of((0, 1)))) == "Graph(custom, n=3, m=1)"
    assert repr(Graph(3, edges_of((0, 1)), torch.ones(1), 0.25)) == "Graph(custom, n=3, m=1, inclusion=0.25, weighted)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, edges_of()), "`n` to be an integer, at least 2"),
        ((2.0, edges_of()), "`n` .*2.0 of type float"),
        ((True, edges_of()), "`n` .*True"),
        ((3, [[0, 1]]), "`edges` to be a torch.Tensor .*list"),
        ((9, torch.zeros(2, 40, dtype=torch.int64)), r"`edges` with shape \(edges, 2\), .*\(2, 40\).*from_edge_index"),
        ((9, torch.zeros(4, dtype=torch.int64)), r"`edges` with shape \(edges, 2\), got shape \(4,\)\.$"),
        ((9, torch.zeros(4, 3, dtype=torch.int64)), r"`edges` with shape \(edges, 2\), got shape \(4, 3\)\.$"),
        ((3, torch.zeros(1, 2)), r"`edges` .*integer dtype, got torch.float32.*edges\.long\(\)"),
        ((3, torch.ones(1, 2, dtype=torch.bool)), "`edges` .*integer dtype"),
        ((3, edges_of((0, 1), (1, 3))), r"`edges` to hold agents 0 \.\. 2, got the pair \(1, 3\)"),
        ((3, edges_of((0, -1))), r"`edges` to hold agents .*\(0, -1\)"),
        ((3, edges_of((0, 1), (2, 2))), r"`edges` without self-loops, got the pair \(2, 2\)"),
        ((3, edges_of((0, 1), (0, 1))), r"`edges` without duplicates, got the pair \(0, 1\)"),
        ((3, edges_of((0, 1), (1, 0))), r"`edges` without duplicates, .*from_edge_index"),
        ((3, edges_of((0, 1)), [1.0]), "`weights` to be a torch.Tensor .*list"),
        ((3, edges_of((0, 1)), torch.ones(2)), r"`weights` with shape \(edges,\) = \(1,\), got shape \(2,\)"),
        ((3, edges_of((0, 1)), torch.ones(1, 1)), "`weights` with shape"),
        ((3, edges_of((0, 1)), torch.tensor([-1.0])), "`weights` to be finite and not negative, got -1.0 at index 0"),
        ((3, edges_of((0, 1), (0, 2)), torch.tensor([1.0, torch.nan])), "`weights` .*nan at index 1"),
        ((3, edges_of((0, 1)), torch.tensor([torch.inf])), "`weights` .*inf"),
        (
            (3, edges_of((0, 1)), torch.ones(1, dtype=torch.complex64)),
            "`weights` to be .*real numbers, got .*complex",
        ),
        ((3, edges_of((0, 1)), torch.ones(1, device="meta")), "`weights` to be a torch.Tensor .*meta tensor"),
        ((3, edges_of((0, 1)), None, 0.0), r"`inclusion` to be a finite number above 0 and at most 1, got 0.0"),
        ((3, edges_of((0, 1)), None, 1.5), "`inclusion` .*1.5"),
        ((3, edges_of((0, 1)), None, float("nan")), "`inclusion` .*nan"),
        ((3, edges_of((0, 1)), None, "often"), "`inclusion` .*'often'"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        Graph(*arguments)
