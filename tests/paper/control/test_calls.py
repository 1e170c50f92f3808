from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsnd import graphs
from graphsnd.control import audit
from graphsnd.training.checkpoint import CHECKPOINT
from graphsnd.training.dico import ControlSettings, ControlTask, ControlTrainer, control
from paper.control.actions import measure_actions, read_actions, write_actions
from paper.control.calls import (
    arithmetic_share,
    estimate_share,
    mean_edges,
    published_share,
    share,
    speedups,
    time_calls,
)
from paper.control.mistaken import BLIND, DOUBLED, SOUND, mistaken_study

TINY = ControlSettings(
    environments=2, steps=10, passes=2, minibatch=10, hidden=(8,), observations=20, audit_observations=30, iterations=3
)


def test_the_same_graphs_are_drawn_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, draw = [], graphs.bernoulli

    def spy(*arguments: Any, **options: Any) -> graphs.Graph:
        graph = draw(*arguments, **options)
        counts.append(graph.m)
        return graph

    monkeypatch.setattr("graphsnd.control.estimators.graphs.bernoulli", spy)
    trainer = ControlTrainer(ControlTask(12, (0.1,), ("bernoulli:0.1",), (5,), settings=TINY))
    for _ in range(2):
        trainer.step()
    monkeypatch.undo()
    assert len(counts) == 2 * TINY.optimiser_steps
    found = mean_edges(12, 0.1, seeds=(5,), iterations=2, steps=TINY.optimiser_steps)
    assert found["mean"] == pytest.approx(sum(counts) / len(counts))
    assert (found["graphs"], found["empty"]) == (len(counts), counts.count(0))


def test_edges_have_the_binomial_mean() -> None:
    found = mean_edges(50, 0.1, seeds=(0,), iterations=2, steps=135)
    assert found["mean"] == pytest.approx(122.5, abs=4 * math.sqrt(1225 * 0.09 / 270))
    assert found["sem"] == pytest.approx(math.sqrt(1225 * 0.09 / 270), rel=0.2)


def test_calls_look_at_the_pairs_they_should() -> None:
    timed = time_calls(10, ("knn:3", "bernoulli:0.1", "regular:3"), loop=8, fused=8, trials=3)
    pairs = {name: call["pairs"] for name, call in timed["calls"].items()}
    assert (pairs["loop, full"], pairs["fused, full"]) == ([45] * 3, [45] * 21)
    assert (pairs["loop, regular:3"], pairs["fused, regular:3"]) == ([15] * 3, [15] * 21)
    assert pairs["fused, knn:3"] == [30] * 21
    assert all(15 <= count <= 30 for count in pairs["loop, knn:3"])
    found = speedups(timed, "loop")
    assert set(found) == {"knn:3", "bernoulli:0.1", "regular:3"}
    seconds = {name: call["seconds"] for name, call in timed["calls"].items()}
    ratios = [a / b for a, b in zip(seconds["loop, full"], seconds["loop, regular:3"], strict=True)]
    assert (found["regular:3"]["low"], found["regular:3"]["high"]) == (min(ratios), max(ratios))


def test_the_published_share_is_270_calls() -> None:
    assert published_share()["share"] == pytest.approx(270 * 0.0189 / 52.4)


def test_the_counted_share_agrees_with_layers() -> None:
    """Multiply-adds of every product of a step at n = 50, 154 features, hidden 256, 256."""
    one = {out: 154 * 256 + 256 * 256 + 256 * out for out in (1, 2, 4)}
    estimates = 2 * 50 * one[2]
    learning = 3 * (one[4] + one[2] + one[1]) + 3 * (one[4] + one[2])
    assert arithmetic_share(50) == pytest.approx(estimates / (estimates + learning), abs=0.002)


def test_a_step_is_split_into_estimates_and_learning() -> None:
    found = estimate_share(4, 4, steps=2)
    estimate = found["networks"] + found["distances"]
    assert found["share"] == pytest.approx(2 * estimate / (2 * estimate + found["learning"]))
    assert share(1.0, 2.0) == 0.5


def test_tracking_does_not_see_a_wrong_estimator_and_the_audit_does() -> None:
    settings = TINY.replace(
        environments=4, steps=25, passes=4, minibatch=25, hidden=(16,), observations=100, iterations=5
    )
    found = {arm["arm"]: arm for arm in mistaken_study(4, 0.1, settings, window=3)["arms"]}
    assert all(arm["tracking_error"] < 0.02 for arm in found.values())
    assert found[BLIND]["tracking_error"] < 1e-12
    assert found[SOUND]["audit_error"] < 0.2
    assert found[DOUBLED]["audit"] == pytest.approx(found[SOUND]["audit"] / 2, rel=0.1)
    assert found[BLIND]["audit_error"] > 0.3


def test_actions_are_less_diverse_than_their_means(tmp_path: Path) -> None:
    task = ControlTask(4, (0.1, "unconstrained"), ("full",), settings=TINY)
    control(task, tmp_path)
    before = (tmp_path / CHECKPOINT).read_bytes()
    assert read_actions(tmp_path) == []
    found = write_actions(tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == before
    assert read_actions(tmp_path) == found
    assert [(entry["arm"], entry["target"]) for entry in found] == [("full", 0.1), ("unconstrained", None)]
    assert all(0 < entry["ratio"] < 1 for entry in found)


def test_actions_agree_with_samples() -> None:
    """On the line, quantiles of the squashed actions are squashed quantiles, so W2 needs no more than sorted noise."""
    trainer = ControlTrainer(ControlTask(3, (0.5,), settings=TINY))
    trainer.step()
    entry = measure_actions(trainer)[0]
    seen = trainer.memory.observations[0].flatten(0, 2)
    with torch.no_grad():
        behavior = trainer.team(0).evaluate(seen)
    levels = (torch.arange(2000, dtype=torch.float64) + 0.5) / 2000
    noise = torch.distributions.Normal(0.0, 1.0).icdf(levels)
    actions = torch.tanh(behavior.loc[..., None].double() + behavior.scale[..., None].double() * noise)
    i, j = torch.triu_indices(3, 3, offset=1)
    apart = (actions[:, i] - actions[:, j]).square().mean(-1).sum(-1).sqrt()
    assert entry["squashed"] == pytest.approx(float(apart.mean()), rel=0.01)
    assert entry["controlled"] == pytest.approx(float(audit(trainer.team(0), seen)), rel=1e-5)
