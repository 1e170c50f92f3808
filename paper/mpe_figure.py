"""The figure of the simple_spread panel: errors, bias and speed of three sparse graphs."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from graphsnd.plots.style import BLUE, GREEN, INK, ORANGE, VERMILLION, styled_figure
from paper.experiment import Z95
from paper.mpe_panel import DESIGNS, THRESHOLD
from paper.shared.drawing import error_bars, make_log, write_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paper.mpe import Data

# Regime and protocol, what they are called, colour, marker, and where they stand beside each other.
TEAMS = (
    ("trained", "rollout", "trained, rollouts", BLUE, "o", -0.27),
    ("trained", "noise", "trained, one noise vector", VERMILLION, "s", -0.09),
    ("random-init", "rollout", "untrained, rollouts", GREEN, "^", 0.09),
    ("random-init", "noise", "untrained, one noise vector", ORANGE, "D", 0.27),
)
# The paper's table: share beyond 0.05 and speed-up for trained policies, in the order of the designs.
PAPER_SHARES, PAPER_SPEED, PAPER_BIAS = (0.6252, 0.3757, 0.2302), (4.87, 2.86, 1.97), 2.917e-3
# Colours are those of the observations, as in the other panels.
SPEEDS = (
    ("loop", "rollout", "Python loop, rollouts", BLUE, BLUE, "s", -0.24),
    ("loop", "noise", "Python loop, one noise vector", VERMILLION, VERMILLION, "s", -0.08),
    ("fused", "rollout", "graphsnd, rollouts", BLUE, "white", "^", 0.08),
    ("fused", "noise", "graphsnd, one noise vector", VERMILLION, "white", "^", 0.24),
)


def draw(data: Data) -> Figure:
    """Draw the share of draws beyond 0.05, the bias, and the speed-up against all pairs."""
    with styled_figure(14.2, 4.9) as figure:
        axes = figure.subplots(1, 3)
        _draw_shares(axes[0], data)
        _draw_biases(axes[1], data)
        _draw_speeds(axes[2], data)
        for ax in axes:
            ax.set_xticks(range(len(DESIGNS)), map(str, DESIGNS))
            ax.set_xlim(-0.5, len(DESIGNS) - 0.5)
            ax.grid(axis="y")
        seeds = len({row.seed for row in data.panel})
        drawn = f"a, b   {data.panel[0].draws:,} draws for each of {seeds} seed{'s' * (seeds > 1)}"
        places = ((axes[0], "outside upper left", drawn), (axes[2], "outside lower right", "c"))
        for ax, place, title in places:
            figure.legend(*ax.get_legend_handles_labels(), ncols=5, loc=place, title=title, alignment="left")
        return figure


def _draw_shares(ax: Axes, data: Data) -> None:
    for regime, protocol, label, colour, marker, shift in TEAMS:
        for place, design in enumerate(DESIGNS):
            values, x = [row.violations for row in data.select(regime, protocol, design)], place + shift
            ax.plot([x] * len(values), values, marker, color=colour, markersize=4, alpha=0.45, markeredgewidth=0)
            named = label if place == 0 else None
            ax.plot(x, statistics.fmean(values), marker, color=colour, markersize=7.5, label=named)
    _draw_paper(ax, PAPER_SHARES, "paper's table, trained")
    ax.set(ylim=(-0.03, 1), ylabel=f"share of draws off by more than {THRESHOLD:g}")
    ax.set_title("a  Errors: seeds and their mean")


def _draw_biases(ax: Axes, data: Data) -> None:
    for regime, protocol, _, colour, marker, shift in TEAMS:
        for place, design in enumerate(DESIGNS):
            rows = data.select(regime, protocol, design)
            x = [place + shift + 0.05 * (k - (len(rows) - 1) / 2) for k in range(len(rows))]
            half = [1000 * Z95 * row.bias_error for row in rows]
            ax.errorbar(x, [1000 * row.bias for row in rows], half, fmt=marker, color=colour, markersize=4.5)
    ax.axhline(0, color=INK, linewidth=1)
    for sign in (1, -1):
        ax.axhline(sign * 1000 * PAPER_BIAS, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    write_at(ax, -1000 * PAPER_BIAS, "largest of the paper", above=False)
    ax.set(ylabel="bias, 95% interval, each seed  [1/1000]", title="b  Bias: mean of the estimates less SND")


def _draw_speeds(ax: Axes, data: Data) -> None:
    for way, protocol, label, colour, face, marker, shift in SPEEDS:
        times = data.times.rollout if protocol == "rollout" else data.times.noise
        x = [place + shift for place in range(len(DESIGNS))]
        look = {"color": colour, "marker": marker, "markersize": 6.5, "markerfacecolor": face, "capsize": 3}
        error_bars(ax, x, [times[f"{way}, {design}"].speedup for design in DESIGNS], **look, linestyle="", label=label)
    _draw_paper(ax, PAPER_SPEED, "paper's table")
    ax.axhline(1, color=INK, linewidth=1)
    write_at(ax, 1, "no gain")
    make_log(ax)
    ax.set(ylabel="all pairs / graph, drawing included  [times]", title="c  Speed-up of one call")


def _draw_paper(ax: Axes, values: tuple[float, ...], label: str) -> None:
    x = range(len(values))
    dashed = (0, (4, 3))
    ax.hlines(
        values, [k - 0.4 for k in x], [k + 0.4 for k in x], color=INK, linewidth=1.2, linestyle=dashed, label=label
    )
