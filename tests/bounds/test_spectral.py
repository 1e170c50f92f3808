"""Eigenvalues of graphs: closed forms, networkx, and Lanczos against the dense answer."""

import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds import spectral
from graphsnd.bounds.spectral import spectrum

from_networkx = gs.graphs.from_networkx


def cycle(n: int) -> gs.Graph:
    return from_networkx(networkx.cycle_graph(n))


@pytest.mark.parametrize(("name", "graph", "signed_second", "smallest"), [
    ("complete", gs.graphs.complete(7), -1, -1),
    ("two agents", gs.graphs.complete(2), -1, -1),
    ("odd cycle", cycle(9), 2 * math.cos(2 * math.pi / 9), 2 * math.cos(8 * math.pi / 9)),
    ("even cycle", cycle(8), math.sqrt(2), -2),
    ("petersen", from_networkx(networkx.petersen_graph()), 1, -2),
    ("cube", from_networkx(networkx.hypercube_graph(4)), 2, -4),
    ("star", from_networkx(networkx.star_graph(9)), 0, -3),
    ("two triangles", gs.graphs.cliques([0, 0, 0, 1, 1, 1]), 2, -1),
])  # fmt: skip
def test_closed_forms(name: str, graph: gs.Graph, signed_second: float, smallest: float) -> None:
    ends = spectrum(graph)
    assert ends.signed_second == pytest.approx(signed_second, abs=1e-9), name
    assert ends.smallest == pytest.approx(smallest, abs=1e-9), name
    assert ends.second == pytest.approx(max(abs(signed_second), abs(smallest)), abs=1e-9)
    assert ends.gap == pytest.approx(1 - ends.second / ends.degree)


def random_graph(seed: int) -> networkx.Graph:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    graph = networkx.gnp_random_graph(n, float(rng.uniform(0, 4 / n)), seed=seed)
    if seed % 2:
        for edge in graph.edges:
            graph.edges[edge]["weight"] = float(rng.exponential())
    return graph


@pytest.mark.parametrize("seed", range(25))
def test_against_networkx(seed: int) -> None:
    oracle = random_graph(seed)
    ends = spectrum(from_networkx(oracle))
    matrix = networkx.to_numpy_array(oracle, nodelist=range(len(oracle)))
    values = np.linalg.eigvalsh(matrix)
    assert (ends.smallest, ends.signed_second) == pytest.approx(tuple(values[[0, -2]]), abs=1e-6)
    assert ends.second == pytest.approx(np.abs(values[:-1]).max(), abs=1e-6)
    assert ends.degree == pytest.approx(matrix.sum(0).max(), rel=1e-6)
    assert ends.connected == networkx.is_connected(oracle)
    assert ends.bipartite == networkx.is_bipartite(oracle)
    assert ends.regular == (np.ptp(matrix.sum(0)) < 1e-9)


@pytest.mark.parametrize("graph", [
    gs.graphs.random_regular(300, 4, seed=1),
    from_networkx(networkx.disjoint_union(networkx.random_regular_graph(3, 200, 1), networkx.cycle_graph(150))),
    # Twice the same graph: one Lanczos sequence would see each eigenvalue once, and miss that the first is repeated.
    from_networkx(networkx.disjoint_union(*[networkx.random_regular_graph(3, 200, 1)] * 2)),
    from_networkx(networkx.hypercube_graph(8)),
    gs.graphs.bernoulli(400, 0.005, seed=3),
])  # fmt: skip
def test_lanczos_agrees_with_the_dense_answer(graph: gs.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = spectrum(graph)
    monkeypatch.setattr(spectral, "DENSE", 50)
    sparse = spectrum(graph)
    for name in ("signed_second", "smallest", "degree"):
        assert getattr(sparse, name) == pytest.approx(getattr(dense, name), abs=1e-7), name
    assert sparse == spectrum(graph)  # to the last bit


def test_ramanujan() -> None:
    assert spectrum(from_networkx(networkx.petersen_graph())).ramanujan
    assert spectrum(cycle(51)).ramanujan  # every eigenvalue of degree 2 is at most 2 sqrt(1)
    assert not spectrum(from_networkx(networkx.circular_ladder_graph(30))).ramanujan
    assert not spectrum(from_networkx(networkx.path_graph(5))).ramanujan  # not regular
    assert not spectrum(from_networkx(networkx.hypercube_graph(4))).ramanujan  # bipartite, the paper's definition


def test_edges_of_weight_zero_are_absent() -> None:
    graph = gs.Graph(3, torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 0.0]))
    ends = spectrum(graph)
    assert not ends.connected
    assert (ends.degree, ends.signed_second) == pytest.approx((1, 0))


def test_no_edges() -> None:
    ends = spectrum(gs.Graph(3, torch.empty(0, 2, dtype=torch.int64)))
    assert (ends.second, ends.gap, ends.connected, ends.bipartite) == (0, 0, False, True)
