"""The figure of the benchmark of speed, drawn from the JSON of one or more machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphsnd.plots.style import BLUE, GREEN, MUTED, ORANGE, VERMILLION, styled_figure

Results = Sequence[dict[str, Any]]

# Contestant, label, colour and marker; from slow to fast, as the lines lie.
CONTESTANTS = (
    ("pair_loop", "Python loop over pairs", MUTED, "o"),
    ("cdist", "torch.cdist in chunks", ORANGE, "s"),
    ("fused", "graphsnd, exact", VERMILLION, "D"),
    ("sparse_fresh", "graphsnd, 10% of pairs, new graph", GREEN, "v"),
    ("sparse", "graphsnd, 10% of pairs, same graph", BLUE, "^"),
)
HOLLOW: dict[str, Any] = {"color": MUTED, "marker": "o", "markerfacecolor": "white", "linestyle": ""}


def machine(result: dict[str, Any]) -> str:
    """Return the device that was measured, in a few words."""
    hardware = result["hardware"]
    if result["device"] == "cuda":
        return str(hardware["gpu"])
    return f"CPU, {hardware['threads']} thread{'s' * (hardware['threads'] > 1)}"


def speed_figure(results: Results) -> Figure:
    """Return the time of one call against team size, a panel for each machine."""
    with styled_figure(max(5.6, 4.4 * len(results)), 4.9) as figure:
        panels = figure.subplots(1, len(results), sharey=True, squeeze=False)[0]
        observations = max(row["observations"] for result in results for row in result["exact"])
        scaled = [_draw_speed(ax, result, observations) for ax, result in zip(panels, results, strict=True)]
        panels[0].set_ylabel(f"time for {observations:,} observations  [ms]")
        look: dict[str, Any] = {"markersize": 5.5, "linewidth": 1.6}
        handles = [Line2D([], [], color=c, marker=m, label=label, **look) for _, label, c, m in CONTESTANTS]
        if any(scaled):
            handles.append(Line2D([], [], label="open: scaled up from a part", **HOLLOW))
        figure.legend(handles=handles, ncols=min(3, 1 + len(results)), loc="outside lower center")
        return figure


def _draw_speed(ax: Axes, result: dict[str, Any], observations: int) -> bool:
    """Draw one machine; return whether any time had to be scaled up from a part."""
    rows = sorted(result["exact"], key=lambda row: row["n"])
    sizes = [row["n"] for row in rows]
    scaled = False
    for name, _, colour, marker in CONTESTANTS:
        times = [[row["contestants"][name][key] for row in rows] for key in ("q1_s", "median_s", "q3_s")]
        low, middle, high = np.asarray(times) * [1000 * observations / row["observations"] for row in rows]
        spans = [middle - low, high - middle]
        ax.errorbar(sizes, middle, spans, color=colour, linewidth=1.6, elinewidth=1.2, capsize=2.5)
        for row, time in zip(rows, middle, strict=True):
            part = row["contestants"][name]["share_timed"] < 1 or row["observations"] < observations
            scaled |= part
            face = "white" if part else colour
            ax.plot(row["n"], time, marker, color=colour, markerfacecolor=face, markersize=5.5, zorder=3)
    ax.set(xscale="log", yscale="log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set(xlabel="agents, n", title=machine(result))
    ax.grid()
    return scaled
