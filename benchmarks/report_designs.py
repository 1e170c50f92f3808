"""The picture of SND at a budget: error against distances and against time, from the JSON of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, FAINT, GREEN, MUTED, ORANGE, VERMILLION, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What a design's name begins or ends with, what the family is called, colour and marker.
FAMILIES = (
    ("fixed", "one graph for all observations (the paper)", VERMILLION, "s"),
    ("fresh", "fresh pairs of all agents, every observation", BLUE, "o"),
    ("subset", "random agents at some of the observations", ORANGE, "D"),
    ("agents", "random agents, every observation", GREEN, "^"),
)


def designs_figure(results: Sequence[dict[str, Any]]) -> Figure:
    """Relative error against distances above, against time from policies to number below; a column for each size.

    Args:
        results: What ``graphsnd bench --suite designs --json`` wrote, on one machine; the first is drawn.
    """
    from matplotlib.lines import Line2D

    result = results[0]
    sizes = sorted({row["n"] for row in result["designs"]})
    with style():
        figure = new_figure(4.3 * len(sizes) + 0.4, 7.4)
        axes = figure.subplots(2, len(sizes), sharey="col", squeeze=False)
        for column, n in enumerate(sizes):
            rows = [row for row in result["designs"] if row["n"] == n]
            _panel(axes[0][column], rows, "distances")
            _panel(axes[1][column], rows, "time")
            axes[0][column].set_title(f"{n:,} agents, {rows[0]['observations']:,} observations")
            axes[0][column].set_xlabel("distances in one estimate")
            axes[1][column].set_xlabel("time from policies to number  [ms]")
        for row in axes:
            row[0].set_ylabel("relative error, RMS over draws  [%]")
        handles = [Line2D([], [], color=c, marker=m, linestyle="", label=label) for _, label, c, m in FAMILIES]
        handles.append(Line2D([], [], color=MUTED, linestyle="--", label="time of exact SND"))
        if any(row["team"] == "trained" for row in result["designs"]):
            hollow: dict[str, Any] = {"color": MUTED, "marker": "o", "markerfacecolor": "white", "linestyle": ""}
            handles.append(Line2D([], [], label="open: trained team", **hollow))
        figure.legend(handles=handles, ncols=2, loc="outside lower center")
        return figure


def _panel(ax: Axes, rows: list[dict[str, Any]], against: str) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for row in rows:
        trained = row["team"] == "trained"
        for one in row["designs"]:
            colour, marker = _look(one["name"])
            x = one["distances"] if against == "distances" else 1000 * one["time"]["median_s"]
            low, high = one["rmse_interval"]
            y = 100 * one["rmse"]
            ax.errorbar(x, y, [[y - 100 * low], [100 * high - y]], color=colour, elinewidth=1, zorder=2)
            face = "white" if trained else colour
            ax.plot(x, y, marker, color=colour, markerfacecolor=face, markersize=6, zorder=3)
        if against == "time":
            style_ = ":" if trained else "--"
            ax.axvline(1000 * row["exact_time"]["median_s"], color=MUTED, linestyle=style_, linewidth=1, zorder=1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.grid(color=FAINT)
    ax.relim()
    ax.autoscale_view()
    if against == "time":  # less than a decade often, so powers of ten alone would be too few
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())


def _look(name: str) -> tuple[str, str]:
    for key, _, colour, marker in FAMILIES:
        at = {"fixed": name.startswith("fixed"), "fresh": name.startswith("fresh") and "of 1 pair" not in name}
        if at.get(key, "observations" in name if key == "subset" else True):
            return colour, marker
    raise AssertionError(name)
