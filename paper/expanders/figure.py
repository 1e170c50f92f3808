"""The figure of the ablation: errors of Graph-SND, the effect of training, and forwarding indices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from graphsnd.plots.style import BLUE, FAINT, GREEN, MUTED, ORANGE, VERMILLION, styled_figure
from paper.expanders.comparison import Data, Row, select, sizes_and_degrees
from paper.expanders.families import FOUR, Family

Rows = Sequence[Row]
PAPER = (-0.13, 0.13)  # the paper's range for random regular graphs, per cent
TICKS = (-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20)
# Colour, marker and name; the union of nearest neighbours is drawn as the trimmed one, hollow.
LOOKS = {
    Family.REGULAR: (BLUE, "o", "random regular"),
    Family.BERNOULLI: (ORANGE, "s", "Bernoulli"),
    Family.UNIFORM: (GREEN, "^", "uniform"),
    Family.KNN: (VERMILLION, "D", "nearest neighbours, trimmed to nd/2 edges"),
    Family.UNION: (VERMILLION, "D", "nearest neighbours, all (more edges)"),
}
ROUTED = (Family.REGULAR, Family.BERNOULLI, Family.UNIFORM, Family.UNION)
# Whether a team is trained and whether its policies see observations of their own.
KINDS = {
    (False, False): "fresh,\nshared",
    (False, True): "fresh,\nown",
    (True, False): "trained,\nshared",
}


def draw_expanders(data: Data) -> Figure:
    """Draw ratios by size and degree, trained beside fresh teams, and the forwarding index."""
    kinds = {(trained, own): data.rows(trained=trained, own=own) for trained, own in KINDS}
    initial = kinds[False, False]
    with styled_figure(12.6, 9.8) as figure:
        axes: dict[str, Axes] = figure.subplot_mosaic([["sizes", "sizes"], ["teams", "forwarding"]])
        _draw_sizes(axes["sizes"], initial)
        _draw_teams(axes["teams"], kinds)
        _draw_forwarding(axes["forwarding"], initial)
        figure.legend(handles=_handles(), ncols=3, loc="outside lower center")
        return figure


def _draw_sizes(ax: Axes, rows: Rows) -> None:
    sizes = sorted({row.n for row in rows})
    _draw_groups(ax, {f"n = {n}": select(rows, n=n) for n in sizes})
    ax.set_xlabel("degree d and agents n", labelpad=20)
    ax.set_title("Fresh policies on shared observations")


def _draw_teams(ax: Axes, kinds: dict[tuple[bool, bool], list[Row]]) -> None:
    """Draw all kinds of teams at the size of the trained ones, or at the largest size if there are none."""
    n = max(row.n for row in kinds[True, False] or kinds[False, False])
    _draw_groups(ax, {KINDS[kind]: mine for kind, rows in kinds.items() if (mine := select(rows, n=n))})
    what = "whether policies see the same observations\nor each its own, as in the paper"
    ax.set_xlabel(f"degree d, team, and {what}", labelpad=32)
    ax.set_title(f"Fresh and trained policies, n = {n}")


def _draw_groups(ax: Axes, groups: dict[str, list[Row]]) -> None:
    """Draw groups of degrees; each has the range over graphs and the mean of every family."""
    at, ticks = 0.0, {}
    ax.axhspan(*PAPER, color=FAINT, zorder=0)
    ax.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    for name, rows in groups.items():
        degrees = sorted({row.degree for row in rows})
        below: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
        ax.annotate(name, (at + (len(degrees) - 1) / 2, 0), (0, -20), ha="center", fontsize=9, **below)
        for degree in degrees:
            for place, family in enumerate(FOUR):
                _draw_range(ax, at + (place - 1.5) * 0.2, select(rows, family, degree=degree), family)
            ticks[at] = str(degree)
            at += 1
        at += 0.6
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.tick_params(axis="x", length=0)
    _scale_percent(ax)


def _draw_range(ax: Axes, x: float, rows: Rows, family: Family) -> None:
    deviations = [100 * (row.ratio - 1) for row in rows if row.ratio is not None]
    if deviations:
        colour, marker, _ = LOOKS[family]
        ends = [min(deviations), max(deviations)]
        ax.plot([x, x], ends, color=colour, linewidth=1.8, solid_capstyle="butt", zorder=2)
        ax.plot(x, statistics.fmean(deviations), marker, color=colour, markersize=5, zorder=3)


def _scale_percent(ax: Axes) -> None:
    """Scale the axis linearly within one per cent, logarithmically beyond: nearest neighbours are far below."""
    ax.set_ylabel("Graph-SND / SND - 1  [%]")
    ax.set_yscale("symlog", linthresh=1.0, linscale=1.3)
    low, high = ax.get_ylim()
    low, high = low - 0.15 * abs(low), high + 0.1 * abs(high)
    kept = [tick for tick in TICKS if low <= tick <= high]
    ax.set_ylim(low, high)
    ax.set_yticks(kept, [f"{tick:+g}" if tick else "0" for tick in kept])
    ax.minorticks_off()
    ax.grid(axis="y")


def _draw_forwarding(ax: Axes, rows: Rows) -> None:
    """Draw the index by n log n / d: the median over seeds, and the range of the certified bounds."""
    for place, family in enumerate(ROUTED):
        colour, marker, _ = LOOKS[family]
        for n, degree in sizes_and_degrees(rows):
            mine = select(rows, family, n=n, degree=degree)
            upper = [row.integral_upper for row in mine if row.integral_upper is not None]
            if not upper:
                continue
            unit, middle = n * math.log2(n) / degree, statistics.median(upper)
            ends = [min(row.integral_lower for row in mine if row.integral_lower is not None), max(upper)]
            x = unit * (1 + 0.035 * (place - 1.5))  # side by side, so that every interval is visible
            face = "white" if family is Family.UNION else colour
            ax.plot([x, x], ends, color=colour, linewidth=1.8, zorder=2)
            ax.plot(x, middle, marker, color=colour, markerfacecolor=face, markersize=5.5, zorder=3)
    _scale_logarithmic(ax)
    ax.set_xlabel("n log$_2$ n / d  [pairs]")
    ax.set_ylabel("edge forwarding index  [pairs on an edge]")
    ax.set_title("Forwarding index, certified: median, range of seeds")


def _scale_logarithmic(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.grid()


def _handles() -> list[Any]:
    handles: list[Any] = []
    for family, (colour, marker, label) in LOOKS.items():
        face = "white" if family is Family.UNION else colour
        handles.append(Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="", label=label))
    return [*handles, Patch(color=FAINT, label="the paper's interval for random regular graphs")]
