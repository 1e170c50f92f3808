"""Agent effects: least squares against NumPy, and an error that is unbiased over every relabelling."""

import itertools
import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds import relabelling
from graphsnd.bounds.relabelling import fit_effects, relabelling_factor, relabelling_variance
from tests.bounds.test_relabelling import symmetric

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


def test_effects_are_found() -> None:
    graph = gs.graphs.random_regular(200, 12, seed=0)
    rng = np.random.default_rng(0)
    effects = torch.from_numpy(rng.normal(size=200))
    noise = torch.from_numpy(0.1 * rng.normal(size=graph.m))
    split = fit_effects(10 + effects[graph.edges].sum(1) + noise, graph)
    assert float((split.effects - (effects - effects.mean())).abs().max()) < 0.2
    assert split.residual_variance == pytest.approx(0.01, rel=0.15)


def test_offset_does_not_drown_the_spread() -> None:
    graph = gs.graphs.random_regular(50, 6, seed=0)
    values = torch.rand(graph.m, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert standard_error(values + 1e6, graph) == pytest.approx(standard_error(values, graph), rel=1e-6)


@pytest.mark.gpu
def test_everything_takes_a_device() -> None:
    from graphsnd.bounds.discrepancy import nuclear_norm, spectral_bound, spectral_ratio

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
