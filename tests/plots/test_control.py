from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from rich.console import Console

from graphsnd.plots import save_png
from graphsnd.plots.control import arms, control_figure, control_table
from graphsnd.training.dico import ControlRow


def _row(iteration: int, arm: str, target: float | None, seed: int) -> ControlRow:
    audit = 0.1 + 0.01 * seed + 0.2 / iteration
    return ControlRow(
        iteration=iteration, arm=arm, target=target, seed=seed, reward=0.01 * iteration, estimate=0.2, scale=0.5,
        applied=0.101, audit=audit, tracking_error=None if target is None else 0.01,
        audit_error=None if target is None else abs(audit - target) / target, saturated=0, zero=0, empty=0, invalid=0,
        value_loss=0.1, overflow=0.0, observations=9, rollout_seconds=1.0, policy_seconds=0.25, distance_seconds=0.125,
        update_seconds=2.0, audit_seconds=0.1,
    )  # fmt: skip


def _rows(*keys: tuple[str, float | None]) -> list[ControlRow]:
    return [_row(i, arm, target, seed) for i in range(1, 13) for arm, target in keys for seed in (0, 2)]


def test_the_figure_shows_audit_belief_target_and_reward(tmp_path: Path) -> None:
    figure = control_figure(_rows(("full", 0.1), ("unconstrained", None)))
    diversity, errors, reward = figure.axes
    target, audit, belief, free = diversity.lines
    assert set(np.atleast_1d(target.get_ydata())) == {0.1}
    np.testing.assert_allclose(audit.get_ydata(), [0.11 + 0.2 / i for i in range(1, 13)])
    np.testing.assert_allclose(belief.get_ydata(), [0.101] * 12)
    assert free.get_label() == "unconstrained"
    np.testing.assert_allclose(errors.lines[1].get_ydata(), [0.01] * 12)
    assert errors.get_yscale() == "log"
    assert len(reward.lines) == 2
    for ax in figure.axes:
        assert ax.get_xlabel() == "iteration"
        assert ax.get_ylabel()
    assert save_png(figure, tmp_path / "control.png").stat().st_size > 10_000


def test_nothing_controlled_has_no_panel_of_errors() -> None:
    assert len(control_figure(_rows(("unconstrained", None))).axes) == 2


def test_the_table_has_late_means_over_seeds() -> None:
    rows = _rows(("full", 0.1), ("unconstrained", None))
    assert arms(rows) == [("full", 0.1), ("unconstrained", None)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(control_table(rows, last=2))
    text = console.export_text()
    late = 0.11 + (0.2 / 11 + 0.2 / 12) / 2
    assert f"{late:.4f}" in text
    off = np.mean([abs(0.1 + 0.01 * s + (0.2 / 11 + 0.2 / 12) / 2 - 0.1) / 0.1 for s in (0, 2)])
    assert f"{off:.2%}" in text
    assert "1.00%" in text
    assert "…" not in text
    assert text.count("unconstrained") == 1
