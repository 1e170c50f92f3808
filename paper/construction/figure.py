"""The picture of the construction times: every builder against team size, beside the metric and the paper's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION, new_figure, style
from paper.construction.numbers import PAPER_MS, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Call, what it is called, colour, marker and line.
METRIC = (
    ("loop", "SND, Python loop", MUTED, "X", "--"),
    ("snd", "SND, graphsnd", VERMILLION, "D", "--"),
    ("graph_snd", "Graph-SND, graphsnd", INK, "P", "--"),
)
BUILDERS = (
    ("knn", "exact nearest neighbours", PURPLE, "v", "-"),
    ("regular", "random regular", BLUE, "o", "-"),
    ("bernoulli", "Bernoulli", ORANGE, "s", "-"),
    ("uniform", "uniform sample", GREEN, "^", "-"),
)


def construction_figure(data: dict[str, Any]) -> Figure:
    """Time against team size, with quartiles: builders beside the paper's, and builders beside the metric.

    Args:
        data: Of the construction experiment.
    """
    with style():
        figure = new_figure(9.8, 5.3)
        left, right = figure.subplots(1, 2)
        in_table = [row for row in data["sizes"] if row["n"] in PAPER_MS["knn"]]
        _lines(left, in_table, BUILDERS)
        for name, _, colour, marker, _ in BUILDERS:
            look: dict[str, Any] = {"color": colour, "markerfacecolor": "white", "linewidth": 0.9, "markersize": 5.5}
            sizes = [row["n"] for row in in_table]
            left.plot(sizes, [PAPER_MS[name][n] for n in sizes], marker, linestyle=":", zorder=2, **look)
        _axes(left, in_table, "Builders: here (full), in the paper (open)")
        _lines(right, data["sizes"], (*METRIC, *BUILDERS))
        _axes(right, data["sizes"], "Builders beside a call of the metric")
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, ncols=4, loc="outside lower center")
        return figure


def _lines(ax: Axes, rows: list[dict[str, Any]], calls: Any) -> None:
    for name, label, colour, marker, line in calls:
        found = [[1000 * seconds(row["calls"][name], key) for row in rows] for key in ("median_s", "q1_s", "q3_s")]
        below, above = ([abs(m - q) for m, q in zip(found[0], ends, strict=True)] for ends in found[1:])
        look: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line, "label": label}
        bars: dict[str, Any] = {"linewidth": 1.5, "elinewidth": 1.1, "capsize": 2.5, "markersize": 5.5}
        ax.errorbar([row["n"] for row in rows], found[0], [below, above], **look, **bars)


def _axes(ax: Axes, rows: list[dict[str, Any]], title: str) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    ax.set_xticks([row["n"] for row in rows], [f"{row['n']:,}" for row in rows])
    ax.minorticks_off()
    ax.grid()
    ax.set_title(title)
    ax.set_xlabel("agents, n")
    threads = rows[0]["before"]["threads"]
    ax.set_ylabel(f"time, median and quartiles, {threads} thread{'s' * (threads > 1)}  [ms]")
