from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy import stats

from graphsnd import InputError
from graphsnd.training.dico import ControlSettings, ControlTask
from graphsnd.training.dico.task import Run
from paper.control.costs import asked, by_arm, call_seconds, cost_numbers, metric_speedups, seconds_of
from paper.control.data import Study, assemble
from paper.control.figure import control_figure
from paper.control.logs import folders, missing, of_training, read_folder, usual
from paper.control.pairs import against, paired, same_start
from paper.control.study import beside, curves, late, over_seeds, settling
from tests.paper.control_rows import noisy, row, write_study, write_training

FULL, SPARSE = Run("full", 0.12, 0), Run("bernoulli:0.1", 0.12, 0)
TASK = ControlTask(10, (0.12, 0.15), ("full", "bernoulli:0.1"), (0, 1, 2), settings=ControlSettings(iterations=20))


def test_folders_tell_what_shares_the_seconds(tmp_path: Path) -> None:
    rows = [row(i, run) for i in (1, 2) for run in TASK.runs()]
    write_training(tmp_path / "a" / "b", rows, TASK)
    write_training(tmp_path / "c", rows, TASK, about=True)
    write_training(tmp_path / "d", rows)
    found = [read_folder(folder) for folder in folders(tmp_path)]
    assert [len(histories) for histories in found] == [12, 12, 12]
    assert [histories[0].steps for histories in found] == [45 * 15, 45 * 15, None]
    first = found[0][0]
    assert (first.together, first.alike, first.iterations) == (12, 6, 2)
    parts = seconds_of(first)
    assert parts == pytest.approx({"rollout": 0.5, "update": 1, "policies": 0.5, "distances": 0.25, "audit": 0.05})
    assert call_seconds(first) == pytest.approx(1.5 / 6 / 675)
    assert call_seconds(found[2][0]) is None
    with pytest.raises(InputError, match="logs of controlled training below none/"):
        folders(tmp_path / "none")


def test_missing_runs_are_named_and_nothing_stands_in_for_them() -> None:
    rows = noisy(FULL, 20) + noisy(SPARSE, 7)
    wanted = [FULL, SPARSE, replace(FULL, seed=1)]
    assert missing(rows, wanted, iterations=20) == [
        "bernoulli:0.1, target 0.12, seed 0 (7 of 20 iterations)",
        "full, target 0.12, seed 1",
    ]
    data = assemble(Study(tuple(wanted), 20, 5), of_training(rows))
    assert [run["arm"] for run in data["runs"]] == ["full"]
    assert (data["pairs"], data["start"], data["wanted"], len(data["missing"])) == ([], {}, 3, 2)


def test_runs_that_saw_other_observations_stand_beside_the_study() -> None:
    main = of_training(noisy(FULL, 20) + noisy(SPARSE, 20))
    whole = of_training(noisy(FULL, 12, level=1.1, observations=40_960), ControlTask(10, (0.12,)))
    study, others = usual([*main, *whole])
    assert (study, others) == (main, whole)
    (entry,) = beside(others, study, 4)
    assert (entry["iterations"], entry["observations"], entry["everything"]) == (12, [40_960, 2048], True)
    audits = [history.rows[8:12] for history in (whole[0], main[0])]
    assert entry["audit"] == pytest.approx([np.mean([r.audit for r in rows]) for rows in audits])
    assert entry["parts"]["rollout"] == 6.0
    with pytest.raises(InputError, match="every run once"):
        usual([*main, *main])


