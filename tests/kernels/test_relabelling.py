from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from graphsnd.kernels import relabelling
from graphsnd.kernels.dispatch import available

CPU = torch.device("cpu")


def one_round(n: int, places: int) -> np.ndarray:
    """Chances of one round between ordered subsets of agents, with uniform pivots and fair bits."""
    states = list(itertools.permutations(range(n), places))
    chances = np.zeros((len(states), len(states)))
    for state, pivot in itertools.product(states, range(n)):
        pairs = sorted({frozenset({x, (pivot - x) % n}) for x in state}, key=sorted)
        for bits in itertools.product((False, True), repeat=len(pairs)):
            swapped = frozenset().union(*(pair for pair, bit in zip(pairs, bits, strict=True) if bit))
            after = tuple((pivot - x) % n if x in swapped else x for x in state)
            chances[states.index(state), states.index(after)] += 1 / n / 2 ** len(pairs)
    return chances


@pytest.mark.parametrize(("n", "places", "most"), [(4, 4, 1e-5), (6, 2, 2e-6), (12, 2, 1e-6)])
def test_the_rounds_are_enough(n: int, places: int, most: float) -> None:
    """The total variation from uniform, from the matrix of one round."""
    after = np.linalg.matrix_power(one_round(n, places), relabelling.ROUNDS)
    assert after.sum(axis=1) == pytest.approx(1)
    assert np.abs(after - 1 / len(after)).sum(axis=1).max() / 2 < most


def test_neighbours_are_uniform_pairs() -> None:
    """All ordered pairs of a larger team come up equally often at adjacent places."""
    rows = relabelling.reference(24, 24, 4000, 2**40 + 17, CPU)
    seen = torch.bincount((rows[:, :-1] * 24 + rows[:, 1:]).flatten(), minlength=24**2).view(24, 24)
    assert not seen.diag().any()
    assert stats.chisquare(seen[~torch.eye(24, dtype=torch.bool)]).pvalue > 1e-4


def test_rows_and_seeds_differ() -> None:
    first, again, other = (relabelling.relabel(50, 50, 3, seed, CPU) for seed in (5, 5, 5 + 2**32))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])


@pytest.mark.gpu
@pytest.mark.parametrize(("n", "size"), [(5, 5), (2000, 2000), (1000, 7), (70_000, 1500)])
def test_a_gpu_draws_the_same_agents(n: int, size: int) -> None:
    seed = 2**61 + 123_456_789
    drawn = relabelling.relabel(n, size, 9, seed, torch.device("cuda", 0)).cpu()
    assert torch.equal(drawn, relabelling.reference(n, size, 9, seed, CPU))


@pytest.mark.gpu
@pytest.mark.parametrize("design", ["ring:4", "agents:8", "matching"])
def test_measure_on_a_gpu_is_unbiased(design: str) -> None:
    team = gs.Gaussian(torch.randn(2048, 60, 2).cuda(), torch.rand(2048, 60, 2).cuda())
    truth, estimate = float(gs.snd(team)), gs.measure(team, design=design, seed=3)
    assert estimate.standard_error > 0
    assert abs(estimate.value - truth) < 4.5 * estimate.standard_error
    assert available()["gpu"] is None
