from __future__ import annotations

import torch

import graphsnd as gs
from paper.shared.calls import fused_call, loop_call


def test_calls_return_the_pairs_they_looked_at() -> None:
    seen: list[object] = []
    assert loop_call(lambda pairs: seen.append(pairs) or 0.0, lambda: [[0, 1], [1, 2]])() == 2
    assert seen == [[[0, 1], [1, 2]]]
    team = gs.Deterministic(torch.rand(3, 5, 2))
    assert fused_call(team)() == 10
    assert fused_call(team, lambda: gs.graphs.uniform(5, 4, seed=0))() == 4