def test_late_errors_against_arrays() -> None:
    history = of_training(noisy(FULL, 30, level=1.02, noise=0.05))[0]
    found = late(history, 11)
    applied, audit, reward = (
        np.array([getattr(r, k) for r in history.rows[-11:]]) for k in ("applied", "audit", "reward")
    )
    assert found["tracking_error"] == pytest.approx(np.abs(applied / 0.12 - 1).mean())
    assert found["tracking_error_of_mean"] == pytest.approx(abs(applied.mean() / 0.12 - 1))
    assert found["audit_error"] == pytest.approx(abs(audit.mean() / 0.12 - 1))
    assert found["absolute_audit_error"] == pytest.approx(np.abs(audit / 0.12 - 1).mean())
    assert found["absolute_audit_error"] > found["audit_error"]
    assert found["audit_minus_applied"] == pytest.approx((audit - applied).mean())
    assert found["reward_halves"] == pytest.approx([reward[:6].mean(), reward[6:].mean()])
    free = late(of_training(noisy(Run("unconstrained", None, 0), 5))[0], 5)
    assert free["audit_error"] is None
    assert free["reward"] > 0


def test_cells_are_means_over_the_seeds_that_are_there() -> None:
    runs = [late(of_training(noisy(replace(FULL, seed=s), 20))[0], 10) for s in (0, 2)]
    (cell,) = over_seeds(runs)
    rewards = [run["reward"] for run in runs]
    assert cell["seeds"] == [0, 2]
    assert cell["reward"] == pytest.approx(np.mean(rewards))
    assert cell["reward_sem"] == pytest.approx(stats.sem(rewards))
    assert over_seeds(runs[:1])[0]["reward_sem"] is None


@pytest.mark.parametrize("count", [2, 5, 9])
def test_pairs_against_scipy_and_against_all_signs(count: int) -> None:
    values = np.random.default_rng(count).normal(0.3, 1, count)
    found = paired(values.tolist())
    other = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((other.low, other.high))
    assert found.sem == pytest.approx(stats.sem(values))
    # Under no difference every pattern of signs is as likely as any other.
    ahead = (values > 0).sum()
    extreme = [
        abs(sum(signs) - count / 2) >= abs(ahead - count / 2) for signs in itertools.product((0, 1), repeat=count)
    ]
    assert found.sign_p == pytest.approx(np.mean(extreme))


def test_pairs_without_room_for_an_answer() -> None:
    assert paired([0.1]).low is None
    assert paired([0.0, 0.0]).sign_p is None
    assert paired([0.0, 1.0, 2.0, 3.0]).sign_p == 0.25  # ties count for nobody
    with pytest.raises(InputError, match="at least one"):
        paired([])


def test_only_matched_runs_are_compared() -> None:
    rewards = {Run("full", 0.1, 0): 1.0, Run("full", 0.1, 1): 2.0, Run("full", 0.2, 0): 3.0}
    rewards |= {Run("knn:3", 0.1, 1): 2.5, Run("knn:3", 0.2, 0): 2.0, Run("knn:3", 0.2, 1): 9.0}
    rewards |= {Run("unconstrained", None, 0): 5.0}
    runs = [late(of_training([row(1, run, reward=value)])[0], 1) for run, value in rewards.items()]
    found = against(runs, "knn:3")
    assert found is not None
    assert (found["cells"], found["differences"]) == ([[0.1, 1], [0.2, 0]], [0.5, -1.0])
    assert found["by_seed"]["mean"] == -0.25
    free = against(runs, "unconstrained")
    assert free is not None
    assert free["differences"] == [4.0, 2.0]
    assert free["by_seed"]["differences"] == [3.0]
    assert against(runs, "matching") is None


def test_matched_runs_begin_alike() -> None:
    series = {FULL: (0.1, 0.2), SPARSE: (0.1, 0.25), replace(FULL, seed=1): (0.3, 0.4)}
    runs = [
        late(of_training([row(i + 1, run, reward=v) for i, v in enumerate(v2)])[0], 1) for run, v2 in series.items()
    ]
    found = same_start(runs, "bernoulli:0.1")
    assert found is not None
    assert found["rewards_1"] == 0
    assert found["rewards_2"] == pytest.approx(0.05)
    assert same_start(runs, "knn:3") is None


