"""The demo's team in pictures: narrow enough to be read on a phone, and one picture of the library for the README."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.arrays import Array
from graphsnd.plots.clustering import behaviour_map
from graphsnd.plots.intervals import draw_estimate, interval_handles
from graphsnd.plots.matrix import contributions, draw_groups, draw_image, group_legend, tree
from graphsnd.plots.network import graph
from graphsnd.plots.study import GraphResult, Study
from graphsnd.plots.style import LOCAL, MUTED, PHONE, TRUTH, UNIT, style_rows, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 15.0, 5.3  # inches
BOTTOM, TALL = 0.19, 0.675  # of the height; all three panels stand on one line and end at one line


def heatmap_figure(study: Study) -> Figure:
    """Return the heatmap ordered by the tree, with the tree above it and the roles along two sides.

    The roles are only marked, never used for the order.
    """
    from matplotlib.ticker import MaxNLocator

    roles = study.team.roles
    with styled_figure(PHONE, 4.5, layout=None) as figure:
        # Placed by hand: constrained layout does not keep the tree, the strips and a square heatmap aligned.
        lower = figure.add_axes((0.145, 0.18, 0.665, 0.665 * PHONE / 4.5))
        draw_study(lower, study)
        draw_groups(lower, roles, study.tree.order)
        upper = lower.inset_axes((0.0, 1.06, 1.0, 0.24))  # the same leaves, aligned
        tree(study.matrix, ax=upper, groups=roles)
        upper.legend_ = None  # SND is in the other figures
        upper.set(title="Who acts like whom", ylabel="merge at", xlabel="", xticks=[])
        upper.yaxis.set_major_locator(MaxNLocator(3))
        group_legend(figure, study.team.role_names, ncols=4, loc="lower center", columnspacing=0.9)
        lower.set_xlabel("agent, in the order of the tree")
        lower.set_ylabel("agent, in the same order", labelpad=18)
        return figure


def draw_study(ax: Axes, study: Study) -> None:
    """Draw all distances in the order of the tree, with the roles at the left in place of names."""
    order = study.tree.order
    draw_image(ax, study.matrix.numpy()[np.ix_(order, order)], f"behavioural distance  [{UNIT}]")
    draw_groups(ax, study.team.roles, order, vertical=True)
    ax.set(yticks=[])


def contributions_figure(study: Study) -> Figure:
    """Return each agent's mean distance to the others, coloured by role, with a line at their mean."""
    with styled_figure(PHONE, 3.1) as figure:
        ax = contributions(study.matrix, ax=figure.subplots(), groups=study.team.roles)
        ax.set(title="How far each agent is from its team", xticks=[], xlabel="agents, most distinctive first")
        ax.set_ylabel(f"mean distance to the others  [{UNIT}]", fontsize=9)
        group_legend(figure, study.team.role_names, ncols=4, loc="outside lower center", columnspacing=0.9)
        return figure


def draw_estimates(ax: Axes, study: Study) -> None:
    """Draw one row for each graph: sampled designs with both intervals, then the local measures without any."""
    truth = study.exact.estimate.value
    gap = 0.75  # white space between what estimates SND and what does not
    line = len(study.sampled) - 1 + (1 + gap) / 2
    sampled_at = np.arange(len(study.sampled), dtype=float)
    local_at = np.arange(len(study.local)) + len(study.sampled) + gap
    ax.axvline(truth, color=TRUTH, linewidth=1.6, zorder=1)
    for y, one in zip(sampled_at.tolist(), study.sampled, strict=True):
        draw_estimate(ax, y, one.estimate)
        # A fixed little spread by rank, not random jitter: the same study always gives the same picture.
        spread = y - 0.26 - 0.14 * ((np.arange(len(one.redraws)) * 0.618034) % 1.0)
        ax.plot(one.redraws.numpy(), spread, ".", color=MUTED, markersize=2.0, alpha=0.4, zorder=2)
    for y, one in zip(local_at, study.local, strict=True):
        ax.plot(one.estimate.value, y, "D", color=LOCAL, markerfacecolor="white", markersize=6.5, markeredgewidth=1.5)
    ends = [end for one in study.sampled for end in one.estimate.interval]
    ax.set_xlim(0, max([*ends, truth]) * 1.04)
    ax.set_ylim(local_at[-1] + 0.6, -0.75)
    ax.axhline(line, color=MUTED, linewidth=0.6, linestyle=(0, (1, 3)))
    ax.set_yticks([*sampled_at, *local_at], [one.spec for one in (*study.sampled, *study.local)])
    style_rows(ax)
    ax.set_xlabel(f"diversity  [{UNIT}]")
    # Wherever the truth lies, the line between the two halves is free of marks.
    text = "below: local measures, not estimates of SND"
    place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "left", "va": "top"}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    ax.text(0.01, line + 0.08, text, fontsize=8, color=MUTED, style="italic", bbox=box, **place)


