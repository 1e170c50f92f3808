"""Contacts from all pairs and from listed pairs, and the forces of contact."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsnd.rl.worlds.physics import Near, add_contact, contact_dense, count_contacts, near_pairs, push

RADIUS = 0.1


def crowd(seed: int, environments: int = 3, agents: int = 20) -> torch.Tensor:
    return torch.randn(environments, agents, 2, generator=torch.Generator().manual_seed(seed)) * 0.3


@pytest.mark.parametrize("gated", [False, True])
def test_listed_pairs_count_the_contacts_of_all_pairs(gated: bool) -> None:
    for seed in range(5):
        positions = crowd(seed)
        near = Near.find(positions, 0.35, RADIUS)
        dense = count_contacts(positions, RADIUS, None, gated=gated)
        assert torch.equal(dense, count_contacts(positions, RADIUS, near, gated=gated))
        assert dense.any()


def test_listed_pairs_push_like_all_pairs() -> None:
    positions = crowd(0)
    near = Near.find(positions, 0.35, RADIUS)
    forces = add_contact(torch.zeros(60, 2), positions.view(-1, 2), *near.contact, 2 * RADIUS)
    torch.testing.assert_close(forces.view_as(positions), contact_dense(positions, 2 * RADIUS), rtol=1e-5, atol=1e-5)


def test_pairs_are_kept_until_an_agent_has_moved_too_far() -> None:
    positions = crowd(1)
    near = Near.find(positions, 0.35, RADIUS, skin=0.1)
    assert near.update(positions) is near
    assert near.update(positions + torch.tensor([0.03, 0.0])) is near
    moved = positions.clone()
    moved[0, 0, 0] += 0.06
    assert near.update(moved).positions is moved


def test_a_force_follows_the_softened_depth() -> None:
    x, y, distance = torch.tensor([0.15]), torch.tensor([0.0]), torch.tensor([0.15])
    fx, fy = push(x, y, distance, 0.2)
    depth = 1e-3 * math.log1p(math.exp((0.2 - 0.15) / 1e-3))
    assert float(fx) == pytest.approx(100 * depth, rel=1e-5)
    assert float(fy) == 0.0
    assert not torch.stack(push(torch.zeros(1), torch.zeros(1), torch.zeros(1), 0.2)).any()


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
