"""How training went: curves over iterations, and a table of where they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphsnd.plots.style import BLUE, GREEN, ORANGE, VERMILLION, new_figure, style
from graphsnd.training import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from rich.table import Table


def curves_figure(rows: Sequence[Row], *, unit: str | None = None) -> Figure:
    """Reward, and SND with Graph-SND, over iterations: the mean over seeds and their range.

    Args:
        rows: Of one training, as :func:`~graphsnd.training.read_rows` gives them.
        unit: Of the distances, such as ``"action units"``.
    """
    runs = len({row.seed for row in rows})
    solved = any(row.solved is not None for row in rows)
    measured = any(row.snd is not None for row in rows)
    with style():
        panels = 1 + solved + measured
        figure = new_figure(4.2 * panels + 0.4, 3.5)
        axes = iter(figure.subplots(1, panels, squeeze=False)[0])
        ax = next(axes)
        _band(ax, rows, "reward", BLUE, "reward")
        _frame(ax, "Reward", "mean reward of a step")
        if solved:
            ax = next(axes)
            _band(ax, rows, "solved", GREEN, "solved")
            _frame(ax, "Solved", "share of agents, when rollouts end")
            ax.set_ylim(-0.02, 1.02)
        if measured:
            ax = next(axes)
            _band(ax, rows, "snd", VERMILLION, "SND, all pairs", marker="o")
            _band(ax, rows, "graph_snd", ORANGE, "Graph-SND, sampled pairs", marker="s", dashed=True)
            _frame(ax, "Diversity", "SND" + (f"  [{unit}]" if unit else ""))
            ax.set_ylim(bottom=0)
            ax.legend(loc="best")
        if runs > 1:
            figure.supxlabel(f"mean and range over {runs} seeds", fontsize=9, x=0.01, ha="left")
        return figure


def _band(
    ax: Axes, rows: Sequence[Row], name: str, colour: str, label: str, *, marker: str = "", dashed: bool = False
) -> None:
    at, low, mean, high = _over_seeds(rows, name)
    few = len(at) <= 60
    ax.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(
        at, mean, color=colour, label=label, linewidth=1.6, linestyle=(0, (4, 2)) if dashed else "-",
        marker=marker if few else "", markersize=4,
    )  # fmt: skip


def _over_seeds(rows: Sequence[Row], name: str) -> tuple[NDArray[np.float64], ...]:
    """Iterations where something was measured, and its least, mean and largest value over seeds."""
    found: dict[int, list[float]] = {}
    for row in rows:
        value = getattr(row, name)
        if value is not None:
            found.setdefault(row.iteration, []).append(value)
    at = sorted(found)
    values = [np.asarray(found[iteration]) for iteration in at]
    return tuple(np.asarray(part) for part in (at, *([f(v) for v in values] for f in (np.min, np.mean, np.max))))


def _frame(ax: Axes, title: str, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_title(title)
    ax.set_xlabel("iteration")
    ax.set_ylabel(label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid()


def training_table(rows: Sequence[Row]) -> Table:
    """First and last reward, share of solved agents, and diversity where it was last measured, for each seed."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("seed", "iterations", "reward, first", "reward, last", "solved", "SND", "Graph-SND"):
        table.add_column(name, justify="right", no_wrap=True)
    for seed in sorted({row.seed for row in rows}):
        mine = [row for row in rows if row.seed == seed]
        first, last = mine[0], mine[-1]
        solved = "-" if last.solved is None else f"{last.solved:.0%}"
        rewards = (f"{first.reward:+.4f}", f"{last.reward:+.4f}")
        table.add_row(str(seed), str(last.iteration), *rewards, solved, _last(mine, "snd"), _last(mine, "graph_snd"))
    return table


def _last(rows: Sequence[Row], name: str) -> str:
    found = [getattr(row, name) for row in rows if getattr(row, name) is not None]
    return f"{found[-1]:.4f}" if found else "-"
