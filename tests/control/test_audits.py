from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import InputError
from graphsnd.control import ControlledPolicy, audit, audit_error, tracking_error


def test_error_functionals() -> None:
    values = [5.0, 0.8, 1.1, 1.3]
    assert tracking_error(values, 1.0, last=3) == pytest.approx((0.2 + 0.1 + 0.3) / 3)
    assert audit_error(values, 1.0, last=3) == pytest.approx(0.2 / 3)
    assert audit_error([0.7], 1.0) == pytest.approx(0.3)  # below the target, and no minus
    assert tracking_error(np.float32(values), np.float32(1)) == pytest.approx(tracking_error(values, 1.0))  # type: ignore[arg-type]


def test_the_tracking_error_of_a_wrong_estimate_is_zero() -> None:
    # The estimate is ten times the truth and constant: the applied signal is on target, the team is not.
    target, truth, estimate = 0.1, 0.2, 2.0
    scale = target / estimate
    assert tracking_error([estimate * scale] * 60, target) == pytest.approx(0.0)
    assert audit_error([truth * scale] * 60, target) == pytest.approx(0.9)


def test_the_audit_of_policies_of_a_users_own() -> None:
    weights = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen = torch.randn(7, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    policies = {f"agent {k}": lambda o, k=k: 0.5 * o @ weights[k] for k in range(4)}
    expected = [float((0.5 * o @ (weights[i] - weights[j])).norm()) for o in seen for i in range(4) for j in range(i)]
    assert float(audit(policies, seen)) == pytest.approx(sum(expected) / 42, rel=1e-12)
    with pytest.raises(InputError, match="`team`"):
        audit(3, seen)  # type: ignore[arg-type]


def test_the_audit_of_what_was_held() -> None:
    generator = torch.Generator().manual_seed(0)
    policy = ControlledPolicy.create(5, 3, 2, generators=[generator], hidden=(8,), kind="gaussian")
    seen, places = torch.randn(4, 6, 3, generator=generator), torch.rand(4, 6, 5, 2, generator=generator)
    team = policy.team(0, 0.5)
    behavior, graph = team.evaluate(seen), gs.graphs.cliques([0, 0, 1, 1, 1])
    moving = gs.graphs.knn(places, 2)
    assert float(audit(team, seen, design="knn:2", positions=places)) == float(gs.graph_snd(behavior, moving))
    assert float(audit(team, seen, design=moving)) == float(gs.graph_snd(behavior, moving))
    assert float(audit(team, seen, design=graph)) == float(gs.graph_snd(behavior, graph))
    for estimates_snd in (None, "complete", "bernoulli:0.1", "agents:3"):
        assert float(audit(team, seen, design=estimates_snd)) == float(gs.snd(behavior))
    for other in (gs.graphs.complete(4), gs.graphs.knn(places[:2], 2)):
        with pytest.raises(InputError, match="`design`"):
            audit(team, seen, design=other)
    with pytest.raises(InputError, match=r"`positions` laid out as the observations, \(4, 6\), got \(6, 4\)"):
        audit(team, seen, design="knn:2", positions=places.transpose(0, 1))
    with pytest.raises(InputError, match="positions"):
        audit(team, seen, design="radius:0.5", positions=places[:2])
