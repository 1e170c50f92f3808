from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from graphsnd.rl.log import Run
from paper.control import author
from paper.control.calls import MetricTimes
from paper.control.faulty_controllers import BLIND, DOUBLED, SOUND, FaultyRun, FaultyStudy
from paper.control.logs import split_runs
from paper.control.study import Study, summarise_run
from paper.dico_50 import ECONOMICAL, EXPERIMENT, SIZES, WHOLE, Data, summarise
from paper.experiment import Number, Scale
from paper.judging.claims import load_claims
from paper.rows import decode
from paper.runner import RESULTS, Cells, read_result
from paper.shared.stopwatch import Timing
from tests.paper.committed import assert_same_numbers
from tests.paper.control_rows import noisy, row, write_study

PAPER = SIZES[Scale.PAPER].task
RUN = summarise_run(split_runs([row(1, Run("complete", 0.12, 0))])[0], 1)
SERIES = {"audit": [0.2, 0.06], "applied": [0.12, 0.12]}
FAULTY = FaultyStudy(4, 0.12, 2.0, tuple(FaultyRun(arm, 0.001, 0.5, SERIES) for arm in (SOUND, DOUBLED, BLIND)))
TIMES = {arm: Timing([s, s], [1, 1]) for arm, s in (("complete", 9.5), ("bernoulli:0.1", 1.0))}
TIMED = MetricTimes(TIMES, TIMES)


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cells:
    for name, value in (
        ("faulty_controllers.run_faulty_study", FAULTY),
        ("calls.time_calls", TIMED),
    ):
        monkeypatch.setattr(f"paper.control.{name}", lambda *args, value=value, **options: value)
    return Cells(tmp_path / "work", results=tmp_path / "results")


def known(numbers: dict[str, Number | None]) -> dict[str, Number]:
    return {name: number for name, number in numbers.items() if number is not None}


def log(run: Run) -> list[Any]:
    return noisy(run, 167, distance_seconds=3.0 if run.arm == "complete" else 1.0)


def window(run: Run, key: str) -> np.ndarray:
    return np.array([getattr(row, key) for row in log(run)[-50:]])


