"""Figures of benchmarks, drawn from the JSON of one or more machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from graphsnd.plots.style import BLUE, FAINT, GREEN, MUTED, ORANGE, VERMILLION, styled_figure

Results = Sequence[dict[str, Any]]

# Contestant, label, colour and marker; from slow to fast, as the lines lie.
CONTESTANTS = (
    ("pair_loop", "Python loop over pairs", MUTED, "o"),
    ("cdist", "torch.cdist in chunks", ORANGE, "s"),
    ("fused", "graphsnd, exact", VERMILLION, "D"),
    ("sparse_fresh", "graphsnd, 10% of pairs, new graph", GREEN, "v"),
    ("sparse", "graphsnd, 10% of pairs, same graph", BLUE, "^"),
)
# Label, colour and marker of the families of designs.
FAMILIES = (
    ("one graph for all observations (the paper)", VERMILLION, "s"),
    ("redrawn pairs of all agents, every observation", BLUE, "o"),
    ("random agents at some of the observations", ORANGE, "D"),
    ("random agents, every observation", GREEN, "^"),
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
    _use_log_axes(ax)
    ax.set_xticks(sizes, [f"{n:,}" for n in sizes])
    ax.minorticks_off()
    ax.set(xlabel="agents, n", title=machine(result))
    ax.grid()
    return scaled


def _use_log_axes(ax: Axes) -> None:
    ax.set(xscale="log", yscale="log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()


def designs_figure(results: Results) -> Figure:
    """Return relative error against distances above, against time below; a column for each team size.

    Args:
        results: Of one machine; the first is drawn.
    """
    rows = results[0]["designs"]
    sizes = sorted({row["n"] for row in rows})
    with styled_figure(4.3 * len(sizes) + 0.4, 7.4) as figure:
        axes = figure.subplots(2, len(sizes), sharey="col", squeeze=False)
        for (upper, lower), n in zip(axes.T, sizes, strict=True):
            mine = [row for row in rows if row["n"] == n]
            _draw_designs(upper, mine, against_time=False)
            _draw_designs(lower, mine, against_time=True)
            upper.set_title(f"{n:,} agents, {mine[0]['observations']:,} observations")
        for ax in axes[:, 0]:
            ax.set_ylabel("relative error, RMS over draws  [%]")
        handles = [Line2D([], [], color=c, marker=m, linestyle="", label=label) for label, c, m in FAMILIES]
        handles.append(Line2D([], [], color=MUTED, linestyle="--", label="time of exact SND"))
        if any(row["team"] == "trained" for row in rows):
            handles.append(Line2D([], [], label="open: trained team", **HOLLOW))
        figure.legend(handles=handles, ncols=2, loc="outside lower center")
        return figure


def _family(design: str) -> int:
    """Return the place of a design in ``FAMILIES``."""
    if design.startswith(("bernoulli", "uniform", "regular")):
        return 0
    if design.startswith(("matching", "ring")):
        return 1
    return 2 if "observations" in design else 3


def _draw_designs(ax: Axes, rows: Results, *, against_time: bool) -> None:
    for row in rows:
        trained = row["team"] == "trained"
        for one in row["designs"]:
            _, colour, marker = FAMILIES[_family(one["name"])]
            x = 1000 * one["time"]["median_s"] if against_time else one["distances"]
            y, (low, high) = 100 * one["rmse"], one["rmse_interval"]
            ax.errorbar(x, y, [[y - 100 * low], [100 * high - y]], color=colour, elinewidth=1, zorder=2)
            face = "white" if trained else colour
            ax.plot(x, y, marker, color=colour, markerfacecolor=face, markersize=6, zorder=3)
        if against_time:
            line = ":" if trained else "--"
            ax.axvline(1000 * row["exact_time"]["median_s"], color=MUTED, linestyle=line, linewidth=1, zorder=1)
    _use_log_axes(ax)
    ax.grid(color=FAINT)
    ax.set_xlabel("time from policies to number  [ms]" if against_time else "distances in one estimate")
    if against_time:  # less than a decade often, so powers of ten alone would be too few
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())


FIGURES: dict[str, Callable[[Results], Figure]] = {"speed": speed_figure, "designs": designs_figure}
