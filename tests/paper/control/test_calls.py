from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from graphsnd import graphs
from paper.control.calls import (
    arithmetic_share,
    compute_speedups,
    count_edges,
    published_share,
    time_calls,
)
from tests.training import control_settings, control_task

TINY = control_settings(
    environments=2, steps=10, epochs=2, minibatch=10, hidden=(8,), observations=20, audit_observations=30, iterations=3
)


def test_the_same_graphs_are_drawn_as_in_training(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, draw = [], graphs.bernoulli

    def spy(*arguments: Any, **options: Any) -> graphs.Graph:
        graph = draw(*arguments, **options)
        counts.append(graph.m)
        return graph

    monkeypatch.setattr("graphsnd.designs.design.Bernoulli.make", staticmethod(spy))
    trainer = control_task(12, (0.1,), ("bernoulli:0.1",), (5,), settings=TINY).make_trainer()
    for _ in range(2):
        trainer.step()
    monkeypatch.undo()
    assert len(counts) == 2 * TINY.optimiser_steps
    edges = count_edges(12, 0.1, seeds=(5,), iterations=2, steps=TINY.optimiser_steps)
    assert edges.mean == pytest.approx(sum(counts) / len(counts))
    assert edges.graphs == len(counts)


def test_edges_have_the_binomial_mean() -> None:
    edges = count_edges(50, 0.1, seeds=(0,), iterations=2, steps=135)
    assert edges.mean == pytest.approx(122.5, abs=4 * math.sqrt(1225 * 0.09 / 270))
    assert edges.sem == pytest.approx(math.sqrt(1225 * 0.09 / 270), rel=0.2)


def test_calls_look_at_the_pairs_they_should() -> None:
    timed = time_calls(10, ("knn:3", "bernoulli:0.1", "regular:3"), loop=8, fused=8, trials=3)
    assert (timed.loop["complete"].pairs, timed.fused["complete"].pairs) == ([45] * 3, [45] * 21)
    assert (timed.loop["regular:3"].pairs, timed.fused["regular:3"].pairs) == ([15] * 3, [15] * 21)
    for one in (timed.loop, timed.fused):  # a mutual pair counts once
        assert all(15 <= count <= 30 for count in one["knn:3"].pairs)
    speedups = compute_speedups(timed.loop)
    assert set(speedups) == {"knn:3", "bernoulli:0.1", "regular:3"}
    medians = [statistics.median(timed.loop[arm].seconds) for arm in ("complete", "regular:3")]
    assert speedups["regular:3"].value == pytest.approx(medians[0] / medians[1])
    assert speedups["regular:3"].clock


def test_the_published_share_is_270_calls() -> None:
    assert published_share() == pytest.approx(270 * 0.0189 / 52.4)


def test_the_counted_share_agrees_with_layers() -> None:
    """Multiply-adds of every product of a step at n = 50, 154 features, hidden 256, 256."""
    one = {out: 154 * 256 + 256 * 256 + 256 * out for out in (1, 2, 4)}
    estimates = 2 * 50 * one[2]
    learning = 3 * (one[4] + one[2] + one[1]) + 3 * (one[4] + one[2])
    assert arithmetic_share(50) == pytest.approx(estimates / (estimates + learning), abs=0.002)
