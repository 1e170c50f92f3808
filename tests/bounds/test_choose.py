"""The best of several random regular graphs."""

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds.choose import best_of
from graphsnd.bounds.relabel import relabelling_variance
from graphsnd.bounds.spectral import spectrum
from tests.bounds.test_relabel import symmetric


def test_it_is_the_best_of_the_same_draws() -> None:
    generator = torch.Generator().manual_seed(5)
    drawn = [gs.graphs.random_regular(40, 4, seed=generator) for _ in range(6)]
    chosen = best_of(6, 40, 4, seed=5)
    seconds = [spectrum(graph).second for graph in drawn]
    assert torch.equal(chosen.edges, drawn[int(np.argmin(seconds))].edges)
    assert chosen.inclusion == pytest.approx(4 / 39)
    assert chosen.sampling is gs.graphs.Sampling.RELABELLED


def test_choosing_keeps_the_second_moments() -> None:
    n, degree = 10, 3
    matrix = symmetric(n, 0)
    generator = torch.Generator().manual_seed(0)
    graphs = [best_of(3, n, degree, seed=generator) for _ in range(200)]
    means = np.array([matrix[tuple(graph.edges.numpy().T)].mean() for graph in graphs])
    truth = float(relabelling_variance(torch.from_numpy(matrix), [degree] * n))
    assert means.mean() == pytest.approx(matrix[np.triu_indices(n, 1)].mean(), abs=4 * (truth / 200) ** 0.5)
    assert means.var() == pytest.approx(truth, rel=0.4)


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_bad_input_is_named(k: object) -> None:
    with pytest.raises(gs.InputError, match="`k`"):
        best_of(k, 10, 3)
