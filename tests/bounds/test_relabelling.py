"""Randomly relabelled graphs: the variance against every permutation, and the factor against its worst team."""

import itertools
import math

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import bounds
from graphsnd.bounds.relabelling import (
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


@pytest.mark.parametrize(("call", "name"), [
    (lambda: relabelling_factor(4, [1, 1]), "degrees"),
    (lambda: relabelling_factor(4, range(10**9)), "degrees"),
    (lambda: relabelling_factor(4, [1.0, 1.0, 0.0, 0.0]), "degrees"),
    (lambda: relabelling_factor(4, [0, 0, 0, 0]), "degrees"),
    (lambda: relabelling_factor(1, [0]), "n"),
    (lambda: relabelling_variance(torch.zeros(3, 4), [1, 1, 0]), "distances"),
    (lambda: relabelling_variance(torch.full((3, 3), math.nan), [1, 1, 0]), "distances"),
])  # fmt: skip
def test_bad_input_is_named(call, name: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`"):
        call()


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


@pytest.mark.parametrize(("n", "degree"), [(6, 2), (6, 3), (7, 4)])
def test_variance_is_exact_over_all_relabellings(n: int, degree: int) -> None:
    matrix = distances(n, 1)
    edges = gs.graphs.random_regular(n, degree, seed=0).edges.numpy()
    means = [
        matrix[np.array(p)[edges[:, 0]], np.array(p)[edges[:, 1]]].mean() for p in itertools.permutations(range(n))
    ]
    upper = matrix[np.triu_indices(n, 1)]
    centred = matrix - upper.mean()
    np.fill_diagonal(centred, 0)
    pairs, m = n * (n - 1) / 2, n * degree / 2
    adjacent = degree * (degree - 1) / ((n - 1) * (n - 2))
    disjoint = (math.comb(int(m), 2) - n * math.comb(degree, 2)) / (math.comb(int(pairs), 2) - n * math.comb(n - 1, 2))
    rows = (disjoint - adjacent) * (centred.sum(axis=1) ** 2).sum() / m**2
    exact = relabelling_factor(n, [degree] * n) * upper.var() - rows
    assert np.var(means) == pytest.approx(exact, rel=1e-9)
    assert rows > 0


def test_additive_effects_cancel() -> None:
    effects = np.random.default_rng(2).exponential(size=20)
    matrix = effects[:, None] + effects[None]
    assert np.ptp(draws(20, 3, matrix, 200)) < 1e-12


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


def test_complete_graph_has_no_variance() -> None:
    assert relabelling_factor(9, [8] * 9) == 0
    assert bounds.random_regular_bound(1.0, 9, 8, 0.05) == 0


@pytest.mark.parametrize(("call", "name"), [
    (lambda: relabelling_bound(1.0, 1, 0.1), "n"),
    (lambda: bounds.random_regular_bound(1.0, 5, 5, 0.1), "degree"),
    (lambda: bounds.random_regular_bound(1.0, 5, 3, 0.1), "degree"),
    (lambda: paper_random_regular_bound(1.0, 10, 2, 0.1), "degree"),
    (lambda: bounds.random_regular_bound(1.0, 5, 0, 0.1), "degree"),
    (lambda: bounds.random_regular_bound(-1.0, 5, 2, 0.1), "d_max"),
])  # fmt: skip
def test_bad_input_of_the_bounds_is_named(call, name: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`"):
        call()
