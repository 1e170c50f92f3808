"""Random regular graphs: the variance is exact, the radii cover, and both could fail."""

import itertools
import math

import numpy as np
import pytest

import graphsnd as gs
from graphsnd import bounds
from graphsnd.bounds import regular as bounds_regular

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
    exact = bounds.variance_factor(n, degree) * upper.var() - rows
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
    assert bounds.relabelling(2.0, 50, 0.05) == pytest.approx(2 * math.sqrt(8 * math.log(40) / 50))
    assert bounds.random_regular_bound(1.0, 1000, 3, 1e-9) == bounds.relabelling(1.0, 1000, 1e-9)
    assert bounds.random_regular_bound(1.0, 1000, 3, 0.05) < bounds.relabelling(1.0, 1000, 0.05)


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
    corrected = bounds_regular.configuration_mean(snd, n, degree)
    assert abs(means.mean() - corrected) < 4 * error
    assert abs(means.mean() - snd) > 10 * error
    # Those that came out simple are uniform random regular graphs, and their mean is SND.
    codes = np.sort(edges.min(-1) * n + edges.max(-1), axis=1)
    simple = (edges[..., 0] != edges[..., 1]).all(1) & (np.diff(codes, axis=1) > 0).all(1)
    assert abs(means[simple].mean() - snd) < 4 * means[simple].std() / math.sqrt(simple.sum())


def test_paper_bound_is_its_formula_and_covers() -> None:
    n, degree = 40, 3
    radius = bounds_regular.paper_random_regular_bound(2.0, n, degree, DELTA)
    assert radius == pytest.approx(2 * math.sqrt(8 / 120 * (math.log(4 / DELTA) + 2)))
    camp = np.arange(n) % 2
    matrix = 2.0 * (camp[:, None] != camp[None])
    off = np.abs(draws(n, degree, matrix, 2000) - matrix[np.triu_indices(n, 1)].mean())
    assert (off > radius).mean() <= DELTA
    assert bounds.random_regular_bound(2.0, n, degree, DELTA) < radius


def test_complete_graph_has_no_variance() -> None:
    assert bounds.variance_factor(9, 8) == 0
    assert bounds.random_regular_bound(1.0, 9, 8, 0.05) == 0


@pytest.mark.parametrize(("call", "name"), [
    (lambda: bounds.relabelling(1.0, 1, 0.1), "n"),
    (lambda: bounds.variance_factor(5, 5), "degree"),
    (lambda: bounds.variance_factor(5, 3), "degree"),
    (lambda: bounds_regular.paper_random_regular_bound(1.0, 10, 2, 0.1), "degree"),
    (lambda: bounds_regular.configuration_mean(1.0, 3, 3), "degree"),
    (lambda: bounds.random_regular_bound(1.0, 5, 0, 0.1), "degree"),
    (lambda: bounds.random_regular_bound(-1.0, 5, 2, 0.1), "d_max"),
])  # fmt: skip
def test_bad_input_is_named(call, name: str) -> None:
    with pytest.raises(gs.InputError, match=f"`{name}`"):
        call()
