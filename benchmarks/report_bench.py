"""The picture of a benchmark: time against team size, from the JSON of one or more machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, GREEN, MUTED, ORANGE, VERMILLION, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Contestant, what it is called, colour and marker; from slow to fast, as the lines lie.
LINES = (
    ("pair_loop", "Python loop over pairs", MUTED, "o"),
    ("cdist", "torch.cdist in chunks", ORANGE, "s"),
    ("fused", "graphsnd, exact", VERMILLION, "D"),
    ("sparse_fresh", "graphsnd, 10% of pairs, new graph", GREEN, "v"),
    ("sparse", "graphsnd, 10% of pairs, same graph", BLUE, "^"),
)


def bench_figure(results: Sequence[dict[str, Any]]) -> Figure:
    """Time of one call against team size, a panel for each result.

    Args:
        results: What ``graphsnd bench --json`` wrote.
    """
    from matplotlib.lines import Line2D

    with style():
        figure = new_figure(max(5.6, 4.4 * len(results)), 4.9)
        panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
        observations = max(row["observations"] for result in results for row in result["exact"])
        scaled = False
        for ax, result in zip(panels, results, strict=True):
            scaled |= _panel(ax, result, observations)
        panels[0].set_ylabel(f"time for {observations:,} observations  [ms]")
        look: dict[str, Any] = {"markersize": 5.5, "linewidth": 1.6}
        handles = [Line2D([], [], color=c, marker=m, label=label, **look) for _, label, c, m in LINES]
        if scaled:
            open_marker: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "linestyle": ""}
            handles.append(Line2D([], [], color=MUTED, label="open: scaled up from a part", **open_marker))
        figure.legend(handles=handles, ncols=min(3, 1 + len(results)), loc="outside lower center")
        return figure


def _panel(ax: Axes, result: dict[str, Any], observations: int) -> bool:
    """Draw one result; whether any of it had to be scaled up."""
    rows = sorted(result["exact"], key=lambda row: row["n"])
    sizes = [row["n"] for row in rows]
    any_part = False
    for name, _, colour, marker in LINES:
        factors = [1000 * observations / row["observations"] for row in rows]
        found = [row["contestants"][name] for row in rows]
        middle, low, high = ([f * one[key] for f, one in zip(factors, found, strict=True)] for key in KEYS)
        spans = [[m - q for m, q in zip(middle, low, strict=True)], [q - m for m, q in zip(middle, high, strict=True)]]
        ax.errorbar(sizes, middle, spans, color=colour, linewidth=1.6, elinewidth=1.2, capsize=2.5)
        for n, y, row, one in zip(sizes, middle, rows, found, strict=True):
            part = one["share_timed"] < 1 or row["observations"] < observations
            any_part |= part
            ax.plot(n, y, marker, color=colour, markerfacecolor="white" if part else colour, markersize=5.5, zorder=3)
    ax.set_xscale("log")
    ax.set_yscale("log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set_xlabel("agents, n")
    ax.set_title(machine(result))
    ax.grid()
    return any_part


KEYS = ("median_s", "q1_s", "q3_s")


def machine(result: dict[str, Any]) -> str:
    """The device that was measured, in a few words."""
    hardware = result["hardware"]
    if result["device"] == "cuda":
        return str(hardware["gpu"])
    return f"CPU, {hardware['threads']} thread{'s' * (hardware['threads'] > 1)}"
