from __future__ import annotations

import torch

import graphsnd as gs


def test_distance_is_euclidean() -> None:
    assert gs.snd(gs.Deterministic(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]))) == 5.0


def test_keeps_what_it_was_given() -> None:
    actions = torch.zeros(4, 3, 2)
    assert gs.Deterministic(actions).actions is actions
