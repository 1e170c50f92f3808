"""The picture of the ablation: how close, how crowded, how well connected, and what training changes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import FAINT, MUTED, new_figure, style
from paper.expanders.families import FOUR, Family
from paper.expanders.panels import LOOKS, Cell, forwarding, gaps, some, values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = (-0.13, 0.13)  # what the paper reports for random regular graphs, per cent
TICKS = (-50, -20, -10, -5, -2, -1, -0.5, 0, 0.5, 1, 2, 5, 10, 20)
# The label of a team begins with the first, not with the second, and the panel calls it the third.
KINDS = (
    ("initial", "initial-own", "fresh,\nshared"),
    ("initial-own", "-", "fresh,\nown"),
    ("trained", "trained-own", "trained,\nshared"),
    ("trained-own", "-", "trained,\nown (noise)"),
)


def expanders_figure(data: dict[str, Any]) -> Figure:
    """Ratios by size and degree; the forwarding index; deviations against the spectral gap; trained beside fresh teams.

    Args:
        data: Of the experiment.
    """
    columns = data["columns"]
    teams = {label: [dict(zip(columns, one, strict=True)) for one in rows] for label, rows in data["teams"].items()}
    with style():
        figure = new_figure(12.6, 9.6)
        axes = figure.subplots(2, 2)
        _sizes(axes[0][0], teams["initial"])
        forwarding(axes[0][1], teams["initial"])
        gaps(axes[1][0], teams["initial"])
        _teams(axes[1][1], teams)
        figure.legend(handles=_handles(), ncols=3, loc="outside lower center")
        return figure


def _sizes(ax: Axes, rows: Sequence[Cell]) -> None:
    sizes = values(rows, "n")
    _grouped(ax, [_by_degree(rows, n) for n in sizes], [f"n = {n}" for n in sizes])
    ax.set_xlabel("degree d and agents n", labelpad=20)
    ax.set_title("Fresh policies on shared observations")


def _teams(ax: Axes, teams: dict[str, list[Cell]]) -> None:
    trained = [n for label, rows in teams.items() if label.startswith("trained") for n in values(rows, "n")]
    shown: dict[str, tuple[int, list[Cell]]] = {}
    for begins, without, name in KINDS:
        labels = [label for label in teams if label.startswith(begins) and not label.startswith(without)]
        rows = [row for label in labels for row in teams[label]]
        sizes = values(rows, "n")
        if sizes:
            shown[name] = trained[0] if trained and trained[0] in sizes else sizes[-1], rows
    alike = len({n for n, _ in shown.values()}) == 1
    names = [name if alike else f"{name}, n = {n}" for name, (n, _) in shown.items()]
    _grouped(ax, [_by_degree(rows, n) for n, rows in shown.values()], names)
    what = "whether policies see the same observations\nor each its own, as in the paper"
    ax.set_xlabel(f"degree d, team, and {what}", labelpad=32)
    ax.set_title("Fresh and trained policies" + (f", n = {next(iter(shown.values()))[0]}" if alike else ""))


def _grouped(ax: Axes, groups: Sequence[Sequence[Sequence[Cell]]], names: Sequence[str]) -> None:
    """Groups of degrees, in each the range over graphs and the mean of every family."""
    at, ticks = 0.0, {}
    ax.axhspan(*PAPER, color=FAINT, zorder=0)
    ax.axhline(0, color=MUTED, linewidth=0.8, zorder=1)
    for group, name in zip(groups, names, strict=True):
        below: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "va": "top"}
        ax.annotate(name, (at + (len(group) - 1) / 2, 0), (0, -20), ha="center", fontsize=9, **below)
        for rows in group:
            for place, family in enumerate(FOUR):
                _range(ax, at + (place - 1.5) * 0.2, some(rows, family=family.value), family)
            ticks[at] = str(rows[0]["degree"])
            at += 1
        at += 0.6
    ax.set_xticks(list(ticks), list(ticks.values()))
    ax.tick_params(axis="x", length=0)
    _percent(ax)


def _percent(ax: Axes) -> None:
    """Linear within one per cent, logarithmic beyond: nearest neighbours are far below everything else."""
    ax.set_ylabel("Graph-SND / SND - 1  [%]")
    ax.set_yscale("symlog", linthresh=1.0, linscale=1.3)
    low, high = ax.get_ylim()
    low, high = low - 0.15 * abs(low), high + 0.1 * abs(high)
    kept = [tick for tick in TICKS if low <= tick <= high]
    ax.set_ylim(low, high)
    ax.set_yticks(kept, [f"{tick:+g}" if tick else "0" for tick in kept])
    ax.minorticks_off()
    ax.grid(axis="y")


def _range(ax: Axes, x: float, rows: Sequence[Cell], family: Family) -> None:
    found = [100 * (row["ratio"] - 1) for row in rows if row["ratio"] is not None]
    if found:
        colour, marker, _ = LOOKS[family]
        ax.plot([x, x], [min(found), max(found)], color=colour, linewidth=1.8, solid_capstyle="butt", zorder=2)
        ax.plot(x, statistics.fmean(found), marker, color=colour, markersize=5, zorder=3)


def _by_degree(rows: Sequence[Cell], n: int) -> list[list[Cell]]:
    return [some(rows, n=n, degree=degree) for degree in values(rows, "degree", n=n)]


def _handles() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[Any] = []
    for family, (colour, marker, label) in LOOKS.items():
        face = "white" if family is Family.UNION else colour
        found.append(Line2D([], [], color=colour, marker=marker, markerfacecolor=face, linestyle="", label=label))
    return [*found, Patch(color=FAINT, label="the paper's interval for random regular graphs")]
