from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphsnd import InputError
from graphsnd.rl.log import Run
from paper.control.calls import MetricTimes
from paper.dico_10 import ECONOMICAL, EXPERIMENT, SIZES, WHOLE, Data, summarise
from paper.experiment import Scale
from paper.judging.claims import load_claims
from paper.rows import decode
from paper.runner import RESULTS, Cells, read_result
from paper.shared.stopwatch import Timing
from tests.paper.committed import assert_same_numbers
from tests.paper.control_rows import noisy, write_study

TASK = SIZES[Scale.PAPER].task
SECONDS = {"complete": 6.0, "knn:3": 4.0, "bernoulli:0.1": 2.0, "regular:3": 12.0, "unconstrained": 6.0}
TIMES = {arm: Timing([s, s], [1, 1]) for arm, s in SECONDS.items() if arm != "unconstrained"}
TIMED = MetricTimes(TIMES, TIMES)


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cells:
    monkeypatch.setattr("paper.dico_10.time_calls", lambda *args, **options: TIMED)
    return Cells(tmp_path / "work", results=tmp_path / "results")


def log(run: Run) -> list[Any]:
    return noisy(run, 167, level=1.05 if run.arm == "knn:3" else 1.0, distance_seconds=SECONDS[run.arm])


def test_the_committed_study(cells: Cells) -> None:
    write_study(cells.results, WHOLE, make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    numbers = outcome.numbers
    assert outcome.sources == tuple(f"results/{name}" for name in WHOLE)
    departures = "40,960 of 40,960 observations an estimate, one estimate a step, bfloat16, 600 environments"
    assert outcome.data.study.departures == departures
    assert numbers["knn_audit_error"].kind.endswith(departures)
    assert outcome.data.study.missing == ()
    ends = {run: log(run)[-10:] for run in TASK.runs()}

    def errors(arm: str, key: str) -> float:
        return float(
            np.mean([abs(np.mean([getattr(r, key) for r in ends[Run(arm, 0.1, s)]]) / 0.1 - 1) for s in range(3)])
        )

    sparse = ("knn:3", "bernoulli:0.1", "regular:3")
    assert numbers["largest_tracking_error"].value == pytest.approx(max(errors(arm, "applied") for arm in sparse))
    assert numbers["knn_audit_error"].value == pytest.approx(errors("knn:3", "audit"))
    assert numbers["knn_audit_error"].value == pytest.approx(0.05, abs=0.01)
    rewards = {run: np.mean([r.reward for r in rows]) for run, rows in ends.items()}
    others = {("regular:3", 0.1): "regular", ("unconstrained", None): "unconstrained"}
    for (arm, target), name in others.items():
        apart = [rewards[Run(arm, target, s)] - rewards[Run("complete", 0.1, s)] for s in range(3)]
        interval = stats.ttest_1samp(apart, 0).confidence_interval()
        difference = numbers[f"reward_difference_{name}"]
        assert (difference.value, difference.low, difference.high) == pytest.approx(
            (np.mean(apart), interval.low, interval.high)
        )
    assert numbers["fused_metric_speedup"].value == pytest.approx(0.5)  # the regular arm takes twice as long
    assert numbers["loop_metric_speedup"].value == pytest.approx(0.5)
    decided = [claim.number for claim in load_claims() if claim.experiment == "dico-10"]
    assert [name for name in decided if not numbers.get(name)] == ["environments_reward_difference"]
    EXPERIMENT.figure(decode(Data, json.loads(json.dumps(outcome.data, default=asdict)))).canvas.draw()


def test_without_logs_it_says_so(cells: Cells) -> None:
    with pytest.raises(InputError, match="logs of controlled training"):
        EXPERIMENT.run(Scale.PAPER, cells)


def test_what_the_environments_change(cells: Cells) -> None:
    def better(run: Run) -> list[Any]:
        # What is not controlled earns other rewards, which do not count.
        more = 0.25 * run.seed + 0.5 * (run.arm == "knn:3") if run.target else -8.0
        return [replace(row, reward=row.reward + more) for row in log(run)]

    write_study(cells.results, ECONOMICAL, make=log)
    write_study(cells.results, WHOLE, make=better)
    whole = EXPERIMENT.run(Scale.PAPER, cells)
    shift = whole.numbers["environments_reward_difference"]
    interval = stats.ttest_1samp([0.25 * seed + 0.125 for seed in range(3)], 0).confidence_interval()
    assert (shift.value, shift.low, shift.high) == pytest.approx((0.375, interval.low, interval.high))
    assert shift.kind == "95% t interval, 3 seeds, 4 arms"


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_committed_data_give_the_committed_numbers(scale: Scale) -> None:
    result = read_result(RESULTS / "dico-10" / f"{scale.value}.json")
    assert_same_numbers(summarise(decode(Data, result.data), scale), result.numbers)


def test_committed_logs_give_the_committed_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = decode(Data, read_result(RESULTS / "dico-10" / "paper.json").data)
    monkeypatch.setattr("paper.dico_10.time_calls", lambda *args, **options: data.timed)
    again = EXPERIMENT.run(Scale.PAPER, Cells(tmp_path)).data
    assert again == data