def test_settling_is_after_the_last_time_outside() -> None:
    def runs(*applied: tuple[float, ...]) -> list:
        rows = [row(i + 1, replace(FULL, seed=s), applied=v) for s, vs in enumerate(applied) for i, v in enumerate(vs)]
        return of_training(rows)

    assert settling(runs((0.2, 0.12, 0.13, 0.12, 0.121))) == 4
    assert settling(runs((0.12, 0.12))) == 1
    assert settling(runs((0.12, 0.2))) is None
    assert settling(runs((0.11, 0.12), (0.13, 0.12))) == 1  # it is the mean over seeds that counts
    with pytest.raises(InputError, match="target"):
        settling(of_training([row(1, Run("unconstrained", None, 0))]))


def test_curves_are_means_and_ranges() -> None:
    histories = [of_training(noisy(replace(FULL, seed=s), 6))[0] for s in (0, 1, 2)]
    (curve,) = curves(histories)
    audits = np.array([[r.audit for r in history.rows] for history in histories])
    assert curve["audit"]["mean"] == pytest.approx(audits.mean(0), rel=1e-4)
    assert curve["audit"]["low"] == pytest.approx(audits.min(0), rel=1e-4)
    assert curve["audit"]["high"] == pytest.approx(audits.max(0), rel=1e-4)
    assert (curve["iteration"], curve["seeds"]) == ([1, 2, 3, 4, 5, 6], 3)


def test_costs_are_medians_of_shares() -> None:
    rows = [r for run in TASK.runs() for r in noisy(run, 3, distance_seconds=6.0 if run.arm == "full" else 1.5)]
    histories = of_training([*rows, *(row(4, run, rollout_seconds=99.0) for run in TASK.runs())], TASK)
    full, sparse = by_arm(histories)
    assert full["parts"]["distances"] == pytest.approx(6.0 / 6)
    assert full["parts"]["rollout"] == pytest.approx(6.0 / 12)
    assert full["call_ms"] == pytest.approx(1000 / 675)
    assert full["total"] == pytest.approx(sum(full["parts"].values()))
    assert (full["pairs"], full["networks"]) == (45, 10)
    assert sparse["pairs"] == pytest.approx(4.5, abs=0.5)
    assert metric_speedups(histories, "bernoulli:0.1", "full") == {"0.12": pytest.approx(4), "0.15": pytest.approx(4)}
    assert metric_speedups(histories, "knn:3", "full") == {}
    found = cost_numbers([full, sparse])
    assert found["metric_ms_full"].value == pytest.approx(1000 / 675)
    assert sum(found[f"{part}_share_bernoulli"].value for part in full["parts"]) == pytest.approx(1)


def test_neighbours_are_asked_once_a_pair() -> None:
    generator, counts = torch.Generator().manual_seed(0), []
    for _ in range(200):
        places = torch.rand(1, 10, 2, generator=generator)[0]
        apart = torch.cdist(places, places).fill_diagonal_(math.inf)
        graph = nx.Graph([(i, int(j)) for i in range(10) for j in apart[i].argsort()[:3]])
        counts.append(graph.number_of_edges())
    assert asked("knn:3", 10)["pairs"] == pytest.approx(np.mean(counts))


def test_a_partial_study_is_drawn(tmp_path: Path) -> None:
    left_out = [run for run in TASK.runs() if run.seed == 2 or (run.target == 0.15 and run.arm != "full")]
    write_study(tmp_path, TASK, left_out=left_out, make=lambda run: noisy(run, 20))
    histories = [history for folder in folders(tmp_path) for history in read_folder(folder)]
    data = assemble(Study.of(TASK, 5), histories)
    assert len(data["missing"]) == len(left_out)
    assert data["protocol"]["agents"] == 10
    figure = control_figure(data)
    figure.canvas.draw()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert {"Diversity, target 0.12", "Diversity, target 0.15", "Time of an iteration"} <= set(titles)
    assert "6 of 12 runs are missing" in figure.legends[0].get_title().get_text()
