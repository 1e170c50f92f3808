"""Eigenvalues of graphs: closed forms, networkx, Lanczos against the dense answer; and the bounds that follow."""

import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds import spectral
from graphsnd.bounds.spectral import spectral_bound, spectral_ratio, spectrum

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


def ratio(graph: gs.Graph, values: torch.Tensor) -> float:
    """Graph-SND / SND from the definitions."""
    i, j = graph.edges.T
    weights = torch.ones(graph.m) if graph.weights is None else graph.weights
    upper = values[tuple(np.triu_indices(len(values), 1))].mean()
    return float((weights.double() * values[i, j]).sum() / weights.double().sum() / upper)


@pytest.mark.parametrize("kind", ["euclidean", "l1", "low rank", "noise"])
@pytest.mark.parametrize(("n", "degree"), [(8, 2), (20, 3), (30, 12), (40, 39)])
def test_both_bounds_hold_for_any_matrix(kind: str, n: int, degree: int) -> None:
    for seed in range(5):
        values = matrix(kind, n, seed).abs()  # low rank and noise become no distances, and of no type
        graph = gs.graphs.random_regular(n, degree, seed=seed)
        bound, measured = spectral_bound(graph, values), ratio(graph, values)
        assert abs(measured - 1) <= bound.relative + 1e-12
        assert bound.low - 1e-9 <= measured <= bound.high + 1e-9
        assert bound.low >= 1 - bound.relative
        assert bound.high <= 1 + bound.relative


def test_paper_bound_is_its_formula() -> None:
    graph, values = gs.graphs.random_regular(24, 5, seed=0), matrix("euclidean", 24, 0)
    bound = spectral_bound(graph, values)
    eigenvalues = np.linalg.eigvalsh(networkx.to_numpy_array(graph.to_networkx()))
    second = np.abs(eigenvalues[:-1]).max()
    snd = values[tuple(np.triu_indices(24, 1))].mean()
    norm = np.linalg.svd(values.numpy(), compute_uv=False).sum()
    assert bound.absolute == pytest.approx(float((second + 5 / 23) / (24 * 5) * norm), rel=1e-9)
    assert bound.relative == pytest.approx(bound.absolute / float(snd), rel=1e-9)
    assert bound.rho >= 2 * 23 / 24


def test_bipartite_and_disconnected_graphs_are_covered_too() -> None:
    camp = torch.arange(12) % 2
    values = (camp[:, None] != camp).double()
    crossing = gs.graphs.from_networkx(networkx.complete_bipartite_graph(6, 6))
    values = values[(order := torch.argsort(camp, stable=True))][:, order]
    bound = spectral_bound(crossing, values)
    assert ratio(crossing, values) == pytest.approx(11 / 6)
    assert bound.high == pytest.approx(11 / 6)  # reached
    inside = gs.graphs.cliques([0] * 6 + [1] * 6)
    assert spectral_bound(inside, values).low == pytest.approx(0, abs=1e-9)  # reached


@pytest.mark.parametrize("kind", ["euclidean", "l1"])
@pytest.mark.parametrize("seed", range(6))
def test_ratio_holds_for_negative_type_on_any_graph(kind: str, seed: int) -> None:
    oracle = networkx.gnp_random_graph(25, 0.15, seed=seed)
    rng = np.random.default_rng(seed)
    for edge in oracle.edges:
        oracle.edges[edge]["weight"] = float(rng.exponential()) if seed % 2 else 1.0
    graph = gs.graphs.from_networkx(oracle)
    bounds = spectral_ratio(graph)
    for team in range(20):
        assert bounds.low <= ratio(graph, matrix(kind, 25, 100 * seed + team)) <= bounds.high


def test_ratio_is_reached_by_squared_differences_of_an_eigenvector() -> None:
    graph = gs.graphs.random_regular(30, 4, seed=0)
    _, vectors = np.linalg.eigh(networkx.to_numpy_array(graph.to_networkx()))
    bounds = spectral_ratio(graph)
    for vector, bound in [(vectors[:, -2], bounds.low), (vectors[:, 0], bounds.high)]:
        values = torch.from_numpy((vector[:, None] - vector) ** 2)
        assert ratio(graph, values) == pytest.approx(bound, rel=1e-9)


def test_ratio_equals_the_bound_of_a_matrix_of_negative_type() -> None:
    graph, values = gs.graphs.random_regular(40, 6, seed=2), matrix("l1", 40, 3)
    bound, bounds = spectral_bound(graph, values), spectral_ratio(graph)
    assert (bound.low, bound.high) == pytest.approx((bounds.low, bounds.high), rel=1e-9)
    eigenvalues = np.linalg.eigvalsh(networkx.to_numpy_array(graph.to_networkx()))
    assert bounds.low == pytest.approx((1 - 1 / 40) * (1 - eigenvalues[-2] / 6), rel=1e-9)
    assert bounds.high == pytest.approx((1 - 1 / 40) * (1 - eigenvalues[0] / 6), rel=1e-9)


NORMAL = torch.randn(8, 20, 4, generator=torch.Generator().manual_seed(1))
GAUSSIAN, CATEGORICAL = gs.Gaussian(NORMAL[..., :2], NORMAL[..., 2:].exp()), gs.Categorical(NORMAL.softmax(-1))
DISTANCES = [(GAUSSIAN, None), *[(CATEGORICAL, d()) for d in (gs.TotalVariation, gs.Hellinger, gs.JensenShannon)]]


@pytest.mark.parametrize(("behavior", "distance"), DISTANCES)
def test_distances_of_the_package_are_of_negative_type(behavior: gs.Behavior, distance: gs.Distance | None) -> None:
    values = gs.pairwise(behavior, distance).double()
    centre = torch.eye(20, dtype=torch.float64) - 1 / 20
    assert float(torch.linalg.eigvalsh(centre @ values @ centre).max()) < 1e-5


def test_large_graphs_go_through_lanczos(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = gs.graphs.random_regular(300, 5, seed=0)
    dense = spectral_ratio(graph)
    monkeypatch.setattr(spectral, "DENSE", 100)
    sparse = spectral_ratio(graph)
    assert (sparse.low, sparse.high) == pytest.approx((dense.low, dense.high), rel=1e-5)
    assert sparse.low <= dense.low <= dense.high <= sparse.high
    values = matrix("euclidean", 300, 0)
    bound = spectral_bound(graph, values)
    assert bound.low <= ratio(graph, values) <= bound.high


def test_identical_agents() -> None:
    bound = spectral_bound(gs.graphs.random_regular(6, 3), torch.zeros(6, 6))
    assert (bound.relative, bound.low, bound.high) == (0, 1, 1)


def matrix(kind: str, n: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    if kind == "euclidean":
        points = rng.normal(size=(n, 3))
        values = np.linalg.norm(points[:, None] - points, axis=-1)
    elif kind == "l1":
        points = rng.normal(size=(n, 5))
        values = np.abs(points[:, None] - points).sum(-1)
    elif kind == "low rank":
        factors = rng.normal(size=(n, 4))
        values = factors @ np.diag([3, 1, -2, -4]) @ factors.T
    else:  # no structure: eigenvalues of both signs, none of them small
        values = rng.normal(size=(n, n))
    values = np.triu(values, 1)
    return torch.from_numpy(values + values.T)
