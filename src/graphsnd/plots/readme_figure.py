"""The library in one picture, for the README."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.matrix import group_legend
from graphsnd.plots.network import graph
from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import draw_estimates, draw_study, estimate_handles
from graphsnd.plots.style import MUTED, UNIT, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 15.0, 5.3  # inches
BOTTOM, TALL = 0.19, 0.675  # of the height; all three panels stand on one line and end at one line


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
