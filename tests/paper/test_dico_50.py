from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphsnd.training.dico import ControlTask, control, read_control_rows
from graphsnd.training.dico.task import Run
from paper.cells import Cells
from paper.control.numbers import numbers
from paper.dico_50 import EXPERIMENT, SIZES
from paper.experiment import Scale
from paper.judging.claims import load_claims
from paper.judging.verdicts import Verdict, judge
from tests.paper.control_rows import noisy, write_study, write_training

PAPER = SIZES[Scale.PAPER].task
TASK = replace(PAPER, estimators=(*PAPER.estimators, "matching"))
SERIES = {"audit": [0.2, 0.06], "applied": [0.12, 0.12]}
WRONG = {"tracking_error": 0.001, "audit_error": 0.5, "series": SERIES}
MISTAKEN = {
    "agents": 4, "target": 0.12, "factor": 2.0, "window": 1,
    "arms": [{"arm": arm, **WRONG} for arm in ("sound", "reads double", "does not look")],
}  # fmt: skip
TIMED = {
    "trials": {"loop": 2, "fused": 2},
    "calls": {
        f"{way}, {arm}": {"median_s": s, "seconds": [s, s]}
        for way in ("loop", "fused")
        for arm, s in (("full", 9.5), ("bernoulli:0.1", 1.0))
    },
}
STEP = {"networks": 1.0, "distances": 0.1, "learning": 0.3, "share": 0.88, "arithmetic": 0.87}


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cells:
    edges = {"mean": 122.4, "sem": 0.1, "graphs": 100, "empty": 0}
    for name, value in (
        ("mistaken_study", MISTAKEN),
        ("time_calls", TIMED),
        ("estimate_share", STEP),
        ("mean_edges", edges),
    ):
        monkeypatch.setattr(f"paper.dico_50.{name}", lambda *args, value=value, **options: value)
    return Cells(tmp_path / "work", results=tmp_path / "results")


def log(run: Run) -> list[Any]:
    return noisy(run, 167, distance_seconds=3.0 if run.arm == "full" else 1.0)


def late(run: Run, key: str) -> np.ndarray:
    return np.array([getattr(row, key) for row in log(run)[-50:]])


def test_the_committed_study(cells: Cells) -> None:
    root = cells.results / "control" / "n50"
    write_study(root, TASK, make=log)
    first = Run("full", 0.12, 0)
    write_training(
        root / "all", noisy(first, 60, observations=204_800), replace(TASK, estimators=("full",), targets=(0.12,))
    )
    actions = [{"arm": "full", "target": 0.12, "seed": 0, "controlled": 0.12, "squashed": 0.08, "ratio": 2 / 3}]
    (root / "seed-0" / "actions.json").write_text(json.dumps(actions))
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    found = outcome.numbers
    assert {claim.number for claim in load_claims() if claim.experiment == "dico-50"} <= set(found)
    assert outcome.data["missing"] == []

    def mean(arm: str, key: str, value: Any) -> list[float]:
        return [float(np.mean([value(late(Run(arm, t, s), key), t) for s in range(3)])) for t in (0.12, 0.14, 0.15)]

    for arm, name in (("full", "full"), ("bernoulli:0.1", "bernoulli"), ("agents:4", "agents")):
        tracking = mean(arm, "applied", lambda values, t: np.abs(values / t - 1).mean())
        audits = mean(arm, "audit", lambda values, t: abs(values.mean() / t - 1))
        assert found[f"largest_tracking_error_{name}"].value == pytest.approx(max(tracking))
        assert found[f"largest_audit_error_{name}"].value == pytest.approx(max(audits))
    rewards = {(arm, t): mean(arm, "reward", lambda v, _: v.mean())[i]
               for arm in ("full", "bernoulli:0.1") for i, t in enumerate((0.12, 0.14, 0.15))}  # fmt: skip
    assert found["reward_full_014"].value == pytest.approx(rewards["full", 0.14])
    cells_apart = [
        late(Run("bernoulli:0.1", t, s), "reward").mean() - late(Run("full", t, s), "reward").mean()
        for t in (0.12, 0.14, 0.15)
        for s in range(3)
    ]
    interval = stats.ttest_1samp(cells_apart, 0).confidence_interval()
    pair = found["paired_reward_difference"]
    assert (pair.value, pair.low, pair.high) == pytest.approx((np.mean(cells_apart), interval.low, interval.high))
    ahead = sum(value > 0 for value in cells_apart)
    assert found["sign_test_p"].value == pytest.approx(stats.binomtest(ahead, 9).pvalue)
    spreads = [
        np.var([late(Run(arm, t, s), "reward").mean() for s in range(3)], ddof=1)
        for arm in ("full", "bernoulli:0.1")
        for t in (0.12, 0.14, 0.15)
    ]
    assert found["difference_over_seed_sd"].value == pytest.approx(abs(pair.value) / np.sqrt(np.mean(spreads)))
    gaps = [abs(rewards["bernoulli:0.1", t] / rewards["full", t] - 1) for t in (0.12, 0.14, 0.15)]
    assert found["largest_reward_gap"].value == pytest.approx(max(gaps))
    assert found["fused_metric_speedup"].value == pytest.approx(3)
    assert found["environment_over_controlled"].value == pytest.approx(2 / 3)
    # Runs of the usual log share rollouts by nine; the run on everything is alone.
    assert found["estimate_share_in_training"].value == pytest.approx(2 * 4.5 / (2 * 4.5 + 12))
    assert {"paired_reward_difference_agents", "sign_test_p_agents"} <= set(found)
    EXPERIMENT.figure(json.loads(json.dumps(outcome.data))).canvas.draw()


