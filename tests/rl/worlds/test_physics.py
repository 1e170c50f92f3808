"""Contacts from all pairs and from listed pairs, and the forces of contact."""

from __future__ import annotations

import math

import pytest
import torch

from graphsnd.rl.worlds.physics import Near, add_contact, clamp_to, contact_dense, count_contacts, push

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


def test_walls_stop_each_axis() -> None:
    assert clamp_to(torch.tensor([[3.0, -3.0]]), (1.0, 2.0)).tolist() == [[1.0, -2.0]]
