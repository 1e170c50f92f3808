"""The distortion theorem on metrics of every kind, and the metrics that attain it."""

import functools
import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from graphsnd import graphs
from graphsnd.bounds.distortion_theorem import Distortion, distortion
from graphsnd.errors import InputError

N = 14
POINTS = torch.rand(N, 2, generator=torch.Generator().manual_seed(0))
FAMILIES = {
    "complete": graphs.complete(N),
    "one clique": graphs.cliques([0] * N),
    "bernoulli": graphs.bernoulli(N, 0.4, seed=0),
    "uniform": graphs.uniform(N, 30, seed=1),
    "regular": graphs.random_regular(N, 3, seed=0),
    "knn": graphs.knn(POINTS, 5),
    "radius": graphs.radius(POINTS, 0.8),
    "star": graphs.from_networkx(nx.star_graph(N - 1)),
    "path": graphs.from_networkx(nx.path_graph(N)),
    "cycle": graphs.from_edge_index(torch.tensor([range(N), [*range(1, N), 0]]), N),
    "bipartite": graphs.from_networkx(nx.complete_bipartite_graph(N // 2, N // 2)),
}


@functools.cache
def bounds_of(family: str) -> Distortion:
    return distortion(FAMILIES[family])


def metric(kind: str, seed: int, n: int = N) -> np.ndarray:
    """A distance matrix that satisfies the triangle inequality."""
    rng = np.random.default_rng(seed)
    if kind == "plane":
        points = rng.normal(size=(n, 2)) * rng.exponential(size=(n, 1)) ** 3
        return np.linalg.norm(points[:, None] - points[None], axis=-1)
    if kind == "camps":
        side = rng.integers(0, 2, n)
        return (side[:, None] != side[None]).astype(float)
    sparse = np.zeros((n, n))
    for v in range(1, n):
        sparse[v, rng.integers(v)] = rng.exponential() ** 2 + 1e-6
    if kind == "shortest paths":
        extra = np.tril(rng.random((n, n)) < 0.3, -1)
        sparse[extra] = rng.exponential(size=extra.sum()) ** 2 + 1e-6
    return shortest_path(sparse, directed=False)


def snd(matrix: np.ndarray) -> float:
    return matrix[np.triu_indices(len(matrix), 1)].mean()


def graph_snd(matrix: np.ndarray, graph: graphs.Graph) -> float:
    i, j = graph.edges.numpy().T
    weights = np.ones(graph.m) if graph.weights is None else graph.weights.numpy()
    return float((weights * matrix[i, j]).sum() / weights.sum())


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(sorted(FAMILIES)),
    st.sampled_from(["plane", "camps", "tree", "shortest paths"]),
    st.integers(0, 2**31),
)
def test_theorem_holds(family: str, kind: str, seed: int) -> None:
    matrix = metric(kind, seed)
    bounds, value, truth = bounds_of(family), graph_snd(matrix, FAMILIES[family]), snd(matrix)
    low, high = bounds.interval(value)
    assert low * (1 - 1e-12) <= truth <= high * (1 + 1e-12)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_factors_are_those_of_the_paper(family: str) -> None:
    graph, bounds = FAMILIES[family], bounds_of(family)
    share = graph.m / graph.pairs
    assert bounds.lower == pytest.approx(share, rel=1e-12)
    assert bounds.upper == pytest.approx(share * bounds.index.upper, rel=1e-12)
    assert bounds.lower <= bounds.lower_metric <= 1 + 1e-12
    assert bounds.upper >= 1 - 1e-8


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_upper_bound_is_attained_by_the_dual_lengths(family: str) -> None:
    graph, bounds = FAMILIES[family], bounds_of(family)
    # A stored zero would be no edge; lengths this small keep the edge and change no distance that counts.
    lengths = np.maximum(bounds.index.lengths.numpy(), 1e-14)
    matrix = shortest_path(csr_matrix((lengths, graph.edges.numpy().T), shape=(N, N)), directed=False)
    ratio = snd(matrix) / graph_snd(matrix, graph)
    assert ratio == pytest.approx(bounds.upper, rel=1e-6)


def test_lower_bounds_are_attained() -> None:
    # Two camps of equal size on a bipartite graph: every edge joins the camps, half of all pairs do.
    side = np.arange(N) < N // 2
    matrix = (side[:, None] != side[None]).astype(float)
    bounds = bounds_of("bipartite")
    assert snd(matrix) / graph_snd(matrix, FAMILIES["bipartite"]) == pytest.approx(bounds.lower_metric, rel=1e-6)
    # A star whose centre alone differs: dropping the other pairs loses nothing.
    centre = np.zeros((N, N))
    centre[0, 1:] = centre[1:, 0] = 1
    assert snd(centre) / graph_snd(centre, FAMILIES["star"]) == pytest.approx(bounds_of("star").lower)


def test_regular_graphs_keep_half() -> None:
    for n, degree in ((20, 3), (50, 4)):
        bounds = distortion(graphs.random_regular(n, degree, seed=1), "betweenness")
        assert bounds.lower == pytest.approx(degree / (n - 1))
        assert bounds.lower_metric >= (n - 2) / (2 * (n - 1)) * (1 - 1e-8)


def worst_ratio(graph: graphs.Graph, sign: int) -> float:
    """The largest (sign 1) or smallest (-1) SND / Graph-SND over all metrics: a program over n(n-1)/2 distances."""
    pairs = {pair: k for k, pair in enumerate(itertools.combinations(range(graph.n), 2))}
    rows = []
    for a, b, c in itertools.permutations(range(graph.n), 3):
        if a < b:
            row = np.zeros(len(pairs))
            row[pairs[a, b]] = 1
            row[pairs[min(a, c), max(a, c)]] = row[pairs[min(b, c), max(b, c)]] = -1
            rows.append(row)
    share = np.zeros(len(pairs))
    weights = np.ones(graph.m) if graph.weights is None else graph.weights.numpy()
    for pair, weight in zip(graph.edges.tolist(), weights, strict=True):
        share[pairs[tuple(pair)]] = weight / weights.sum()
    mean = np.full(len(pairs), 1 / len(pairs))
    return sign * -linprog(-sign * mean, np.array(rows), np.zeros(len(rows)), share[None], [1.0]).fun


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_against_the_worst_of_all_metrics(seed: int, weighted: bool) -> None:
    G = nx.gnm_random_graph(7, 9, seed=seed)
    G.add_edges_from(nx.utils.pairwise(range(7)))
    graph = graphs.from_networkx(G)
    if weighted:
        weights = torch.from_numpy(np.random.default_rng(seed).exponential(size=graph.m))
        graph = graphs.Graph(7, graph.edges, weights)
    bounds = distortion(graph, "lp")
    assert bounds.upper == pytest.approx(worst_ratio(graph, 1), rel=1e-6)
    smallest = worst_ratio(graph, -1)
    assert bounds.lower <= bounds.lower_metric <= smallest * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["flow", "betweenness"]), st.sampled_from(["plane", "camps", "tree"]))
