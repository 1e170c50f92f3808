from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphsnd.rl import Trainer
from paper import training
from paper.experiment import Outcome, Scale
from paper.runner import Cells
from paper.shared.stopwatch import Timing
from paper.training import Data, End, LogRow, SeedTimes, summarise


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Cells]:
    cells = Cells(tmp_path_factory.mktemp("training"))
    return training.run(Scale.SMOKE, cells), cells


def timing(seconds: list[float], pairs: list[int]) -> Timing:
    return Timing(seconds, pairs)


def data() -> Data:
    def row(seed: int, iteration: int, snd: float, graph: float) -> LogRow:
        return LogRow(iteration, seed, 1.0, snd, graph, 2.0, 0.5)

    log = [row(s, k, 0.1 * k, 0.1 * k * (1.02 if k == 2 else 0.99)) for s in (0, 1) for k in (1, 2, 3)]
    ends = [End(s, k, 0.1 + 0.2 * k / 3, 0.5, 0.01 + 0.01 * k / 3) for s in (0, 1) for k in (0, 3)]
    calls = {"loop, all": timing([4.0, 6.0], [45, 45]), "loop, graph": timing([1.0, 1.0], [5, 9])}
    return Data({"agents": 10}, 0.1, log, ends, [SeedTimes(0, calls)])


def test_numbers_of_a_small_log() -> None:
    numbers = summarise(data())
    assert numbers["largest_gap"].value == pytest.approx(0.02)
    assert numbers["snd_growth"].value == pytest.approx(3)
    assert numbers["curve_correlation"] is not None
    assert numbers["curve_correlation"].value > 0.999
    assert numbers["own_observation_error"].value == pytest.approx(0.5 / 0.3 - 1)
    assert numbers["final_snd_own_observations"].value == pytest.approx(0.5)
    assert numbers["fused_speedup"].value == 4
    loop = numbers["loop_speedup"]
    assert (loop.value, loop.clock) == (5, True)
    assert loop.low is not None
    assert loop.high is not None
    assert loop.low < 4 < 6 < loop.high  # of two trials


def test_an_empty_graph_has_no_gap() -> None:
    small = data()
    empty = LogRow(4, 1, 1.0, 1.0, 0.0, 2.0, 0.5)
    assert empty.gap == -1
    assert summarise(Data(**vars(small) | {"log": [*small.log, empty]}))["largest_gap"].value == pytest.approx(0.02)
    assert [row.iteration for row in small.by_seed()[1]] == [1, 2, 3]
    assert small.times[0].speedup().value == 5


def test_the_log_is_that_of_the_training(outcome: tuple[Outcome, Cells]) -> None:
    first, cells = outcome
    assert [row.iteration for row in first.data.log] == [1, 2, 3]
    assert [end.iteration for end in first.data.ends] == [0, 3]
    assert first.sources == ()
    assert all(end.expected > 0 for end in first.data.ends)
    steps: list[str] = []
    assert training.run(Scale.SMOKE, Cells(cells.root, step=steps.append)) == first
    assert steps == []  # there is nothing left to do


def test_a_trial_stores_clipped_actions_with_the_probability_of_what_was_drawn(tmp_path: Path) -> None:
    task = training.make_task(training.SIZES[Scale.SMOKE])
    world = task.make_world("cpu")
    clipped = Trainer(world, task.settings, seeds=(0,), method=training.store_clipped)
    plain = Trainer(world, task.settings, seeds=(0,))
    clipped.step()
    plain.step()
    drawn, stored = plain.buffer.actions, clipped.buffer.actions
    assert (drawn.abs() > 1).any()
    assert torch.equal(stored, drawn.clamp(-1, 1))
    assert torch.equal(clipped.buffer.log_probs, plain.buffer.log_probs)  # the first rollout is the same


def test_trials_measure_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = training.SIZES[Scale.SMOKE]
    monkeypatch.setattr(training, "STACKS", {training.COMMITTED: training.make_task(size)})
    trials = {"clipped": size.settings, "clipped, joint": size.settings.replace(joint=True)}
    rows = training.run_trials(Cells(tmp_path), trials, "cpu")
    assert [(row.trial, row.iteration) for row in rows] == [(name, k) for name in trials for k in (1, 2, 3)]
    assert all(row.own_snd > 0 < row.snd for row in rows)
    numbers = summarise(Data(**vars(data()) | {"trials": rows}))
    assert numbers["final_snd_clipped"] is not None
    assert numbers["matched_snd_clipped"] is not None
    assert numbers["final_snd_clipped"].value == rows[-1].own_snd
    mine = [row for row in rows if row.trial == training.AS_PUBLISHED]
    assert numbers["matched_snd_clipped"].value == min(mine, key=lambda row: abs(row.entropy - 1.002)).own_snd
    training.EXPERIMENT.figure(Data(**vars(data()) | {"trials": rows})).canvas.draw()
