from __future__ import annotations

import json

import pytest
import torch

from benchmarks.timing import Clock
from benchmarks.training import SMALL, time_controlled, time_first, time_products, time_training
from graphsnd.rl import Settings, Task

CLOCK = Clock(torch.device("cpu"))


def test_times_are_json_and_add_up() -> None:
    tiny = Task("simple_spread", 3, settings=Settings(steps=5, environments=2, minibatch=4, epochs=3, hidden=(4,)))
    found = json.loads(json.dumps(time_training(tiny, CLOCK, seeds=(0, 1), rounds=3)))
    assert (found["agents"], found["runs"], found["samples"], found["gradient_steps"]) == (3, 2, 10, 9)
    assert not found["captured"]
    assert found["iteration"]["min_s"] >= found["rollout"]["min_s"] + found["update"]["min_s"]
    assert found["frames_per_second"] == pytest.approx(20 / found["iteration"]["median_s"])
    assert found["products_s"] > 0
    assert time_training(tiny, CLOCK, rounds=1)["update"]["rounds"] == 1


class Multiplications(Clock):
    """A clock by which a product takes a second for each multiplication."""

    def seconds(self, call, repeats: int = 1) -> float:  # type: ignore[no-untyped-def]
        one, two = call.args
        assert call.func(one, two).shape == (len(one), one.shape[1], two.shape[2])
        return one.numel() * two.shape[2]


def test_products_are_those_of_an_update() -> None:
    """Outputs of all layers, derivatives by all weights, and by the outputs of hidden layers."""
    task = Task("navigation", 5, settings=Settings(steps=8, environments=4, minibatch=16, epochs=3, hidden=(7, 6)))
    per_sample = sum(2 * (18 * 7 + 7 * 6 + 6 * out) + 7 * 6 + 6 * out for out in (2, 1))
    assert time_products(task.make_trainer("cpu"), Multiplications(CLOCK.device)) == 5 * 3 * 32 * per_sample


def test_controlled_times_are_those_of_all_runs() -> None:
    found = json.loads(json.dumps(time_controlled(SMALL, CLOCK)))
    assert (found["agents"], found["runs"], found["gradient_steps"]) == (4, 1, 4)
    parts = [found[name] for name in ("rollout_s", "policies_s", "distances_s", "update_s", "audit_s")]
    assert 0 < sum(parts) <= found["iteration_s"] == found["per_run_s"]


def test_the_first_iteration_is_timed_in_new_processes() -> None:
    assert all(seconds > 0 for seconds in time_first(SMALL, "cpu").values())
