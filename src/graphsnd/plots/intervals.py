"""Estimates with their intervals, against the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.study import GraphResult, Study
from graphsnd.plots.style import ESTIMATE, INK, LOCAL, MUTED, TRUTH, UNIT, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_estimates(ax: Axes, study: Study) -> None:
    """Draw one row for each graph: sampled designs with both intervals, then the local measures without any."""
    truth = study.exact.estimate.value
    gap = 0.75  # white space between what estimates SND and what does not
    line = len(study.sampled) - 1 + (1 + gap) / 2
    sampled_at = np.arange(len(study.sampled), dtype=float)
    local_at = np.arange(len(study.local)) + len(study.sampled) + gap
    ax.axvline(truth, color=TRUTH, linewidth=1.6, zorder=1)
    for y, one in zip(sampled_at, study.sampled, strict=True):
        _draw_sampled(ax, float(y), one)
    for y, one in zip(local_at, study.local, strict=True):
        ax.plot(one.estimate.value, y, "D", color=LOCAL, markerfacecolor="white", markersize=6.5, markeredgewidth=1.5)
    ends = [end for one in study.sampled for end in one.estimate.interval]
    ax.set_xlim(0, max([*ends, truth]) * 1.04)
    ax.set_ylim(local_at[-1] + 0.6, -0.75)
    ax.axhline(line, color=MUTED, linewidth=0.6, linestyle=(0, (1, 3)))
    ax.set_yticks([*sampled_at, *local_at], [one.spec for one in (*study.sampled, *study.local)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    ax.set_xlabel(f"diversity  [{UNIT}]")
    # Wherever the truth lies, the line between the two halves is free of marks.
    text = "below: not estimates of SND, the graph defines a local measure"
    place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "left", "va": "top"}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    ax.text(0.01, line + 0.08, text, fontsize=8, color=MUTED, style="italic", bbox=box, **place)


def _draw_sampled(ax: Axes, y: float, one: GraphResult) -> None:
    estimate = one.estimate
    ax.plot(estimate.interval, (y, y), color=ESTIMATE, linewidth=1.6, alpha=0.55, solid_capstyle="butt", zorder=2)
    for end in estimate.interval:
        ax.plot((end, end), (y - 0.12, y + 0.12), color=ESTIMATE, linewidth=1.6, alpha=0.55, zorder=2)
    ax.plot(estimate.asymptotic_interval, (y, y), color=ESTIMATE, linewidth=6, solid_capstyle="butt", zorder=3)
    ax.plot(estimate.value, y, "o", color="white", markeredgecolor=INK, markersize=5, zorder=4)
    if len(one.redraws):
        # A fixed little spread by rank, not random jitter: the same study always gives the same picture.
        spread = y - 0.26 - 0.14 * ((np.arange(len(one.redraws)) * 0.618034) % 1.0)
        ax.plot(one.redraws.numpy(), spread, ".", color=MUTED, markersize=2.0, alpha=0.4, zorder=2)


def estimate_handles(study: Study, *, explain: bool = True) -> list[Any]:
    """Return the legend entries for :func:`draw_estimates`; ``explain`` says when each interval holds."""
    from matplotlib.lines import Line2D

    large, any_team = (" (large samples)", " (any team)") if explain else ("", "")
    sure = f"{study.exact.estimate.confidence:.0%}"
    count = len(study.sampled[0].redraws)
    return [
        Line2D([], [], color=TRUTH, linewidth=1.6, label=f"exact SND, {study.exact.estimate.value:.3f}"),
        Line2D([], [], color=ESTIMATE, linewidth=6, label=f"asymptotic {sure} interval{large}"),
        Line2D([], [], color=ESTIMATE, linewidth=1.6, alpha=0.55, label=f"guaranteed {sure} interval{any_team}"),
        Line2D([], [], color=MUTED, marker=".", linestyle="", markersize=4, label=f"{count} other draws"),
    ]


def estimates_figure(study: Study) -> Figure:
    """Return the figure of :func:`draw_estimates` with its legend."""
    with styled_figure(6.0, 5.2) as figure:
        ax = figure.subplots()
        draw_estimates(ax, study)
        pairs = study.exact.estimate.pairs_total
        used = study.sampled[0].graph.m / pairs
        ax.set_title(f"SND from about {used:.0%} of {pairs:,} pairs")
        figure.legend(handles=estimate_handles(study), ncols=1, loc="outside lower center")
        return figure
