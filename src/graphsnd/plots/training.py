"""Curves of training over iterations, with and without a controller."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from graphsnd.plots.intervals import over_time
from graphsnd.plots.style import INK, styled_figure
from graphsnd.plots.training_tables import Row, by_arm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELD = {"applied", "audit_error", "tracking_error"}  # columns that mean something where a target is held
# For each title: label of the axis, and name of each column that is drawn.
PANELS: dict[str, tuple[str, dict[str, str]]] = {
    "Diversity": ("SND", {"snd": "all pairs", "graph_snd": "sampled", "audit": "all pairs", "applied": "belief"}),
    "Off target": ("relative error", {"audit_error": "all pairs", "tracking_error": "belief"}),
    "Solved in rollouts": ("share of agents, when rollouts end", {"solved": ""}),
    "Reward": ("mean reward of a step", {"reward": ""}),
}


def training_figure(rows: Sequence[Row]) -> Figure:
    """Draw diversity, reward and other logged columns over iterations: means and ranges over seeds.

    "Belief" is a controller's estimate times the scale, which says little about diversity (see
    :func:`~graphsnd.control.tracking_error`). "All pairs" is SND, which the controller never sees.

    Args:
        rows: Rows of one training, as :func:`~graphsnd.rl.log.read_rows` gives them.
    """
    drawn = {title: named for title, (_, columns) in PANELS.items() if (named := _curves(rows, columns))}
    seeds = len({row.seed for row in rows})
    with styled_figure(4.6 * len(drawn), 3.9) as figure:
        for ax, (title, named) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn.items(), strict=True):
            if title == "Off target":  # errors below a thousandth are all the same to the eye
                ax.set(yscale="log", ylim=(1e-3, None))
                ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
            steps = {name: list(values) for name, values in named.items()}
            bands = {name: np.array([*values.values()]).T for name, values in named.items()}
            over_time(steps, bands, ax=ax, summary=tuple, ylabel=PANELS[title][0], title=title)
            if title == "Diversity":
                ax.set_ylim(0)
                for target in {row.target for row in rows} - {None}:
                    ax.axhline(target, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        if seeds > 1:
            figure.supxlabel(f"mean and range over {seeds} seeds", fontsize=9, x=0.01, ha="left")
        return figure


def _curves(rows: Sequence[Row], columns: dict[str, str]) -> dict[str, dict[int, tuple[float, float, float]]]:
    """Return mean, minimum and maximum over seeds by iteration, of the columns that were logged, for each arm."""
    curves = {}
    for (arm, target), mine in by_arm(rows).items():
        for column, words in columns.items():
            values: dict[int, list[float]] = {}
            for row in mine:
                value = getattr(row, column)
                if value is not None and not (target is None and column in HELD):
                    values.setdefault(row.iteration, []).append(value)
            name = ", ".join(filter(None, (arm if target is None else f"{arm} {target:g}", words)))
            if values:
                curves[name] = {at: (fmean(v), min(v), max(v)) for at, v in sorted(values.items())}
    return curves
