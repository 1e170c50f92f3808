"""The picture of the simple_spread panel: errors, bias and speed of three sparse graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, GREEN, INK, ORANGE, VERMILLION, new_figure, style
from paper.mpe.numbers import select
from paper.mpe.panel import ESTIMATORS, THRESHOLD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Regime and protocol, what they are called, colour, marker, and where they stand beside each other.
TEAMS = (
    ("trained", "rollout", "trained, rollouts", BLUE, "o", -0.27),
    ("trained", "noise", "trained, one noise vector", VERMILLION, "s", -0.09),
    ("random-init", "rollout", "untrained, rollouts", GREEN, "^", 0.09),
    ("random-init", "noise", "untrained, one noise vector", ORANGE, "D", 0.27),
)
# The paper's table: share beyond 0.05 and speed-up for trained policies, in the order of the estimators.
PAPER_SHARES, PAPER_SPEED, PAPER_BIAS = (0.6252, 0.3757, 0.2302), (4.87, 2.86, 1.97), 2.917e-3
# Colours are those of the observations, as in the other panels.
SPEEDS = (
    ("loop", "rollout", "Python loop, rollouts", BLUE, BLUE, "s", -0.24),
    ("loop", "noise", "Python loop, one noise vector", VERMILLION, VERMILLION, "s", -0.08),
    ("fused", "rollout", "graphsnd, rollouts", BLUE, "white", "^", 0.08),
    ("fused", "noise", "graphsnd, one noise vector", VERMILLION, "white", "^", 0.24),
)
LABELS = [one.label for one in ESTIMATORS]


def mpe_figure(data: dict[str, Any]) -> Figure:
    """Share of draws beyond 0.05, bias, and speed-up against all pairs.

    Args:
        data: Of the experiment.
    """
    with style():
        figure = new_figure(14.2, 4.9)
        axes = figure.subplots(1, 3)
        _shares(axes[0], data["panel"])
        _biases(axes[1], data["panel"])
        _speeds(axes[2], data["times"])
        for ax in axes:
            ax.set_xticks(range(len(LABELS)), LABELS)
            ax.set_xlim(-0.5, len(LABELS) - 0.5)
            ax.grid(axis="y")
        handles, labels = axes[0].get_legend_handles_labels()
        speed_handles, speed_labels = axes[2].get_legend_handles_labels()
        seeds = sorted({row["seed"] for row in data["panel"]})
        drawn = f"{data['panel'][0]['draws']:,} draws for each of {len(seeds)} seed{'s' * (len(seeds) > 1)}"
        figure.legend(handles, labels, ncols=5, loc="outside upper left", title=f"a, b   {drawn}", alignment="left")
        figure.legend(speed_handles, speed_labels, ncols=5, loc="outside lower right", title="c", alignment="left")
        return figure


def _shares(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for regime, protocol, label, colour, marker, shift in TEAMS:
        for place, one in enumerate(ESTIMATORS):
            values = [row["violations"] for row in select(rows, regime, protocol, one.name)]
            mean = sum(values) / len(values)
            x = place + shift
            ax.plot([x] * len(values), values, marker, color=colour, markersize=4, alpha=0.45, markeredgewidth=0)
            ax.plot(x, mean, marker, color=colour, markersize=7.5, label=label if place == 0 else None)
    _paper(ax, PAPER_SHARES, "paper's table, trained")
    ax.set_ylim(-0.03, 1)
    ax.set_ylabel(f"share of draws off by more than {THRESHOLD:g}")
    ax.set_title("a  Errors: seeds and their mean")


def _biases(ax: Axes, rows: list[dict[str, Any]]) -> None:
    for regime, protocol, _, colour, marker, shift in TEAMS:
        for place, one in enumerate(ESTIMATORS):
            found = select(rows, regime, protocol, one.name)
            for k, row in enumerate(found):
                x = place + shift + 0.05 * (k - (len(found) - 1) / 2)
                ax.errorbar(
                    x, 1000 * row["bias"], 1960 * row["bias_error"], color=colour, marker=marker, markersize=4.5,
                    elinewidth=1.2,
                )  # fmt: skip
    ax.axhline(0, color=INK, linewidth=1)
    for sign in (1, -1):
        ax.axhline(sign * 1000 * PAPER_BIAS, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    at = (0.99, -1000 * PAPER_BIAS)
    ax.annotate("largest of the paper", at, xycoords=("axes fraction", "data"), ha="right", va="top", fontsize=8.5)
    ax.set_ylabel("bias, 95% interval, each seed  [1/1000]")
    ax.set_title("b  Bias: mean of the estimates less SND")


def _speeds(ax: Axes, times: dict[str, Any]) -> None:
    for way, protocol, label, colour, face, marker, shift in SPEEDS:
        for place, one in enumerate(ESTIMATORS):
            found = times[protocol][f"{way}, {one.name}"]["speedup"]
            ends = [[max(0.0, found["value"] - found["low"])], [max(0.0, found["high"] - found["value"])]]
            ax.errorbar(
                place + shift, found["value"], ends, color=colour, marker=marker, markersize=6.5, capsize=3,
                markerfacecolor=face, linestyle="", label=label if place == 0 else None,
            )  # fmt: skip
    _paper(ax, PAPER_SPEED, "paper's table")
    ax.axhline(1, color=INK, linewidth=1)
    ax.annotate("no gain", (0.99, 1), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8.5)
    ax.set_yscale("log")
    ax.relim()
    ax.autoscale_view()
    low, high = ax.get_ylim()
    ticks = [value for value in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= value <= high]
    ax.set_yticks(ticks, [f"{value:g}" for value in ticks])
    ax.minorticks_off()
    ax.set_ylabel("all pairs / graph, drawing included  [times]")
    ax.set_title("c  Speed-up of one call")


def _paper(ax: Axes, values: tuple[float, ...], label: str) -> None:
    for place, value in enumerate(values):
        name = label if place == 0 else "_"  # matplotlib leaves those out of the legend
        ax.hlines(value, place - 0.4, place + 0.4, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=name)
