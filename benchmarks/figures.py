"""Figures of the benchmarks speed and share, drawn from the JSON of one or more machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from graphsnd.errors import plural
from graphsnd.plots.style import BLUE, GREEN, MUTED, ORANGE, VERMILLION, styled_figure

Results = Sequence[dict[str, Any]]

# Contestant, label, colour and marker; from slow to fast, in the order of the lines.
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
    return f"CPU, {hardware['threads']} {plural('thread', hardware['threads'])}"


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


def make_log(ax: Axes, x: Sequence[float], ticks: Sequence[float] = ()) -> None:
    """Make both axes logarithmic.

    Args:
        ax: Axes with everything drawn.
        x: Ticks of the horizontal axis; a tick whose label would touch the one before is left out.
        ticks: Ticks of the vertical axis; those outside it are ignored. Empty: matplotlib's own ticks.
    """
    ax.set(xscale="log", yscale="log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    kept = keep_apart(x)
    ax.set_xticks(kept, [f"{value:,g}" for value in kept])
    if ticks:
        low, high = ax.get_ylim()
        kept = [value for value in ticks if low <= value <= high]
        ax.set_yticks(kept, [f"{value:g}" for value in kept])
    ax.minorticks_off()


def keep_apart(x: Sequence[float]) -> list[float]:
    """Return values whose labels do not touch on a logarithmic axis from the smallest to the largest.

    Example:
        >>> keep_apart([16, 500, 1000, 2000, 5000])
        [16, 500, 1000, 5000]
    """
    kept, width = [x[0]], math.log(x[-1] / x[0]) / 40  # width of a character
    for value in x[1:]:
        if math.log(value / kept[-1]) > width * (len(f"{value:,g}") + len(f"{kept[-1]:,g}")) / 2:
            kept.append(value)
    return kept


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
    make_log(ax, sizes)
    ax.set(xlabel="agents, n", title=machine(result))
    ax.grid()
    return scaled


def share_figure(results: Results) -> Figure:
    """Return shares of the limit over features and observations, and where sampling wins, a row for each machine."""
    with styled_figure(12.0, 3.9 * len(results)) as figure:
        panels = figure.subplots(len(results), 3, squeeze=False)
        for (left, middle, right), result in zip(panels, results, strict=True):
            usual = result["features"][0]["observations"]
            name = machine(result)
            _draw_shares(left, result["features"], "features", f"{name}\nshare of the limit, {usual:,} observations")
            _draw_shares(middle, result["observations"], "observations", "\nshare of the limit, 4 features")
            _draw_crossover(right, result["crossover"])
            right.set_title(f"\nsampling, {usual:,} obs., 4 features")
        return figure


def _draw_shares(ax: Axes, rows: Results, across: str, title: str) -> None:
    """Draw shares of the limit as a table of agents against another size."""
    sizes, others = (sorted({row[key] for row in rows}) for key in ("n", across))
    grid = np.full((len(sizes), len(others)), np.nan)
    for row in rows:
        grid[sizes.index(row["n"]), others.index(row[across])] = np.nan if row["share"] is None else row["share"]
    ax.imshow(grid, origin="lower", aspect="auto", cmap="Blues", vmin=0, vmax=1)
    for (i, j), share in np.ndenumerate(grid):
        if np.isfinite(share):
            ax.text(j, i, f"{share:.0%}", ha="center", va="center", color="white" if share > 0.55 else "black")
    ax.set_xticks(range(len(others)), [f"{size:,}" for size in others])
    ax.set_yticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    ax.set(xlabel=across, ylabel="agents", title=title)


def _draw_crossover(ax: Axes, rows: Results) -> None:
    """Draw the time of sampling over that of exact SND against agents."""
    rows = sorted(rows, key=lambda row: row["n"])
    sizes = [row["n"] for row in rows]
    looks = {"tenth of the pairs": (GREEN, "v"), "ring:4": (BLUE, "^"), "agents:8": (ORANGE, "s")}
    for name, (colour, marker) in looks.items():
        times = [row["contestants"][name]["min_s"] / row["contestants"]["exact"]["min_s"] for row in rows]
        ax.plot(sizes, times, color=colour, marker=marker, label=name, linewidth=1.6, markersize=5.5)
    ax.axhline(1, color=MUTED, linewidth=1, linestyle="--")
    make_log(ax, sizes)
    ax.set(xlabel="agents", ylabel="time over exact SND")
    ax.legend()
    ax.grid()


# Figures by the benchmark whose results they draw.
FIGURES = {"speed": speed_figure, "share": share_figure}
