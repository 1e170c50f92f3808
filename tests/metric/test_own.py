from __future__ import annotations

from itertools import combinations

import pytest
import torch
from torch import distributions as D

import graphsnd as gs

N, ROWS = 4, 20


@pytest.fixture
def rollout(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(ROWS, N, 3, generator=generator, dtype=torch.float64)


def test_shared_policy_on_own_observations(rollout: torch.Tensor) -> None:
    weight = torch.ones(3, 2, dtype=torch.float64)
    policy = lambda o: D.Normal(o @ weight, 0.5)  # noqa: E731
    result = gs.own_observations(policy(rollout))
    means = rollout @ weight
    by_hand = [float((means[t, i] - means[t, j]).norm()) for t in range(ROWS) for i, j in combinations(range(N), 2)]
    assert float(result) == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-12)
    assert "not SND" in str(result)
    assert not str(result).startswith("SND")
    # The same policies on the same observations: what SND is.
    assert gs.measure([policy] * N, rollout).value == 0


def test_discrete_outputs(rollout: torch.Tensor) -> None:
    result = gs.own_observations(gs.Categorical(logits=rollout), gs.Hellinger())
    assert (result.distance, result.observations) == ("hellinger", ROWS)
    torch.testing.assert_close(result.distances, gs.pairwise(gs.Categorical(logits=rollout), gs.Hellinger()))


def test_no_controller_or_metric_takes_it(rollout: torch.Tensor) -> None:
    metrics = pytest.importorskip("graphsnd.integrations.torchmetrics", exc_type=ImportError)
    result = gs.own_observations(gs.Deterministic(rollout))
    dico = gs.control.DiCo(target=1.0)
    groups = gs.control.PerGroup([[0, 1], [2, 3]], gs.control.DiCo(target=torch.ones(2)))
    uses = [
        lambda: dico.step(result, dico.initial()),  # type: ignore[arg-type]
        lambda: groups.step(result, groups.initial()),  # type: ignore[arg-type]
        lambda: gs.snd(result),  # type: ignore[arg-type]
        lambda: gs.measure(result),  # type: ignore[arg-type]
        lambda: metrics.SystemNeuralDiversity().update(result),  # type: ignore[arg-type]
        lambda: gs.SndAccumulator(N).update(result),  # type: ignore[arg-type]
    ]
    for use in uses:
        with pytest.raises(gs.InputError, match="OwnObservations"):
            use()
