from __future__ import annotations

import sys

import pytest
import torch

import graphsnd as gs
from graphsnd.errors import MissingExtraError

pytest.importorskip("torchmetrics")
from graphsnd.integrations.torchmetrics import GraphSnd, SystemNeuralDiversity

GRAPH = gs.graphs.uniform(6, 7, seed=0)


def actions(observations: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(observations, 6, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    ("metric", "whole"),
    [
        (SystemNeuralDiversity(), lambda b: gs.snd(b)),
        (GraphSnd(GRAPH), lambda b: gs.graph_snd(b, GRAPH)),
    ],
    ids=["snd", "graph"],
)
def test_unequal_batches_give_the_whole(metric, whole) -> None:
    x = actions(20)
    metric.reset()
    for part in x.split([1, 3, 16]):
        torch.testing.assert_close(metric(gs.Deterministic(part)), whole(gs.Deterministic(part)))
    torch.testing.assert_close(metric.compute(), whole(gs.Deterministic(x)))
    # The mean of the batch values would be another number.
    means = torch.stack([whole(gs.Deterministic(part)) for part in x.split([1, 3, 16])]).mean()
    assert abs(metric.compute() - means) > 1e-3


def test_states_add_up_over_ranks() -> None:
    ranks = [SystemNeuralDiversity(), SystemNeuralDiversity()]
    for rank, part in zip(ranks, actions(9).split([2, 7]), strict=True):
        rank.update(gs.Deterministic(part))
    assert all(f is not None and f.__name__ == "dim_zero_sum" for f in ranks[0]._reductions.values())
    merged = SystemNeuralDiversity()
    merged.total = sum(rank.total for rank in ranks)
    merged.observations = sum(rank.observations for rank in ranks)
    merged._update_count = 1
    torch.testing.assert_close(merged.compute(), gs.snd(gs.Deterministic(actions(9))))


def test_distance_is_used() -> None:
    team = gs.Categorical(logits=actions(5))
    metric = SystemNeuralDiversity(gs.Hellinger())
    metric.update(team)
    torch.testing.assert_close(metric.compute(), gs.snd(team, gs.Hellinger()))


def test_forward_is_differentiable() -> None:
    x = actions(4).requires_grad_()
    (gradient,) = torch.autograd.grad(SystemNeuralDiversity()(gs.Deterministic(x)), x)
    (expected,) = torch.autograd.grad(gs.snd(gs.Deterministic(x)), x)
    torch.testing.assert_close(gradient, expected)


def test_reset_and_empty() -> None:
    metric = SystemNeuralDiversity()
    metric.update(gs.Deterministic(actions(3)))
    metric.reset()
    assert int(metric.observations) == 0
    with pytest.warns(UserWarning, match="compute"), pytest.raises(gs.InputError, match="at least one update"):
        metric.compute()


def test_absent_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    monkeypatch.delitem(sys.modules, "graphsnd.integrations.torchmetrics")
    with pytest.raises(MissingExtraError, match=r"graphsnd\[torchmetrics\]"):
        __import__("graphsnd.integrations.torchmetrics")
