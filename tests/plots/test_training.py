from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from graphsnd.plots.style import save_png
from graphsnd.plots.training import control_table, iteration_describer, training_figure, training_table
from graphsnd.rl.log import Row


def _rows(solved: float | None = 0.5) -> list[Row]:
    rows = []
    for iteration in range(1, 9):
        for seed in (0, 1, 2):
            snd = 0.1 * iteration + 0.01 * seed if iteration % 4 == 0 else None
            rows.append(
                Row(iteration=iteration, seed=seed, reward=0.1 * iteration * (1 + seed), episodes=1, solved=solved,
                    policy_loss=0.0, value_loss=1.0, entropy=1.0, kl=0.0, snd=snd,
                    graph_snd=snd and snd + 0.02, snd_observations=9, snd_seconds=0.1, graph_snd_seconds=0.01,
                    behavior_seconds=0.1, rollout_seconds=1.0, update_seconds=1.0)
            )  # fmt: skip
    return rows


def test_curves_show_mean_and_range_over_seeds(tmp_path: Path) -> None:
    figure = training_figure(_rows())
    diversity, _, reward = figure.axes
    np.testing.assert_allclose(reward.lines[0].get_ydata(), 0.1 * np.arange(1, 9) * 2)
    band = reward.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(2.4)
    np.testing.assert_array_equal(diversity.lines[0].get_xdata(), [4, 8])
    np.testing.assert_allclose(diversity.lines[1].get_ydata(), [0.43, 0.83])
    assert [text.get_text() for text in diversity.get_legend().get_texts()] == ["all pairs", "sampled"]
    for ax in figure.axes:
        assert ax.get_xlabel() == "iteration"
        assert ax.get_ylabel()
    assert save_png(figure, tmp_path / "curves.png").stat().st_size > 10_000


def test_curves_leave_out_what_was_not_measured() -> None:
    rows = [row for row in _rows(solved=None) if row.snd is None]
    assert len(training_figure(rows).axes) == 1


def test_table_has_a_line_for_each_seed() -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(training_table(_rows()))
    text = console.export_text()
    assert "solved: in rollouts" in text
    assert "+0.3000" in text
    assert "+2.4000" in text
    assert "0.8200" in text
    assert len([line for line in text.splitlines() if line.strip()[:1] in tuple("012")]) == 3


@pytest.mark.parametrize("seed", [10_000, 2**60])
def test_the_table_shows_whole_numbers_on_80_columns(seed: int) -> None:
    rows = [dataclasses.replace(row, seed=seed + row.seed, reward=-123.4567) for row in _rows()]
    rows = [dataclasses.replace(row, snd=12.3456, graph_snd=12.6543) for row in rows]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(training_table(rows))
    text = console.export_text()
    assert "…" not in text
    assert text.count("-123.4567") == 6
    assert text.count("12.3456") == text.count("12.6543") == text.count("50%") == 3


def _row(iteration: int, arm: str, target: float | None, seed: int) -> Row:
    audit = 0.1 + 0.01 * seed + 0.2 / iteration
    return Row(
        iteration=iteration, arm=arm, target=target, seed=seed, reward=0.01 * iteration, estimate=0.2, scale=0.5,
        applied=0.101, audit=audit, tracking_error=None if target is None else 0.01,
        audit_error=None if target is None else abs(audit - target) / target, saturated=0, zero=0, empty=0, invalid=0,
        value_loss=0.1, overflow=0.0, observations=9, rollout_seconds=1.0, policy_seconds=0.25, distance_seconds=0.125,
        update_seconds=2.0, audit_seconds=0.1,
    )  # fmt: skip


def _control_rows(*keys: tuple[str, float | None]) -> list[Row]:
    return [_row(i, arm, target, seed) for i in range(1, 13) for arm, target in keys for seed in (0, 2)]


def test_the_figure_shows_audit_belief_target_and_reward() -> None:
    diversity, errors, reward = training_figure(_control_rows(("full", 0.1), ("unconstrained", None))).axes
    audit, belief, free, target = diversity.lines
    assert set(np.atleast_1d(target.get_ydata())) == {0.1}
    np.testing.assert_allclose(audit.get_ydata(), [0.11 + 0.2 / i for i in range(1, 13)])
    np.testing.assert_allclose(belief.get_ydata(), [0.101] * 12)
    assert free.get_label() == "unconstrained, all pairs"
    np.testing.assert_allclose(errors.lines[1].get_ydata(), [0.01] * 12)
    assert errors.get_yscale() == "log"
    assert len(reward.lines) == 2


def test_rewards_below_zero_are_in_sight() -> None:
    rows = [dataclasses.replace(row, reward=-2.0 - row.seed) for row in _control_rows(("full", 0.1))]
    reward = training_figure(rows).axes[-1]
    low, high = reward.get_ylim()
    assert low <= -4.0 <= -2.0 <= high  # the band over seeds 0 and 2


def test_what_is_held_locally_is_off_by_the_mean_over_seeds() -> None:
    rows = [dataclasses.replace(row, local_audit=0.05 + 0.05 * row.seed) for row in _control_rows(("knn:1", 0.1))]
    assert "0.1000, 50.00% off" in str(control_table(rows).caption)  # 0.05 and 0.15


def test_nothing_controlled_has_no_panel_of_errors() -> None:
    assert len(training_figure(_control_rows(("unconstrained", None))).axes) == 2


def test_the_table_has_late_means_over_seeds() -> None:
    rows = _control_rows(("full", 0.1), ("unconstrained", None))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(control_table(rows))
    text = console.export_text()
    late = np.mean([0.2 / i for i in range(3, 13)])  # the last 10 of 12 iterations
    assert f"{0.11 + late:.4f}" in text
    off = np.mean([abs(0.01 * s + late) / 0.1 for s in (0, 2)])
    assert f"{off:.2%}" in text
    assert "1.00%" in text
    assert "…" not in text
    assert text.count("unconstrained") == 1


def test_a_line_says_of_which_iteration_its_diversity_is() -> None:
    def row(iteration: int, snd: float | None) -> Row:
        numbers = {"reward": 0.5, "solved": 0.72, "snd": snd, "graph_snd": snd}
        return dataclasses.replace(_rows()[0], iteration=iteration, **numbers)

    describe = iteration_describer(100)
    assert "SND" not in describe([row(1, None)])
    assert "SND 0.2500  Graph-SND 0.2500  50 frames/s" in describe([row(2, 0.2), row(2, 0.3)])
    assert "Graph-SND 0.2500 (of iteration 2)  50" in describe([row(3, None), row(3, None)])
    found = "reward +0.5000  solved in rollouts 72%  SND 0.4000  Graph-SND 0.4000  50 frames/s"
    assert describe([row(25, 0.4)]) == found


def test_a_line_says_how_far_held_runs_are_off_and_what_went_wrong() -> None:
    rows = [dataclasses.replace(row, zero=1) for row in _control_rows(("full", 0.1), ("unconstrained", None))[:4]]
    errors = np.mean([abs(row.audit - 0.1) / 0.1 for row in rows if row.target is not None])
    text = iteration_describer(96)(rows)
    assert text == f"reward +0.0100  audit error {errors:.1%}  tracking error 1.0%  zero 4  32 frames/s"
