from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import graphsnd as gs
from benchmarks import share
from graphsnd.estimation.advice import CROSSOVERS

RESULTS = Path(__file__).parents[2] / "benchmarks/results/share"


def test_small_teams_are_measured_exactly() -> None:
    for n in (2, 16, 50):
        for device in CROSSOVERS:
            assert str(gs.advise(n, 4096, device=device).design) == "complete"


def test_large_teams_are_sampled_where_all_pairs_take_long() -> None:
    assert str(gs.advise(500, 100_000).design) == "agents:8"
    assert str(gs.advise(500, 1000).design) == "complete"
    assert str(gs.advise(500, 1000, "proxy").design) == "bernoulli:0.1"
    assert str(gs.advise(500, 100_000, device="cuda").design) == "complete"


def test_a_local_question_gets_neighbours() -> None:
    advice = gs.advise(100, 1000, "local")
    assert str(advice.design) == "knn:7"
    assert not advice.design.unbiased
    assert str(gs.advise(2, 10, "local").design) == "knn:1"


@pytest.mark.parametrize("device", CROSSOVERS)
def test_the_crossovers_are_those_of_the_committed_results(device: str) -> None:
    results = [json.loads(file.read_text("utf-8")) for file in RESULTS.glob("*.json")]
    (result,) = (one for one in results if one["device"] == device)
    for name, agents in CROSSOVERS[device].items():
        measured = share.crossing(result, "tenth of the pairs" if name.startswith("bernoulli") else name)
        assert measured == pytest.approx(agents, abs=1)


@pytest.mark.parametrize("goal", ["global", "proxy", "local"])
@pytest.mark.parametrize("n", [4, 60])
def test_the_call_is_python_that_runs(goal: str, n: int) -> None:
    policies, observations = [torch.nn.Linear(3, 2) for _ in range(n)], torch.randn(40, 3)
    names: dict[str, Any] = {"gs": gs, "policies": policies, "observations": observations, "step": 3}
    estimate = eval(gs.advise(n, 40, goal).call, names | {"positions": torch.randn(n, 2)})
    assert isinstance(estimate, gs.Estimate)