def test_the_committed_study(cells: Cells) -> None:
    write_study(cells.results, WHOLE, make=log)
    write_study(
        cells.results, ECONOMICAL, make=lambda run: [replace(row, reward=row.reward - run.seed) for row in log(run)]
    )
    actions = [{"arm": "complete", "target": 0.12, "seed": 0, "controlled": 0.12, "squashed": 0.08, "ratio": 2 / 3}]
    (cells.results / next(iter(WHOLE)) / "actions.json").write_text(json.dumps(actions))
    other = [actions[0] | {"ratio": 0.5}]  # of another protocol
    (cells.results / "control" / "n50" / "actions.json").write_text(json.dumps(other))
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    numbers = known(outcome.numbers)
    named = {claim.number for claim in load_claims() if claim.experiment == "dico-50"}
    assert named - set(numbers) == {
        "loop_time_over_paper",
        "metric_share_growth",
    }  # for a GPU, and of logs of ten agents
    assert outcome.data.study.missing == ()
    assert {(twin.arm, twin.target) for twin in outcome.data.twins} == {("complete", 0.12), ("bernoulli:0.1", 0.12)}
    shortcut, interval = numbers["shortcut_reward_difference"], stats.ttest_1samp([0, 1, 2], 0).confidence_interval()
    assert (shortcut.value, shortcut.low, shortcut.high) == pytest.approx((1, interval.low, interval.high))
    assert numbers["shortcut_audit_difference"].value == 0
    assert "204,800 of 204,800 observations an estimate" in numbers["largest_audit_error_full"].kind

    def mean(arm: str, key: str, value: Any) -> list[float]:
        return [float(np.mean([value(window(Run(arm, t, s), key), t) for s in range(3)])) for t in (0.12, 0.14, 0.15)]

    for arm, name in (("complete", "full"), ("bernoulli:0.1", "bernoulli")):
        tracking = mean(arm, "applied", lambda values, t: np.abs(values / t - 1).mean())
        audits = mean(arm, "audit", lambda values, t: abs(values.mean() / t - 1))
        assert numbers[f"largest_tracking_error_{name}"].value == pytest.approx(max(tracking))
        assert numbers[f"largest_audit_error_{name}"].value == pytest.approx(max(audits))
    rewards = {(arm, t): mean(arm, "reward", lambda v, _: v.mean())[i]
               for arm in ("complete", "bernoulli:0.1") for i, t in enumerate((0.12, 0.14, 0.15))}  # fmt: skip
    assert numbers["reward_full_014"].value == pytest.approx(rewards["complete", 0.14])
    cells_apart = [
        window(Run("bernoulli:0.1", t, s), "reward").mean() - window(Run("complete", t, s), "reward").mean()
        for t in (0.12, 0.14, 0.15)
        for s in range(3)
    ]
    interval = stats.ttest_1samp(cells_apart, 0).confidence_interval()
    pair = numbers["paired_reward_difference"]
    assert (pair.value, pair.low, pair.high) == pytest.approx((np.mean(cells_apart), interval.low, interval.high))
    ahead = sum(value > 0 for value in cells_apart)
    assert numbers["sign_test_p"].value == pytest.approx(stats.binomtest(ahead, 9).pvalue)
    errors = {(arm, t, s): np.abs(window(Run(arm, t, s), "applied") / t - 1).mean()
              for arm in ("complete", "bernoulli:0.1") for t in (0.12, 0.14, 0.15) for s in range(3)}  # fmt: skip
    gaps = [[errors["bernoulli:0.1", t, s] - errors["complete", t, s] for s in range(3)] for t in (0.12, 0.14, 0.15)]
    least, gap = min(gaps, key=np.mean), numbers["smallest_tracking_gap"]
    interval = stats.ttest_1samp(least, 0).confidence_interval()
    assert (gap.value, gap.low, gap.high) == pytest.approx((np.mean(least), interval.low, interval.high))
    spreads = [
        np.var([window(Run(arm, t, s), "reward").mean() for s in range(3)], ddof=1)
        for arm in ("complete", "bernoulli:0.1")
        for t in (0.12, 0.14, 0.15)
    ]
    at = {t: [window(Run("bernoulli:0.1", t, s), "reward").mean() - window(Run("complete", t, s), "reward").mean()
              for s in range(3)] for t in (0.12, 0.14, 0.15)}  # fmt: skip
    worst, over = max(at.values(), key=lambda values: abs(np.mean(values))), numbers["difference_over_seed_sd"]
    ends = [float(np.mean(worst)), *stats.ttest_1samp(worst, 0).confidence_interval()]
    assert (over.value, over.low, over.high) == pytest.approx([end / np.sqrt(np.mean(spreads)) for end in ends])
    late = [window(Run("complete", t, s), "reward") for t in (0.12, 0.14, 0.15) for s in range(3)]
    grown = [abs(values[25:].mean() / values[:25].mean() - 1) for values in late]
    assert numbers["late_reward_growth"].value == pytest.approx(max(grown))
    check_steps(numbers, cells)
    gaps = [abs(rewards["bernoulli:0.1", t] / rewards["complete", t] - 1) for t in (0.12, 0.14, 0.15)]
    assert numbers["largest_reward_gap"].value == pytest.approx(max(gaps))
    assert numbers["fused_metric_speedup"].value == pytest.approx(3)
    assert numbers["environment_over_controlled"].value == pytest.approx(2 / 3)
    EXPERIMENT.figure(decode(Data, json.loads(json.dumps(outcome.data, default=asdict)))).canvas.draw()


