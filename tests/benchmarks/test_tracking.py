from __future__ import annotations

import json
from itertools import combinations
from statistics import fmean

import pytest
import torch

from benchmarks import tracking
from benchmarks.timing import Options
from graphsnd import snd
from graphsnd.rl import Settings, Trainer
from graphsnd.rl.worlds import Navigation


def test_both_critics_are_followed() -> None:
    result = json.loads(json.dumps(tracking.measure(Options(torch.device("cpu"), quick=True)), allow_nan=False))
    assert [(row["agents"], row["critic"]) for row in result["rows"]] == [(4, "independent"), (4, "central")]
    for row in result["rows"]:
        assert row["settings"]["critic"] == row["critic"]
        assert [[point["iteration"] for point in run["points"]] for run in row["runs"]] == [[2, 4]] * 3
        assert row["error"] == pytest.approx(fmean(p["error"] / p["snd"] for run in row["runs"] for p in run["points"]))
    [(rows, columns)] = tracking.tables(result).values()
    assert all(column in row for row in rows for column in columns)


def test_the_error_is_that_of_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the 15 pairs of 6 agents two are drawn: all 105 draws."""
    trainer = Trainer(Navigation(6, 4, world_spawning_x=2), Settings(environments=4, steps=8, actor_gain=1.0))
    trainer.step(measure=False)
    found = tracking._draw(trainer, 0)
    distances: list[torch.Tensor] = []
    monkeypatch.setattr(tracking, "pairwise", lambda *args: distances.append(_pairwise(*args)) or distances[0])
    assert tracking._draw(trainer, 0) == found
    pairs = [float(distances[0][i, j]) for i, j in combinations(range(6), 2)]
    assert found["snd"] == pytest.approx(fmean(pairs))
    errors = [(fmean(draw) - fmean(pairs)) ** 2 for draw in combinations(pairs, 2)]
    assert found["error"] == pytest.approx(fmean(errors) ** 0.5)
    assert any(found["tenth"] == pytest.approx(fmean(draw)) for draw in combinations(pairs, 2))
    seen = tracking.pool_observations(trainer.buffer.observations[0], 4096)
    assert found["snd"] == pytest.approx(float(snd(trainer.team(0).evaluate(seen)).detach()), rel=1e-5)


_pairwise = tracking.pairwise
