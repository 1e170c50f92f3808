from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from graphsnd.plots.style import save_png
from graphsnd.plots.training import training_figure
from tests.plots.training_rows import control_rows, training_rows


def test_curves_show_mean_and_range_over_seeds(tmp_path: Path) -> None:
    figure = training_figure(training_rows())
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
    rows = [row for row in training_rows(solved=None) if row.snd is None]
    assert len(training_figure(rows).axes) == 1


def test_the_figure_shows_audit_belief_target_and_reward() -> None:
    diversity, errors, reward = training_figure(control_rows(("full", 0.1), ("unconstrained", None))).axes
    audit, belief, free, target = diversity.lines
    assert set(np.atleast_1d(target.get_ydata())) == {0.1}
    np.testing.assert_allclose(audit.get_ydata(), [0.11 + 0.2 / i for i in range(1, 13)])
    np.testing.assert_allclose(belief.get_ydata(), [0.101] * 12)
    assert free.get_label() == "unconstrained, all pairs"
    np.testing.assert_allclose(errors.lines[1].get_ydata(), [0.01] * 12)
    assert errors.get_yscale() == "log"
    assert len(reward.lines) == 2


def test_rewards_below_zero_are_in_sight() -> None:
    rows = [dataclasses.replace(row, reward=-2.0 - row.seed) for row in control_rows(("full", 0.1))]
    reward = training_figure(rows).axes[-1]
    low, high = reward.get_ylim()
    assert low <= -4.0 <= -2.0 <= high  # the band over seeds 0 and 2


def test_nothing_controlled_has_no_panel_of_errors() -> None:
    assert len(training_figure(control_rows(("unconstrained", None))).axes) == 2
