"""The figure of the n = 100 run: two curves, the gap between them, what a call costs, and what was measured."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from graphsnd.plots.style import BLUE, FAINT, GREEN, INK, ORANGE, VERMILLION, group_look, new_figure, style
from paper.experiment import Z95
from paper.shared.drawing import make_log, write_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paper.training import Data

PAPER_SPEED = (9.0, 10.9)


def draw(data: Data) -> Figure:
    """Draw curves, gaps, times and protocols."""
    from matplotlib.ticker import MaxNLocator

    with style():
        figure = new_figure(11.6, 8.2)
        axes = figure.subplots(2, 2)
        _draw_curves(axes[0][0], data)
        _draw_gaps(axes[0][1], data)
        _draw_speeds(axes[1][0], data)
        _draw_protocols(axes[1][1], data)
        for ax in axes[0]:
            ax.set_xlabel("iteration")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure


def _draw_curves(ax: Axes, data: Data) -> None:
    percent = f"{100 * data.probability:g}%"
    for k, (seed, rows) in enumerate(data.by_seed().items()):
        colour, _ = group_look(k)
        x = [row.iteration for row in rows]
        ax.plot(x, [row.snd for row in rows], color=colour, linewidth=1.8, label=f"seed {seed}, all pairs")
        label = f"seed {seed}, {percent} of pairs"
        sampled = [row.graph_snd for row in rows]
        ax.plot(x, sampled, "o", color=colour, markerfacecolor="white", markersize=5, label=label)
    ax.set_ylim(bottom=0)
    ax.set(ylabel="SND  [action units]", title=f"a  Diversity of {data.task['agents']} agents in training")
    ax.legend(loc="lower right")
    ax.grid()


def _draw_gaps(ax: Axes, data: Data) -> None:
    """Draw the gaps with the band in which 95% of them should lie, from the exact error at both ends."""
    ends = [0, max(end.iteration for end in data.ends)]
    errors = [statistics.fmean(end.expected for end in data.ends if end.iteration == k) for k in ends]
    reach = [100 * Z95 * error for error in errors]
    ax.fill_between(ends, [-r for r in reach], reach, color=FAINT, label="95% of draws, exact", linewidth=0)
    for k, (seed, rows) in enumerate(data.by_seed().items()):
        colour, marker = group_look(k)
        kept = [row for row in rows if row.graph_snd]
        gaps = [100 * row.gap for row in kept]
        ax.plot([row.iteration for row in kept], gaps, marker, color=colour, markersize=5, label=f"seed {seed}")
    ax.axhline(0, color=INK, linewidth=1)
    largest = max(map(abs, ax.get_ylim()))
    ax.set(ylim=(-1.05 * largest, 1.45 * largest), ylabel="Graph-SND / SND - 1  [%]", title="b  Gap between the curves")
    ax.legend(loc="upper left", ncols=4, fontsize=8.5, columnspacing=1.0, handletextpad=0.3)
    ax.grid(axis="y")


def _draw_speeds(ax: Axes, data: Data) -> None:
    """Draw every measurement as a point; they are spread sideways so that all are seen."""
    logged = [row.snd_seconds / row.graph_snd_seconds for row in data.log]
    columns = (
        ("Python loop,\nlast teams, CPU", data.speedups("loop"), ORANGE, "s"),
        ("graphsnd,\nlast teams, CPU", data.speedups("fused"), GREEN, "^"),
        (f"graphsnd, in training,\n{data.machine}", logged, BLUE, "o"),
    )
    ax.axhspan(*PAPER_SPEED, color=FAINT)
    for place, (_, values, colour, marker) in enumerate(columns):
        spread = [place + 0.5 * ((k + 0.5) / len(values) - 0.5) for k in range(len(values))]
        ax.plot(spread, values, marker, color=colour, markersize=4.5, alpha=0.75)
    ax.axhline(1, color=INK, linewidth=1)
    write_at(ax, 1.0, "no gain", left=True)
    write_at(ax, PAPER_SPEED[1], "paper, all measurements")
    make_log(ax)
    ax.set_xticks(range(len(columns)), [name for name, *_ in columns])
    ax.set(xlim=(-0.5, len(columns) - 0.5), title="c  Speed-up of one call")
    ax.set_ylabel("all pairs / graph, drawing included  [times]")
    ax.grid(axis="y")


def _draw_protocols(ax: Axes, data: Data) -> None:
    """Draw SND as equation (1) has it, and with each policy on its own observations."""
    ends = [0, max(end.iteration for end in data.ends)]
    groups = [[end for end in data.ends if end.iteration == iteration] for iteration in ends]
    together, alone = ([[getattr(end, name) for end in group] for group in groups] for name in ("snd", "own_snd"))
    looks = (
        (together, "all policies on the observations of all (equation 1)", BLUE, "o", -0.176),
        (alone, "each policy on its own observations (the paper's log)", VERMILLION, "s", 0.176),
    )
    for columns, label, colour, marker, shift in looks:
        for place, values in enumerate(columns):
            x, mean = place + shift, statistics.fmean(values)
            ax.bar(x, mean, width=0.3, color=colour, alpha=0.3)
            ax.plot([x] * len(values), values, marker, color=colour, markersize=6, label=None if place else label)
            at = (x, max(values))
            ax.annotate(f"{mean:.3g}", at, (0, 5), textcoords="offset points", ha="center", va="bottom", fontsize=9)
    ax.set_xticks((0, 1), ("before training", f"after {ends[-1]} iterations"))
    ax.set(xlim=(-0.5, 1.5), ylim=(0, 1.3 * max(max(end.snd, end.own_snd) for end in data.ends)))
    ax.set(ylabel="mean distance over all pairs  [action units]", title="d  What is measured: seeds and their mean")
    ax.legend(loc="upper left")
    ax.grid(axis="y")
