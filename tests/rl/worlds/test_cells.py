from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.rl.worlds.physics import near_pairs


def loop(points: torch.Tensor, group: torch.Tensor, reach: float) -> set[tuple[int, int]]:
    far = torch.cdist(points.double(), points.double(), compute_mode="donot_use_mm_for_euclid_dist")
    return {
        (i, j)
        for i, j in itertools.combinations(range(len(points)), 2)
        if group[i] == group[j] and far[i, j] <= reach * (1 + 5e-7)
    }


@given(st.integers(0, 2**31), st.integers(1, 60), st.sampled_from([0.01, 0.3, 5.0]), st.sampled_from([0.1, 1.0, 40.0]))
def test_it_finds_every_pair_of_a_group(seed: int, count: int, reach: float, spread: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(count, 2, generator=generator) * spread
    group = torch.randint(3, (count,), generator=generator)
    low, high = near_pairs(points, group, reach)
    pairs = list(zip(low.tolist(), high.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    assert set(pairs) == loop(points, group, reach)


def test_points_on_the_lattice_of_cells() -> None:
    points = torch.cartesian_prod(torch.arange(-3.0, 4.0), torch.arange(-3.0, 4.0)) * 0.25
    group = torch.zeros(len(points), dtype=torch.long)
    low, high = near_pairs(points, group, 0.25)
    assert set(zip(low.tolist(), high.tolist(), strict=True)) == loop(points, group, 0.25)
    assert len(low) == 2 * 6 * 7


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 1e30])
def test_one_lost_agent_does_not_hide_the_others(odd: float) -> None:
    points = torch.tensor([[0.0, 0.0], [odd, odd], [0.1, 0.0]])
    low, high = near_pairs(points, torch.zeros(3, dtype=torch.long), 0.2)
    assert (0, 2) in set(zip(low.tolist(), high.tolist(), strict=True))