def test_one_seed_of_it(cells: Cells) -> None:
    left_out = [run for run in TASK.runs() if run.seed > 0]
    write_study(cells.results / "control" / "n50", TASK, left_out=left_out, make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    assert len(outcome.data["missing"]) == 18  # of the study's arms; further ones are welcome, not wanted
    found = outcome.numbers
    assert found["paired_reward_difference_so_far"].kind == "95% t interval, 3 of 9 pairs"
    assert found["largest_audit_error_full_so_far"].kind == "largest and range of 3 targets, 1 of 3 seeds"
    assert found["reward_full_012_so_far"].low is None
    # A claim about all runs is not decided by some.
    assert not {"paired_reward_difference", "largest_audit_error_full", "reward_full_012"} & set(found)
    assert "difference_over_seed_sd_so_far" not in found


def test_one_cell_of_it_has_no_interval(cells: Cells) -> None:
    left_out = [run for run in TASK.runs() if run.seed > 0 or run.target != 0.12]
    write_study(cells.results / "control" / "n50", TASK, left_out=left_out, make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    found = outcome.numbers
    gone = ("paired_reward_difference", "paired_reward_sem", "sign_test_p", "smallest_reward_step")
    assert not {f"{name}{end}" for name in gone for end in ("", "_so_far")} & set(found)
    assert found["largest_tracking_error_full_so_far"].kind == "largest and range of 1 of 3 targets, 1 of 3 seeds"
    results = {Scale.PAPER: SimpleNamespace(numbers=found, scale=Scale.PAPER)}
    verdicts = [judge(claim, results) for claim in load_claims() if claim.experiment == "dico-50"]  # none is refused
    assert Verdict.NOT_MEASURED in {one.verdict for one in verdicts}
    EXPERIMENT.figure(json.loads(json.dumps(outcome.data))).canvas.draw()


def test_rewards_that_agree_by_coarseness_decide_nothing() -> None:
    start = {"rewards_1": 0.0, "rewards_2": 0.0, "audits_1": 0.0, "audits_2": 0.01}
    data = {
        "cells": [], "settling": [], "iterations": 4, "pairs": [], "runs": [], "mistaken": MISTAKEN, "actions": [],
        "published": {"share": 0.1}, "start": {"bernoulli:0.1": start}, "costs": [],
        "wanted_seeds": 1, "wanted_targets": 1,
    }  # fmt: skip
    assert "rollout_difference" not in numbers(data, Scale.SMOKE)
    data["start"] = {"bernoulli:0.1": start | {"audits_2": 0.0}}
    assert numbers(data, Scale.SMOKE)["rollout_difference"].value == 0


def test_a_stopped_study_goes_on(cells: Cells) -> None:
    size = SIZES[Scale.SMOKE]
    folder = cells.folder("study")
    half = replace(size.task, settings=size.task.settings.replace(iterations=2))
    control(half, folder)
    EXPERIMENT.run(Scale.SMOKE, cells)
    rows = read_control_rows(folder)
    assert [row.iteration for row in rows[:: len(size.task.runs())]] == [1, 2, 3, 4]


def test_smaller_scales_have_the_third_arm() -> None:
    tasks: list[ControlTask] = [SIZES[scale].task for scale in (Scale.SMOKE, Scale.LAPTOP)]
    assert all(task.estimators == ("full", "bernoulli:0.1", "agents:4") for task in [*tasks, PAPER])
    assert (len(PAPER.runs()), PAPER.settings.optimiser_steps, PAPER.settings.frames) == (27, 135, 12_000)
