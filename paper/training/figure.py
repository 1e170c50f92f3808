"""The picture of the n = 100 run: two curves, the gap between them, what a call costs, and what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, FAINT, GREEN, INK, ORANGE, VERMILLION, group_look, new_figure, style
from paper.training.numbers import by_seed, ratios

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER_SPEED = (9.0, 10.9)


def training_figure(data: dict[str, Any]) -> Figure:
    """Curves, gaps, times and protocols.

    Args:
        data: Of the experiment.
    """
    from matplotlib.ticker import MaxNLocator

    with style():
        figure = new_figure(11.6, 8.2)
        axes = figure.subplots(2, 2)
        _curves(axes[0][0], data)
        _gaps(axes[0][1], data)
        _speeds(axes[1][0], data)
        _protocols(axes[1][1], data)
        for ax in axes[0]:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure


def _curves(ax: Axes, data: dict[str, Any]) -> None:
    percent = f"{100 * data['probability']:g}%"
    for k, (seed, rows) in enumerate(by_seed(data["log"]).items()):
        colour, _ = group_look(k)
        x = [row["iteration"] for row in rows]
        ax.plot(x, [row["snd"] for row in rows], color=colour, linewidth=1.8, label=f"seed {seed}, all pairs")
        some = [row["graph_snd"] for row in rows]
        ax.plot(
            x, some, "o", color=colour, markerfacecolor="white", markersize=5, label=f"seed {seed}, {percent} of pairs"
        )
    ax.set_ylim(bottom=0)
    ax.set_xlabel("iteration")
    ax.set_ylabel("SND  [action units]")
    agents = data["task"]["agents"]
    ax.set_title(f"a  Diversity of {agents} agents in training")
    ax.legend(loc="lower right")
    ax.grid()


def _gaps(ax: Axes, data: dict[str, Any]) -> None:
    """With the band in which 95% of the gaps should lie, from the exact error at both ends."""
    first, last = (
        100 * sum(end["expected"] for end in data["ends"] if (end["iteration"] == 0) == start)
        / sum((end["iteration"] == 0) == start for end in data["ends"])
        for start in (True, False)
    )  # fmt: skip
    ends = [0, max(end["iteration"] for end in data["ends"])]
    reach = [1.96 * first, 1.96 * last]
    label = "95% of draws, exact"
    ax.fill_between(ends, [-r for r in reach], reach, color=FAINT, label=label, linewidth=0)
    for k, (seed, rows) in enumerate(by_seed(data["log"]).items()):
        colour, marker = group_look(k)
        kept = [row for row in rows if row["graph_snd"]]
        gaps = [100 * (row["graph_snd"] / row["snd"] - 1) for row in kept]
        ax.plot([row["iteration"] for row in kept], gaps, marker, color=colour, markersize=5, label=f"seed {seed}")
    ax.axhline(0, color=INK, linewidth=1)
    largest = max(abs(value) for value in (*ax.get_ylim(),))
    ax.set_ylim(-1.05 * largest, 1.45 * largest)
    ax.set_xlabel("iteration")
    ax.set_ylabel("Graph-SND / SND - 1  [%]")
    ax.set_title("b  Gap between the curves")
    ax.legend(loc="upper left", ncols=4, fontsize=8.5, columnspacing=1.0, handletextpad=0.3)
    ax.grid(axis="y")


def _speeds(ax: Axes, data: dict[str, Any]) -> None:
    """Every measurement is a point; they are spread sideways so that all are seen."""
    logged = [row["snd_seconds"] / row["graph_snd_seconds"] for row in data["log"]]
    ways = [(way, [r for times in data["times"] for r in ratios(times["calls"], way)]) for way in ("loop", "fused")]
    columns = [
        ("Python loop,\nlast teams, CPU", ways[0][1], ORANGE, "s"),
        ("graphsnd,\nlast teams, CPU", ways[1][1], GREEN, "^"),
        (f"graphsnd, in training,\n{data['machine']}", logged, BLUE, "o"),
    ]
    ax.axhspan(*PAPER_SPEED, color=FAINT)
    for place, (_, values, colour, marker) in enumerate(columns):
        spread = [place + 0.5 * ((k + 0.5) / len(values) - 0.5) for k in range(len(values))]
        ax.plot(spread, values, marker, color=colour, markersize=4.5, alpha=0.75)
    ax.axhline(1, color=INK, linewidth=1)
    for text, side, y in (("no gain", "left", 1.0), ("paper, all measurements", "right", PAPER_SPEED[1])):
        at = (0.01 if side == "left" else 0.99, y)
        ax.annotate(text, at, xycoords=("axes fraction", "data"), ha=side, va="bottom", fontsize=8.5)
    ax.set_yscale("log")
    ax.relim()
    ax.autoscale_view()
    low, high = ax.get_ylim()
    ticks = [value for value in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= value <= high]
    ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
    ax.minorticks_off()
    ax.set_xticks(range(len(columns)), [name for name, *_ in columns])
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylabel("all pairs / graph, drawing included  [times]")
    ax.set_title("c  Speed-up of one call")
    ax.grid(axis="y")


def _protocols(ax: Axes, data: dict[str, Any]) -> None:
    """SND as equation (1) has it, and with each policy on its own observations."""
    looks = (
        ("snd", "all policies on the observations of all (equation 1)", BLUE, "o", -0.08),
        ("own_snd", "each policy on its own observations (the paper's log)", VERMILLION, "s", 0.08),
    )
    last = max(end["iteration"] for end in data["ends"])
    for key, label, colour, marker, shift in looks:
        for place, iteration in enumerate((0, last)):
            values = [end[key] for end in data["ends"] if end["iteration"] == iteration]
            mean = sum(values) / len(values)
            name = label if place == 0 else None
            ax.bar(place + 2.2 * shift, mean, width=0.3, color=colour, alpha=0.3)
            ax.plot([place + 2.2 * shift] * len(values), values, marker, color=colour, markersize=6, label=name)
            ax.annotate(
                f"{mean:.3g}", (place + 2.2 * shift, max(values)), ha="center", va="bottom", fontsize=9,
                xytext=(0, 5), textcoords="offset points",
            )  # fmt: skip
    ax.set_xticks((0, 1), ("before training", f"after {last} iterations"))
    ax.set_xlim(-0.5, 1.5)
    ax.set_ylim(0, 1.3 * max(end[key] for end in data["ends"] for key in ("snd", "own_snd")))
    ax.set_ylabel("mean distance over all pairs  [action units]")
    ax.set_title("d  What is measured: seeds and their mean")
    ax.legend(loc="upper left")
    ax.grid(axis="y")
