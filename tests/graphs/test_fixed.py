import itertools

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsnd.errors import InputError
from graphsnd.graphs import Graph, bernoulli, circulant, cliques, complete, random_regular, relabelled, uniform
from graphsnd.graphs.graph import Sampling


def pairs_of(graph):
    return [tuple(edge) for edge in graph.edges.tolist()]


@pytest.mark.parametrize("n", [2, 3, 10])
def test_complete_has_every_pair(n):
    graph = complete(n)
    assert pairs_of(graph) == list(itertools.combinations(range(n), 2))
    assert graph.is_complete
    assert graph.edges.is_contiguous()
    assert graph.weights is graph.inclusion is None
    assert repr(graph) == f"Graph(complete, n={n}, m={n * (n - 1) // 2})"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-2, 3), min_size=2, max_size=12))
def test_cliques_join_equal_labels(labels):
    expected = [(i, j) for i, j in itertools.combinations(range(len(labels)), 2) if labels[i] == labels[j]]
    assert pairs_of(cliques(labels)) == expected
    assert pairs_of(cliques(torch.tensor(labels))) == expected
    assert pairs_of(cliques([f"squad {label}" for label in labels])) == expected
    assert pairs_of(cliques(torch.tensor(labels, dtype=torch.float32))) == expected


def test_cliques_of_one_label_are_complete_and_of_all_labels_empty():
    assert cliques([1] * 6).is_complete
    assert cliques(range(6)).m == 0


def eigenvalues(graph: Graph) -> np.ndarray:
    return np.linalg.eigvalsh(networkx.to_numpy_array(graph.to_networkx()))


def canonical(graph: Graph) -> bool:
    """Whether the edges are as the class promises, which the trusted constructor does not check."""
    again = Graph(graph.n, graph.edges.flip(0))
    return torch.equal(graph.edges, again.edges) and graph.edges.dtype == torch.int64


@pytest.mark.parametrize(("n", "shifts"), [(2, [1]), (5, [1, 2]), (9, [3]), (12, [1, 4, 6]), (30, [2, 7, 11, 15])])
def test_circulant_against_networkx_and_its_closed_form(n: int, shifts: list[int]) -> None:
    graph = circulant(n, shifts=shifts)
    assert canonical(graph)
    oracle = networkx.circulant_graph(n, shifts)
    assert {frozenset(edge) for edge in graph.edges.tolist()} == {frozenset(edge) for edge in oracle.edges}
    j = np.arange(n)
    closed = sum((1 if 2 * s == n else 2) * np.cos(2 * np.pi * j * s / n) for s in shifts)
    assert np.allclose(np.sort(closed), eigenvalues(graph), atol=1e-9)
    assert graph.sampling is Sampling.FIXED


@pytest.mark.parametrize(("n", "degree"), [(2, 1), (10, 1), (10, 2), (10, 9), (11, 10), (50, 7), (51, 6), (1000, 20)])
def test_random_circulant_has_its_degree_and_is_connected(n: int, degree: int) -> None:
    for seed in range(5):
        graph = circulant(n, degree, seed=seed)
        assert canonical(graph)
        assert bool((graph.degrees() == degree).all())
        assert degree == 1 or networkx.is_connected(graph.to_networkx())
        assert torch.equal(graph.edges, circulant(n, degree, seed=seed).edges)
    shifts = {tuple((graph.edges[:, 1] - graph.edges[:, 0]).unique().tolist()) for graph in
              [circulant(1000, 6, seed=seed) for seed in range(3)]}  # fmt: skip
    assert len(shifts) == 3


def test_relabelled_circulant_is_a_design() -> None:
    graph = relabelled(circulant(12, 4, seed=0), seed=0)
    assert graph.sampling is Sampling.RELABELLED
    assert graph.inclusion == pytest.approx(4 / 11)


@pytest.mark.parametrize(
    "build",
    [
        lambda n: complete(n),
        lambda n: circulant(n, 64),
        lambda n: bernoulli(n, 0.5),
        lambda n: uniform(n, 2**40),
        lambda n: random_regular(n, 64),
        lambda n: cliques([0] * (1 << 16)) if n < 2**60 else complete(n),
    ],
)
@pytest.mark.parametrize("n", [2**27, 2**62, 2**70, 10**400], ids=["2**27", "2**62", "2**70", "10**400"])
def test_graphs_that_fit_nowhere_are_refused_before_memory_is_taken(build, n):
    with pytest.raises(InputError, match=r"at most \d+"):
        build(n)
