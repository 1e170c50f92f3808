"""Expanders: degrees, closed-form eigenvalues, networkx as a second opinion, and errors that say what is possible."""

import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.graphs import Graph, Sampling
from graphsnd.graphs.expanders import circulant, hypercube, margulis, paley


def eigenvalues(graph: Graph) -> np.ndarray:
    return np.linalg.eigvalsh(graph.adjacency().double().numpy())


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
    graph = circulant(12, 4, seed=0, relabel=True)
    assert graph.sampling is Sampling.RELABELLED
    assert graph.inclusion == pytest.approx(4 / 11)
    generator = torch.Generator().manual_seed(0)
    counts = sum(circulant(12, 4, seed=generator, relabel=True).adjacency() for _ in range(1500))
    shares = counts[tuple(np.triu_indices(12, 1))] / 1500
    error = math.sqrt(4 / 11 * 7 / 11 / 1500)
    assert float((shares - 4 / 11).abs().max()) < 4.5 * error


@pytest.mark.parametrize("k", [1, 2, 5])
def test_hypercube(k: int) -> None:
    graph = hypercube(k)
    assert canonical(graph)
    closed = sorted(k - 2 * i for i in range(k + 1) for _ in range(math.comb(k, i)))
    assert np.allclose(eigenvalues(graph), closed, atol=1e-9)
    assert networkx.is_isomorphic(graph.to_networkx(), networkx.hypercube_graph(k))


@pytest.mark.parametrize("q", [5, 13, 17, 101])
def test_paley(q: int) -> None:
    graph = paley(q)
    assert canonical(graph)
    assert bool((graph.degrees() == (q - 1) // 2).all())
    values = eigenvalues(graph)
    closed = [(-1 - math.sqrt(q)) / 2] * (q // 2) + [(-1 + math.sqrt(q)) / 2] * (q // 2) + [(q - 1) / 2]
    assert np.allclose(values, closed, atol=1e-9)
    squares = {x * x % q for x in range(1, q)}
    assert graph.edges.tolist() == [[i, j] for i in range(q) for j in range(i + 1, q) if (j - i) % q in squares]


@pytest.mark.parametrize("side", [2, 3, 7, 20])
def test_margulis(side: int) -> None:
    graph = margulis(side)
    assert canonical(graph)
    oracle = networkx.Graph(networkx.margulis_gabber_galil_graph(side))
    oracle.remove_edges_from(list(networkx.selfloop_edges(oracle)))
    expected = {frozenset((a * side + b, c * side + d)) for (a, b), (c, d) in oracle.edges}
    assert {frozenset(edge) for edge in graph.edges.tolist()} == expected
    assert int(graph.degrees().max()) <= 8
    assert side < 7 or eigenvalues(graph)[-2] < 5 * math.sqrt(2)


@pytest.mark.parametrize(("call", "name", "says"), [
    (lambda: circulant(10), "degree", "shifts"),
    (lambda: circulant(10, 2, shifts=[1]), "degree", "shifts"),
    (lambda: circulant(9, 3), "degree", "Use 2 or 4"),
    (lambda: circulant(9, 9), "degree", "1 .. n-1 = 8"),
    (lambda: circulant(10, shifts=[6]), "shifts", "n/2 = 5"),
    (lambda: circulant(10, shifts=[1, 1]), "shifts", "distinct"),
    (lambda: circulant(10, shifts=[]), "shifts", "distinct"),
    (lambda: hypercube(0), "k", "1 .. 24"),
    (lambda: paley(9), "q", "Use 5 or 13"),
    (lambda: paley(15), "q", "Use 13 or 17"),
    (lambda: paley(3), "q", "Use 5"),
    (lambda: paley(1), "q", "5"),
    (lambda: margulis(1), "side", "at least 2"),
])  # fmt: skip
def test_impossible_parameters_say_what_is_possible(call, name: str, says: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`") as raised:
        call()
    assert says in str(raised.value)