def check_steps(numbers: dict[str, Number], cells: Cells) -> None:
    """The smallest step of our grid, and what it is with the author's two beside it."""
    means = {(run.arm, run.target, run.seed): run.reward for grid in author.read_grids() for run in grid}
    ours = {(r.arm, r.target, r.seed): window(r, "reward").mean() for r in PAPER.runs()}
    for name, rewards in (("smallest_reward_step", ours), ("pooled_smallest_step", ours | means)):
        seeds = sorted({seed for _, _, seed in rewards})
        steps = [[rewards[arm, b, s] - rewards[arm, a, s] for s in seeds]
                 for arm in ("complete", "bernoulli:0.1") for a, b in ((0.12, 0.14), (0.14, 0.15))]  # fmt: skip
        least = min(steps, key=np.mean)
        interval = stats.ttest_1samp(least, 0).confidence_interval()
        number = numbers[name]
        assert (number.value, number.low, number.high) == pytest.approx((np.mean(least), interval.low, interval.high))
    both, targets = ours | means, (0.12, 0.14, 0.15)
    apart = [
        np.mean([both["bernoulli:0.1", t, s] - both["complete", t, s] for t in targets])
        for s in sorted({seed for _, _, seed in both})
    ]
    interval, pooled = stats.ttest_1samp(apart, 0).confidence_interval(), numbers["pooled_reward"]
    assert (pooled.value, pooled.low, pooled.high) == pytest.approx((np.mean(apart), interval.low, interval.high))
    assert numbers["second_grid_reward"].value == pytest.approx(np.mean(apart[-3:]))
    audits = {t: [window(Run("complete", t, s), "audit").mean() for s in range(3)] for t in targets}
    theirs = {t: [float(run.columns["posthoc_full_snd_late_mean"]) for run in author.read_grids()[1]
                  if (run.arm, run.target) == ("complete", t)] for t in targets}  # fmt: skip
    z = [abs(stats.ttest_ind(audits[t], theirs[t], equal_var=False).statistic) for t in targets]
    assert numbers["audit_largest_z"].value >= max(z) * (1 - 1e-9)


GRID = ("paired_reward_difference", "largest_audit_error_full", "reward_full_012", "difference_over_seed_sd")


def test_some_runs_decide_no_claim_about_all(cells: Cells) -> None:
    write_study(cells.results, WHOLE, left_out=[run for run in PAPER.runs() if run.seed > 0], make=log)
    outcome = EXPERIMENT.run(Scale.PAPER, cells)
    assert len(outcome.data.study.missing) == 12
    numbers = known(outcome.numbers)
    assert not set(GRID) & set(numbers)
    assert {"rollout_difference", "wrong_estimator_audit_error", "mean_edges", "fused_metric_speedup"} <= set(numbers)
    assert not {"pooled_reward", "iteration_seconds"} & set(numbers)


def start(audit: float) -> Data:
    """Matched runs of both arms with the same rewards in the second iteration, and audits that differ by ``audit``."""
    runs = (RUN, replace(RUN, arm="bernoulli:0.1", first_audits=(0.1, 0.1 + audit)))
    runs = tuple(replace(run, first_rewards=(0.3, 0.3), first_audits=(0.1, run.first_audits[-1])) for run in runs)
    study = Study(50, 4, 1, 2, ("another",), runs, ())
    return Data(study, (), FAULTY)


def test_rewards_that_agree_by_coarseness_decide_nothing() -> None:
    assert summarise(start(0.01), Scale.SMOKE)["rollout_difference"] is None
    difference = summarise(start(0.0), Scale.SMOKE)["rollout_difference"]
    assert difference is not None
    assert difference.value == 0


@pytest.mark.parametrize("scale", [Scale.LAPTOP, Scale.PAPER])
def test_committed_data_give_the_committed_numbers(scale: Scale) -> None:
    result = read_result(RESULTS / "dico-50" / f"{scale.value}.json")
    assert_same_numbers(summarise(decode(Data, result.data), scale), result.numbers)


def test_committed_logs_give_the_committed_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = decode(Data, read_result(RESULTS / "dico-50" / "paper.json").data)
    monkeypatch.setattr("paper.control.faulty_controllers.run_faulty_study", lambda *args, **options: data.faulty)
    monkeypatch.setattr("paper.control.calls.time_calls", lambda *args, **options: data.timed)
    again = EXPERIMENT.run(Scale.PAPER, Cells(tmp_path)).data
    assert again == data


def test_the_loop_is_compared_with_the_paper_where_a_gpu_timed_it(cells: Cells) -> None:
    write_study(cells.results, WHOLE, make=log)
    data = replace(EXPERIMENT.run(Scale.PAPER, cells).data, on_gpu=TIMED)
    over = summarise(data, Scale.PAPER)["loop_time_over_paper"]
    assert over is not None
    assert sorted((over.low, over.high)) == pytest.approx([1000 * 1.0 / 2.0, 1000 * 9.5 / 18.9])