def test_weighted_theorem_holds(seed: int, method: str, kind: str) -> None:
    base = FAMILIES["bernoulli"]
    rng = np.random.default_rng(seed)
    graph = graphs.Graph(N, base.edges, torch.from_numpy(rng.exponential(size=base.m) ** 3 * 1e5))
    matrix = metric(kind, seed)
    low, high = distortion(graph, method, tolerance=0.2).interval(graph_snd(matrix, graph))
    assert low * (1 - 1e-12) <= snd(matrix) <= high * (1 + 1e-12)


def test_edges_without_weight_join_nothing() -> None:
    edges = torch.tensor([[0, 1], [1, 2], [0, 2]])
    bounds = distortion(graphs.Graph(3, edges, torch.tensor([1.0, 1.0, 0.0])))
    assert bounds.upper == pytest.approx(distortion(graphs.Graph(3, edges[:2])).upper)
    with pytest.raises(InputError, match="2 components"):
        distortion(graphs.Graph(3, edges, torch.tensor([1.0, 0.0, 0.0])))
    with pytest.raises(InputError, match="3 components"):
        distortion(graphs.Graph(3, edges, torch.zeros(3)))


@pytest.mark.parametrize("method", ["auto", "lp"])
@pytest.mark.parametrize("ratio", [1e4, 1e9, 1e15])
def test_weights_that_no_solver_takes_keep_a_certified_bracket(ratio: float, method: str) -> None:
    base = graphs.uniform(12, 30, seed=0)
    light = np.random.default_rng(0).random(base.m) >= 0.5
    bounds = distortion(graphs.Graph(12, base.edges, torch.from_numpy(np.where(light, 1 / ratio, 1.0))), method)
    assert bounds.index.method == ("lp" if ratio == 1e4 else "flow")
    assert bounds.index.gap <= 0.02
    # Only light edges cross the worst cut: the index is proportional to the ratio, and 40000 at 1e4.
    assert bounds.index.lower <= 4 * ratio * (1 + 1e-6) <= bounds.index.upper * (1 + 2e-6)
