from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from graphsnd.rl.log import Run
from paper.control.logs import split_runs
from paper.control.study import (
    Curve,
    compare_rewards,
    find_settling,
    group_arms,
    make_curves,
    pair,
    summarise_run,
    summarise_study,
)
from tests.paper.control_rows import noisy, row
from tests.training import control_settings, control_task

FULL, SPARSE = Run("complete", 0.12, 0), Run("bernoulli:0.1", 0.12, 0)
TASK = control_task(
    10, (0.12, 0.15), ("complete", "bernoulli:0.1"), (0, 1, 2), settings=control_settings(iterations=20)
)


def test_nothing_stands_in_for_missing_runs() -> None:
    study = summarise_study(TASK, 5, split_runs(noisy(FULL, 20) + noisy(SPARSE, 7)))
    assert [run.arm for run in study.runs] == study.arms == ["complete"]
    assert (study.wanted, len(study.missing), study.targets, study.seeds) == (12, 11, [0.12], [0])
    assert compare_rewards(study.runs, SPARSE.arm) is None


def test_errors_of_the_window_against_arrays() -> None:
    history = split_runs(noisy(FULL, 30, level=1.02, noise=0.05))[0]
    summary = summarise_run(history, 11)
    applied, audit, reward = (
        np.array([getattr(r, k) for r in history.rows[-11:]]) for k in ("applied", "audit", "reward")
    )
    assert summary.tracking_error == pytest.approx(np.abs(applied / 0.12 - 1).mean())
    assert summary.tracking_error_of_mean == pytest.approx(abs(applied.mean() / 0.12 - 1))
    assert summary.audit_error == pytest.approx(abs(audit.mean() / 0.12 - 1))
    assert summary.absolute_audit_error == pytest.approx(np.abs(audit / 0.12 - 1).mean())
    assert summary.absolute_audit_error > summary.audit_error
    assert summary.audit_minus_applied == pytest.approx((audit - applied).mean())
    assert summary.reward_halves == pytest.approx([reward[:6].mean(), reward[6:].mean()])
    free = summarise_run(split_runs(noisy(Run("unconstrained", None, 0), 5))[0], 5)
    assert free.audit_error is None
    assert free.reward > 0


def test_cells_are_means_over_the_seeds_that_are_there() -> None:
    runs = [summarise_run(split_runs(noisy(replace(FULL, seed=s), 20))[0], 10) for s in (0, 2)]
    (cell,) = group_arms(runs)
    rewards = [run.reward for run in runs]
    assert cell.seeds == 2
    assert cell.mean("reward") == pytest.approx(np.mean(rewards))
    assert cell.reward_sem == pytest.approx(stats.sem(rewards))
    assert group_arms(runs[:1])[0].reward_sem is None


@pytest.mark.parametrize("count", [2, 5, 9])
def test_pairs_against_scipy_and_against_all_signs(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1, count)
    paired = pair(values.tolist())
    other = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert paired.interval is not None
    assert (paired.interval.low, paired.interval.high) == pytest.approx((other.low, other.high))
    assert paired.sem == pytest.approx(stats.sem(values))
    # Under no difference every pattern of signs is as likely as any other.
    ahead = (values > 0).sum()
    extreme = [
        abs(sum(signs) - count / 2) >= abs(ahead - count / 2) for signs in itertools.product((0, 1), repeat=count)
    ]
    assert paired.sign_p == pytest.approx(np.mean(extreme))


def test_pairs_without_room_for_an_answer() -> None:
    assert pair([0.1]).interval is None
    assert pair([0.0, 0.0]).sign_p is None
    assert pair([0.0, 1.0, 2.0, 3.0]).sign_p == 0.25  # ties do not count


def test_only_matched_runs_are_compared() -> None:
    rewards = {Run("complete", 0.1, 0): 1.0, Run("complete", 0.1, 1): 2.0, Run("complete", 0.2, 0): 3.0}
    rewards |= {Run("knn:3", 0.1, 1): 2.5, Run("knn:3", 0.2, 0): 2.0, Run("knn:3", 0.2, 1): 9.0}
    rewards |= {Run("unconstrained", None, 0): 5.0}
    runs = [summarise_run(split_runs([row(1, run, reward=value)])[0], 1) for run, value in rewards.items()]
    paired = compare_rewards(runs, "knn:3")
    assert paired is not None
    assert paired.differences == (0.5, -1.0)
    free = compare_rewards(runs, "unconstrained")
    assert free is not None
    assert free.differences == (4.0, 2.0)
    assert compare_rewards(runs, "matching") is None


def test_settling_is_after_the_last_time_outside() -> None:
    def curve(*applied: tuple[float, ...], run: Run = FULL) -> Curve:
        rows = [row(i + 1, replace(run, seed=s), applied=v) for s, vs in enumerate(applied) for i, v in enumerate(vs)]
        return make_curves(split_runs(rows))[0]

    assert find_settling(curve((0.2, 0.12, 0.13, 0.12, 0.121)), 0.02) == 4
    assert find_settling(curve((0.2, 0.12, 0.1224014, 0.12)), 0.02) == 4  # 2.001%, of which five digits make 2
    assert find_settling(curve((0.2, 0.12, 0.1224014, 0.12)), 0.025) == 2
    assert find_settling(curve((0.12, 0.12)), 0.02) == 1
    assert find_settling(curve((0.12, 0.2)), 0.02) is None
    assert find_settling(curve((0.11, 0.12), (0.13, 0.12)), 0.02) == 1  # it is the mean over seeds that counts


def test_curves_are_means_and_ranges() -> None:
    histories = [split_runs(noisy(replace(FULL, seed=s), 6))[0] for s in (0, 1, 2)]
    (curve,) = make_curves(histories)
    audits = np.array([[r.audit for r in history.rows] for history in histories])
    assert curve.audit.mean == pytest.approx(audits.mean(0), rel=1e-4)
    assert curve.audit.low == pytest.approx(audits.min(0), rel=1e-4)
    assert curve.audit.high == pytest.approx(audits.max(0), rel=1e-4)
    assert curve.iteration == [1, 2, 3, 4, 5, 6]
