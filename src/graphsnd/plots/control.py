"""How control went: target, estimate, audit and reward over iterations, and a table of the late ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean
from typing import TYPE_CHECKING

import numpy as np

from graphsnd.control import audit_error, tracking_error
from graphsnd.plots.style import INK, group_look, new_figure, style
from graphsnd.training.dico import ControlRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

Key = tuple[str, float | None]
Curve = Callable[[ControlRow], float]


def arms(rows: Sequence[ControlRow]) -> list[Key]:
    """Arms and targets, in the order of the rows."""
    return list(dict.fromkeys((row.arm, row.target) for row in rows))


def control_figure(rows: Sequence[ControlRow]) -> Figure:
    """What is asked, what the controller believes, what is so, and what it earns: means and ranges over seeds.

    The controller's belief is its estimate times the scale, which says little about diversity (see
    :func:`~graphsnd.control.tracking_error`); the audit is over all pairs and was not fed back.

    Args:
        rows: Of one training, as :func:`~graphsnd.training.dico.read_control_rows` gives them.
    """
    held = any(row.target is not None for row in rows)
    with style():
        figure = new_figure(13.6 if held else 9.2, 3.9)
        axes = figure.subplots(1, 2 + held)
        _targets(axes[0], rows)
        for place, key in enumerate(arms(rows)):
            mine = [row for row in rows if (row.arm, row.target) == key]
            label = key[0] if key[1] is None else f"{key[0]}, target {key[1]:g}"
            _band(axes[0], mine, lambda row: row.audit, place, label)
            _band(axes[-1], mine, lambda row: row.reward, place, label)
            if key[1] is not None:
                _dashes(axes[0], mine, lambda row: row.applied, place)
                _band(axes[1], mine, lambda row: row.audit_error or 0.0, place, label)
                _dashes(axes[1], mine, lambda row: row.tracking_error or 0.0, place)
        _frame(axes[0], "Diversity", "SND over all pairs")
        _frame(axes[-1], "Reward", "mean reward of a step")
        if held:
            _frame(axes[1], "Off target", "relative error")
            _percent(axes[1])
        _legend(figure, axes[0], rows)
        return figure


def _targets(ax: Axes, rows: Sequence[ControlRow]) -> None:
    for target in sorted({row.target for row in rows if row.target is not None}):
        ax.axhline(target, color=INK, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)


def _band(ax: Axes, rows: Sequence[ControlRow], value: Curve, place: int, label: str) -> None:
    colour, marker = group_look(place)
    at = sorted({row.iteration for row in rows})
    values = [np.asarray([value(row) for row in rows if row.iteration == i]) for i in at]
    ax.fill_between(at, [v.min() for v in values], [v.max() for v in values], color=colour, alpha=0.15, linewidth=0)
    # Markers at different places, because arms that agree lie on top of each other.
    every = max(1, len(at) // 8)
    ax.plot(
        at, [v.mean() for v in values], color=colour, label=label, linewidth=1.5, marker=marker, markersize=4.5,
        markevery=(place * every // 3 % every, every),
    )  # fmt: skip


def _dashes(ax: Axes, rows: Sequence[ControlRow], value: Curve, place: int) -> None:
    at = sorted({row.iteration for row in rows})
    means = [mean(value(row) for row in rows if row.iteration == i) for i in at]
    ax.plot(at, means, color=group_look(place)[0], linewidth=1.1, linestyle=(0, (4, 2)))


def _percent(ax: Axes) -> None:
    """A logarithmic axis in percent; errors below a thousandth are all the same to the eye."""
    from matplotlib.ticker import FuncFormatter

    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-3)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%"))


def _frame(ax: Axes, title: str, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_title(title)
    ax.set_xlabel("iteration")
    ax.set_ylabel(label)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid()


def _legend(figure: Figure, ax: Axes, rows: Sequence[ControlRow]) -> None:
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    if any(row.target is not None for row in rows):
        handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle=(0, (1, 2))))
        handles.append(Line2D([], [], color=INK, linewidth=1.1, linestyle=(0, (4, 2))))
        labels += ["target", "estimate x scale, what the controller believes"]
    seeds = len({row.seed for row in rows})
    title = f"mean and range over {seeds} seeds" if seeds > 1 else None
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), title=title)


def control_table(rows: Sequence[ControlRow], *, last: int | None = None) -> Table:
    """Means over seeds of the late iterations, an arm and target a line.

    Args:
        rows: Of one training.
        last: Iterations that count; the last 50, or 10 where there are fewer than 100, or all when there are fewer.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    total = max(row.iteration for row in rows)
    late = last or min(total, 50 if total >= 100 else 10)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    table.caption = f"last {late} of {total} iterations; seconds of their estimates"
    for name in ("arm", "target", "audit", "off by", "track", "reward", "policy s", "pairs s"):
        table.add_column(name, justify="left" if name == "arm" else "right", no_wrap=True)
    for key in arms(rows):
        mine = [row for row in rows if (row.arm, row.target) == key]
        table.add_row(key[0], *_cells(mine, key[1], late))
    return table


def _cells(rows: Sequence[ControlRow], target: float | None, late: int) -> tuple[str, ...]:
    seeds = [[row for row in rows if row.seed == seed] for seed in dict.fromkeys(row.seed for row in rows)]
    end = [row for run in seeds for row in run[-late:]]
    errors = ("-", "-")
    if target is not None:
        audits = mean(audit_error([row.audit for row in run], target, last=late) for run in seeds)
        tracked = mean(tracking_error([row.applied for row in run], target, last=late) for run in seeds)
        errors = (f"{audits:.2%}", f"{tracked:.2%}")
    costs = tuple(f"{mean(getattr(row, name) for row in end):.2f}" for name in ("policy_seconds", "distance_seconds"))
    said = "-" if target is None else f"{target:g}"
    return (said, f"{mean(row.audit for row in end):.4f}", *errors, f"{mean(row.reward for row in end):.4f}", *costs)
