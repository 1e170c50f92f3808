from __future__ import annotations

import json

import pytest
import torch

from benchmarks import worlds
from benchmarks.timing import Options
from graphsnd.rl.worlds import parse_world

OPTIONS = Options(torch.device("cpu"), quick=True)


def test_the_quick_suite_is_json_with_a_row_for_each_case() -> None:
    result = worlds.measure(OPTIONS)
    assert json.loads(json.dumps(result)) == result
    assert len(result["worlds"]) == len(worlds.QUICK)
    for case, row in zip(worlds.QUICK, result["worlds"], strict=True):
        assert row["environment_steps_per_second"] > 0
        assert (row["ratio"] is None) == (case.simulator not in row["contestants"])


def test_a_missing_simulator_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "find_spec", lambda name: None)
    row = worlds.compare(worlds.QUICK[0], OPTIONS)
    assert list(row["contestants"]) == [worlds.OURS]
    assert row["ratio"] is None


def test_part_of_mpe2_is_timed_and_said() -> None:
    pytest.importorskip("mpe2")
    row = worlds.compare(worlds.QUICK[2], OPTIONS)
    assert row["contestants"]["mpe2"]["share_timed"] == worlds.SAMPLE / 8


def test_moments_are_those_of_a_rollout() -> None:
    world = parse_world("navigation", 3, 2)
    moments = worlds._moments(world, torch.Generator().manual_seed(0))
    assert [int(state.steps[0]) for state, _ in moments] == [k * worlds.APART for k in range(worlds.MOMENTS)]
    assert all((actions.abs() <= 1).all() for _, actions in moments)


@pytest.mark.gpu
def test_a_captured_step_takes_part_on_a_gpu() -> None:
    row = worlds.compare(worlds.QUICK[0], Options(torch.device("cuda"), quick=True))
    assert worlds.CAPTURED in row["contestants"]
