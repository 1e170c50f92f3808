from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphsnd import InputError
from graphsnd.training.dico.task import Run
from paper.cells import Cells
from paper.dico_10 import EXPERIMENT, SIZES
from paper.experiment import Scale
from paper.judging.claims import load_claims
from tests.paper.control_rows import noisy, write_study

TASK = SIZES[Scale.PAPER].task
SECONDS = {"full": 6.0, "knn:3": 4.0, "bernoulli:0.1": 2.0, "regular:3": 12.0, "unconstrained": 6.0}
TIMED = {
    "trials": {"loop": 2, "fused": 2},
    "calls": {
        f"{way}, {arm}": {"median_s": s, "seconds": [s, s]} for way in ("loop", "fused") for arm, s in SECONDS.items()
        if arm != "unconstrained"
    },
}  # fmt: skip


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cells:
    monkeypatch.setattr("paper.dico_10.time_calls", lambda *args, **options: TIMED)
    return Cells(tmp_path / "work", results=tmp_path / "results")


def log(run: Run) -> list[Any]:
    return noisy(run, 167, level=1.05 if run.arm == "knn:3" else 1.0, distance_seconds=SECONDS[run.arm])


def test_the_committed_study(cells: Cells) -> None:
    write_study(cells.results / "control" / "n10", TASK, make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    numbers = outcome.numbers
    assert outcome.sources == tuple(f"results/control/n10/seed-{seed}" for seed in (0, 1, 2))
    assert outcome.data["missing"] == []
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
    apart = [rewards[Run("regular:3", 0.1, s)] - rewards[Run("full", 0.1, s)] for s in range(3)]
    interval = stats.ttest_1samp(apart, 0).confidence_interval()
    found = numbers["reward_difference_regular"]
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(apart), interval.low, interval.high))
    assert numbers["fused_metric_speedup"].value == pytest.approx(0.5)  # the regular arm takes twice as long
    assert numbers["loop_metric_speedup"].value == pytest.approx(0.5)
    assert {claim.number for claim in load_claims() if claim.experiment == "dico-10"} <= set(numbers)
    EXPERIMENT.figure(json.loads(json.dumps(outcome.data))).canvas.draw()


def test_a_part_of_it(cells: Cells) -> None:
    left_out = [run for run in TASK.runs() if run.seed > 0 or run.arm == "regular:3"]
    write_study(cells.results / "control" / "n10", TASK, left_out=left_out, make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    assert len(outcome.data["missing"]) == len(left_out)
    assert "regular:3, target 0.1, seed 0" in outcome.data["missing"]
    assert "2 of 3 arms, means of 1 of 3 seeds" in outcome.numbers["largest_tracking_error"].kind
    assert not any(name.startswith("reward_difference") for name in outcome.numbers)  # one pair has no interval


def test_without_logs_it_says_so(cells: Cells) -> None:
    with pytest.raises(InputError, match="logs of controlled training below n10/"):
        EXPERIMENT.run(Scale.PAPER, cells)


def test_smaller_scales_keep_the_arms() -> None:
    arms = {scale: dict.fromkeys(run.arm for run in size.task.runs()) for scale, size in SIZES.items()}
    assert arms[Scale.SMOKE] == arms[Scale.LAPTOP] == arms[Scale.PAPER]
    assert len(SIZES[Scale.PAPER].task.runs()) == 15
