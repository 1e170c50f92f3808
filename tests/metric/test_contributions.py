from __future__ import annotations

import torch

import graphsnd as gs
from tests.cases import Case, each


@each
def test_mean_over_agents_is_snd(case: Case) -> None:
    behavior = case.behavior(agents=5)
    found = gs.contributions(behavior, case.distance)
    assert found.shape == (5,)
    torch.testing.assert_close(found.mean(), gs.snd(behavior, case.distance), rtol=1e-12, atol=0)


def test_an_outlier_stands_out() -> None:
    actions = torch.tensor([[[0.0], [0.0], [0.0], [9.0]]])
    assert gs.contributions(gs.Deterministic(actions)).tolist() == [3.0, 3.0, 3.0, 9.0]


def test_differentiable() -> None:
    actions = torch.tensor([[[0.0], [1.0], [3.0]]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: gs.contributions(gs.Deterministic(a)), (actions,))
