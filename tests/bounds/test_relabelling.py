"""Randomly relabelled graphs: the variance against every permutation, the factor against its worst team, effects."""

import itertools
import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import bounds
from graphsnd.bounds import relabelling
from graphsnd.bounds.relabelling import (
    fit_effects,
    paper_random_regular_bound,
    relabelling_bound,
    relabelling_factor,
    relabelling_variance,
    split_squares,
)


def template(name: str, n: int) -> np.ndarray:
    """Edges ``[m, 2]`` of a small graph."""
    edges = {
        "path": [(i, i + 1) for i in range(n - 1)],
        "matching": [(2 * i, 2 * i + 1) for i in range(n // 2)],
        "clique": list(itertools.combinations(range(3), 2)),
        "star": [(0, i) for i in range(1, n)],
        "cycle": [(i, (i + 1) % n) for i in range(n)],
        "one edge": [(0, 1)],
        "complete": list(itertools.combinations(range(n), 2)),
    }[name]
    return np.array(edges)


def degrees(edges: np.ndarray, n: int) -> list[int]:
    return np.bincount(edges.reshape(-1), minlength=n).tolist()


def means(edges: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Means over the edges of all n! relabellings."""
    labels = np.array(list(itertools.permutations(range(len(matrix)))))
    return matrix[labels[:, edges[:, 0]], labels[:, edges[:, 1]]].mean(axis=1)


def symmetric(n: int, seed: int) -> np.ndarray:
    upper = np.triu(np.random.default_rng(seed).exponential(size=(n, n)), 1)
    return upper + upper.T


NAMES = ["path", "matching", "clique", "star", "cycle", "one edge", "complete"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_variance_equals_that_over_all_permutations(name: str, n: int) -> None:
    edges, matrix = template(name, n), symmetric(n, n)
    exact = relabelling_variance(torch.from_numpy(matrix), degrees(edges, n))
    assert exact.dtype == torch.float64
    assert float(exact) == pytest.approx(means(edges, matrix).var(), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [3, 4, 5, 6])
def test_factor_is_the_largest_ratio(name: str, n: int) -> None:
    # The variance is a quadratic form of the distances; its largest eigenvalue on mean-zero pair functions is the
    # sharp constant. The form is read off the permutations, one basis function of the pairs at a time.
    edges = template(name, n)
    pairs = list(itertools.combinations(range(n), 2))
    columns = []
    for i, j in pairs:
        basis = np.zeros((n, n))
        basis[i, j] = basis[j, i] = 1.0
        columns.append(means(edges, basis))
    form = np.cov(np.array(columns), bias=True)  # constants are in its kernel already
    sharp = np.linalg.eigvalsh(np.atleast_2d(form))[-1] * len(pairs)
    assert relabelling_factor(n, degrees(edges, n)) == pytest.approx(sharp, rel=1e-9, abs=1e-12)


def test_two_agents_have_no_variance() -> None:
    assert relabelling_factor(2, [1, 1]) == 0
    assert float(relabelling_variance(torch.tensor([[0.0, 3.0], [3.0, 0.0]]), [1, 1])) == 0


def test_regular_bound_uses_the_factor_of_its_degrees() -> None:
    for n, degree in [(4, 1), (6, 3), (9, 8), (40, 7), (10_000, 10)]:
        chebyshev = math.sqrt(relabelling_factor(n, [degree] * n) / 0.3) / 2
        assert gs.bounds.random_regular_bound(1.0, n, degree, 0.3) == pytest.approx(chebyshev, rel=1e-12)


def test_closed_forms() -> None:
    # A clique of k agents is a sample of agents without replacement; on pure effects its mean is twice a sample mean.
    n, k = 12, 5
    effects = np.random.default_rng(0).normal(size=n)
    matrix = torch.from_numpy(effects[:, None] + effects)
    sampling = 4 * effects.var(ddof=1) / k * (1 - k / n)
    assert float(relabelling_variance(matrix, [k - 1] * k + [0] * (n - k))) == pytest.approx(sampling, rel=1e-12)
    # One edge is one pair drawn at random.
    assert relabelling_factor(n, [1, 1] + [0] * (n - 2)) == pytest.approx(1.0, rel=1e-14)


def test_effects_cancel_on_regular_graphs_without_rounding_away_the_rest() -> None:
    n = 30
    rng = np.random.default_rng(1)
    effects = 1e6 * rng.exponential(size=n)
    small = symmetric(n, 2) * 1e-3
    plain = relabelling_variance(torch.from_numpy(small), [4] * n)
    shifted = relabelling_variance(torch.from_numpy(small + effects[:, None] + effects), [4] * n)
    assert float(shifted) == pytest.approx(float(plain), rel=1e-4)


def test_split_is_orthogonal_and_batched() -> None:
    matrix = torch.from_numpy(np.stack([symmetric(7, seed) for seed in range(6)]).reshape(2, 3, 7, 7))
    effects, rest = split_squares(matrix)
    i, j = np.triu_indices(7, 1)
    upper = matrix[..., i, j]
    total = (upper - upper.mean(-1, keepdim=True)).square().sum(-1)
    assert torch.allclose(effects + rest, total, rtol=1e-12)
    one = relabelling_variance(matrix[1, 2], [2] * 7)
    assert torch.allclose(relabelling_variance(matrix, torch.tensor([2] * 7))[1, 2], one, rtol=1e-12)
    assert torch.equal(relabelling_variance(matrix + 5 * torch.eye(7), [2] * 7)[1, 2], one)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_degrees_are_accepted_exactly_when_a_graph_has_them(n: int) -> None:
    pairs = list(itertools.combinations(range(n), 2))
    chosen = itertools.product((False, True), repeat=len(pairs))
    ends = ([agent for pair, used in zip(pairs, uses, strict=True) if used for agent in pair] for uses in chosen)
    reached = {tuple(map(listed.count, range(n))) for listed in ends}
    for sequence in itertools.product(range(n), repeat=n):
        possible = sequence in reached and any(sequence)
        try:
            relabelling_factor(n, sequence)
            accepted = True
        except gs.InputError:
            accepted = False
        assert accepted == possible, sequence


DELTA = 0.1


def draws(n: int, degree: int, matrix: np.ndarray, count: int) -> np.ndarray:
    """Means over the edges of ``count`` uniformly random relabellings of one regular graph."""
    edges = gs.graphs.random_regular(n, degree, seed=0).edges.numpy()
    rng = np.random.default_rng(0)
    labels = np.argsort(rng.random((count, n)), axis=1)
    return matrix[labels[:, edges[:, 0]], labels[:, edges[:, 1]]].mean(axis=1)


def distances(n: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).normal(size=(n, 2))
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


@pytest.mark.parametrize(("n", "degree"), [(16, 3), (100, 1), (100, 10)])
def test_bound_covers_and_is_not_vacuous(n: int, degree: int) -> None:
    # Two camps: distances 0 and 1, the largest variance that D_max = 1 allows.
    camp = np.arange(n) % 2
    matrix = (camp[:, None] != camp[None]).astype(float)
    truth = matrix[np.triu_indices(n, 1)].mean()
    off = np.abs(draws(n, degree, matrix, 2000) - truth)
    radius = bounds.random_regular_bound(1.0, n, degree, DELTA)
    assert (off > radius).mean() <= DELTA
    assert (off > radius / 8).mean() > DELTA


def test_relabelling_covers_and_wins_for_tiny_delta() -> None:
    assert relabelling_bound(2.0, 50, 0.05) == pytest.approx(2 * math.sqrt(8 * math.log(40) / 50))
    assert bounds.random_regular_bound(1.0, 1000, 3, 1e-9) == relabelling_bound(1.0, 1000, 1e-9)
    assert bounds.random_regular_bound(1.0, 1000, 3, 0.05) < relabelling_bound(1.0, 1000, 0.05)


def configurations(n: int, degree: int, count: int, seed: int = 0) -> np.ndarray:
    """``count`` uniform pairings of n * degree stubs, as multigraphs ``[count, m, 2]``, loops and repeats included."""
    stubs = np.argsort(np.random.default_rng(seed).random((count, n * degree)), axis=1)
    return (stubs // degree).reshape(count, -1, 2)


@pytest.mark.parametrize(("n", "degree"), [(6, 3), (10, 3), (12, 5)])
def test_configuration_model_has_its_mean_below_snd(n: int, degree: int) -> None:
    matrix = distances(n, 4)
    snd = matrix[np.triu_indices(n, 1)].mean()
    edges = configurations(n, degree, 20_000)
    means = matrix[edges[..., 0], edges[..., 1]].mean(axis=1)
    error = means.std() / math.sqrt(len(means))
    corrected = snd * (n * degree - degree) / (n * degree - 1)
    assert abs(means.mean() - corrected) < 4 * error
    assert abs(means.mean() - snd) > 10 * error
    # Those that came out simple are uniform random regular graphs, and their mean is SND.
    codes = np.sort(edges.min(-1) * n + edges.max(-1), axis=1)
    simple = (edges[..., 0] != edges[..., 1]).all(1) & (np.diff(codes, axis=1) > 0).all(1)
    assert abs(means[simple].mean() - snd) < 4 * means[simple].std() / math.sqrt(simple.sum())


def test_paper_bound_is_its_formula_and_covers() -> None:
    n, degree = 40, 3
    radius = paper_random_regular_bound(2.0, n, degree, DELTA)
    assert radius == pytest.approx(2 * math.sqrt(8 / 120 * (math.log(4 / DELTA) + 2)))
    camp = np.arange(n) % 2
    matrix = 2.0 * (camp[:, None] != camp[None])
    off = np.abs(draws(n, degree, matrix, 2000) - matrix[np.triu_indices(n, 1)].mean())
    assert (off > radius).mean() <= DELTA
    assert bounds.random_regular_bound(2.0, n, degree, DELTA) < radius


from_networkx = gs.graphs.from_networkx


def standard_error(distances: torch.Tensor, graph: gs.Graph) -> float:
    """As `measure` computes it for a random regular graph."""
    return math.sqrt((1 - graph.m / graph.pairs) / graph.m * fit_effects(distances, graph).residual_variance)


@pytest.mark.parametrize("graph", [
    gs.graphs.random_regular(20, 5, seed=0),
    gs.graphs.bernoulli(25, 0.2, seed=1),
    gs.graphs.bernoulli(25, 0.05, seed=2),  # isolated agents and trees
    from_networkx(networkx.complete_bipartite_graph(4, 6)),
    from_networkx(networkx.disjoint_union(networkx.cycle_graph(6), networkx.complete_graph(5))),
])  # fmt: skip
def test_fit_is_least_squares(graph: gs.Graph) -> None:
    values = np.random.default_rng(0).exponential(size=graph.m)
    design = np.zeros((graph.m, graph.n))
    design[np.arange(graph.m)[:, None], graph.edges.numpy()] = 1
    fit, _, rank, _ = np.linalg.lstsq(design, values - values.mean(), rcond=None)
    split = fit_effects(torch.from_numpy(values), graph)
    assert split.freedom == graph.m - rank
    assert np.allclose(split.effects.numpy(), fit - fit.mean(), atol=1e-8)
    assert split.level == pytest.approx(values.mean() + 2 * fit.mean())
    residual = values - values.mean() - design @ fit
    if split.freedom:
        assert split.residual_variance == pytest.approx((residual**2).sum() / split.freedom, abs=1e-12)
    else:
        assert math.isnan(split.residual_variance)


@pytest.mark.parametrize("oracle", [
    networkx.circular_ladder_graph(3),  # the prism
    networkx.complete_bipartite_graph(3, 3),  # bipartite: one dimension less to fit
    networkx.octahedral_graph(),
])  # fmt: skip
def test_squared_error_is_unbiased_over_all_relabellings(oracle: networkx.Graph) -> None:
    graph, matrix = from_networkx(oracle), symmetric(6, 3)
    i, j = graph.edges.numpy().T
    labels = np.array(list(itertools.permutations(range(6))))
    # The same edges come up equally often, once for every symmetry of the graph; once is enough.
    ends = np.sort(labels[:, graph.edges.numpy()], axis=-1)
    _, first = np.unique(np.sort(ends[..., 0] * 6 + ends[..., 1], axis=1), axis=0, return_index=True)
    drawn = matrix[labels[first][:, i], labels[first][:, j]]
    squares = [standard_error(torch.from_numpy(distances), graph) ** 2 for distances in drawn]
    truth = float(relabelling_variance(torch.from_numpy(matrix), graph.degrees()))
    assert np.mean(squares) == pytest.approx(truth, rel=1e-8)


def test_calibrated_where_the_plain_formula_is_several_times_too_large() -> None:
    n, degree, draws = 60, 4, 250
    rng = np.random.default_rng(0)
    effects = rng.exponential(size=n)
    matrix = symmetric(n, 1) * 0.2 + effects[:, None] + effects
    np.fill_diagonal(matrix, 0)
    snd = matrix[np.triu_indices(n, 1)].mean()
    squares, plain, means = [], [], []
    for seed in range(draws):
        graph = gs.graphs.random_regular(n, degree, seed=seed)
        i, j = graph.edges.numpy().T
        squares.append(standard_error(torch.from_numpy(matrix[i, j]), graph) ** 2)
        plain.append(relabelling_factor(n, [degree] * n) * matrix[i, j].var(ddof=1))
        means.append(matrix[i, j].mean())
    truth = float(relabelling_variance(torch.from_numpy(matrix), [degree] * n))
    assert np.mean(squares) == pytest.approx(truth, rel=0.05)
    assert np.var(means) == pytest.approx(truth, rel=0.25)
    assert np.mean(plain) > 20 * truth
    covered = np.abs(np.array(means) - snd) <= 1.96 * np.sqrt(squares)
    assert 0.90 < covered.mean() < 0.99


def test_offset_does_not_drown_the_spread() -> None:
    graph = gs.graphs.random_regular(50, 6, seed=0)
    values = torch.rand(graph.m, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert standard_error(values + 1e6, graph) == pytest.approx(standard_error(values, graph), rel=1e-6)


@pytest.mark.gpu
def test_everything_takes_a_device() -> None:
    from graphsnd.bounds.spectral import nuclear_norm, spectral_bound, spectral_ratio

    matrix = torch.from_numpy(symmetric(100, 0))
    graph = gs.graphs.random_regular(100, 6, seed=0, device="cuda")
    assert graph.device.type == "cuda"
    i, j = graph.edges.cpu().T
    there = matrix.cuda()
    assert float(relabelling_variance(there, graph.degrees())) == pytest.approx(
        float(relabelling_variance(matrix, [6] * 100)), rel=1e-9
    )
    assert standard_error(there[tuple(graph.edges.T)], graph) == pytest.approx(
        standard_error(matrix[i, j], graph.to("cpu")), rel=1e-9
    )
    assert nuclear_norm(there) == pytest.approx(nuclear_norm(matrix), rel=1e-6)
    assert spectral_bound(graph, there).low == pytest.approx(spectral_bound(graph.to("cpu"), matrix).low, rel=1e-9)
    assert spectral_ratio(graph) == spectral_ratio(graph.to("cpu"))


def test_a_long_fit_stops_early_and_is_nearly_right(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 2000
    ahead = torch.arange(n)[:, None] + torch.tensor([1, 3])  # bipartite, and hard to fit
    ends = torch.stack([torch.arange(n).repeat_interleave(2), ahead.flatten() % n], 1).sort(1).values
    graph = gs.Graph(n, torch.randperm(n, generator=torch.Generator().manual_seed(0))[ends].sort(1).values)
    distances = torch.rand(graph.m, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    exact = standard_error(distances, graph)
    monkeypatch.setattr(relabelling, "WORK", 100 * graph.m)
    early = standard_error(distances, graph)
    assert exact < early < 1.002 * exact