def estimate_handles(study: Study) -> list[Any]:
    """Return the legend entries for :func:`draw_estimates`."""
    from matplotlib.lines import Line2D

    handles = interval_handles([one.estimate for one in study.sampled], study.exact.estimate.value, explain=False)
    draws = f"{len(study.sampled[0].redraws)} other draws"
    return [*handles, Line2D([], [], color=MUTED, marker=".", linestyle="", markersize=4, label=draws)]


def estimates_figure(study: Study) -> Figure:
    """Return the figure of :func:`draw_estimates` with its legend."""
    with styled_figure(PHONE, 4.8) as figure:
        ax = figure.subplots()
        draw_estimates(ax, study)
        used = study.sampled[0].graph.m / study.exact.estimate.pairs_total
        ax.set_title(f"SND from about {used:.0%} of all pairs")
        figure.legend(handles=estimate_handles(study), ncols=1, loc="outside lower center")
        return figure


def graphs_figure(study: Study) -> Figure:
    """Return six graphs over the same agents: sampled ones on the map of behaviour, local ones in the world."""
    with styled_figure(11.0, 7.6) as figure:
        axes = figure.subplots(2, 3)
        for ax, result in zip(axes.flat, (*study.sampled, *study.local), strict=True):
            draw_panel(ax, result, study)
        for ax in axes[:, 1:].flat:
            ax.set_ylabel("")  # the same as at the left
        group_legend(figure, study.team.role_names, ncols=4, loc="outside lower center")
        return figure


def draw_panel(ax: Axes, result: GraphResult, study: Study) -> None:
    """Draw one of those graphs."""
    local = result in study.local
    places: Array = study.team.positions if local else behaviour_map(study.matrix)
    graph(result.graph, ax=ax, positions=places, groups=study.team.roles, size=22)
    ax.set_title(result.spec, pad=20)
    kind = "a local measure" if local else "estimates SND"
    note = f"{result.graph.m} pairs, {kind}: {result.estimate.value:.3f}"
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")
    behaviour = (f"map of behaviour, {axis} axis  [{UNIT}]" for axis in ("1st", "2nd"))
    x, y = ("world, x  [m]", "world, y  [m]") if local else behaviour
    ax.set(xlabel=x, ylabel=y)


def overview_figure(study: Study) -> Figure:
    """Return the figure of the README.

    Left: every distance. Middle: the few that a sampled graph looks at. Right: what they say, against the truth.
    """
    with styled_figure(WIDTH, HEIGHT, layout=None) as figure:
        square = TALL * HEIGHT / WIDTH
        left = figure.add_axes((0.045, BOTTOM, square, TALL))
        middle = figure.add_axes((0.405, BOTTOM, square, TALL))
        right = figure.add_axes((0.745, BOTTOM, 0.245, TALL))
        _distances(left, study)
        _graph(middle, study)
        draw_estimates(right, study)
        used = study.sampled[1].graph.m / study.exact.estimate.pairs_total
        _heading(right, "3  One number, and how sure it is", f"{used:.0%} of the pairs, three ways to draw them")
        right.legend(handles=estimate_handles(study), ncols=2, **_below(0.37), columnspacing=1.0)
        return figure


def _distances(ax: Axes, study: Study) -> None:
    n = len(study.matrix)
    draw_study(ax, study)
    _heading(ax, f"1  How differently do {n} agents act?", f"all {n * (n - 1) // 2:,} distances, ordered by clustering")
    ax.set_xlabel("agent, most alike side by side")
    ax.set_ylabel("hidden role (not used)", labelpad=18)
    group_legend(ax, study.team.role_names, ncols=4, **_below(0.5), columnspacing=1.0)


def _graph(ax: Axes, study: Study) -> None:
    drawn = study.sampled[1].graph
    graph(drawn, study.matrix, ax=ax, groups=study.team.roles, size=34)
    _heading(ax, "2  Look at a sparse graph of pairs", f"{drawn.m} pairs drawn at random, in the same colours")
    ax.set_xlabel(f"map of behaviour: near agents act alike  [{UNIT}]")
    ax.set_ylabel(f"[{UNIT}]", labelpad=1)


def _below(x: float) -> dict[str, Any]:
    return {"loc": "upper center", "bbox_to_anchor": (x, -0.125)}


def _heading(ax: Axes, title: str, subtitle: str) -> None:
    ax.set_title(title, fontsize=14, pad=28)
    ax.text(0.0, 1.035, subtitle, transform=ax.transAxes, fontsize=10.5, color=MUTED, va="bottom")
