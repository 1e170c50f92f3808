"""Worlds and training against the clock: tables for the terminal, and the picture of the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.report_bench import machine
from benchmarks.report_bench_tables import duration, ratio
from benchmarks.report_budget_tables import plain_table
from graphsnd.plots.style import BLUE, MUTED, ORANGE, SKY, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table

COLOURS = {"graphsnd": BLUE, "graphsnd, CUDA graph": SKY}


def worlds_table(result: dict[str, Any]) -> Table:
    """A step of every world, and of the simulator where it was timed."""
    table = plain_table("world", "agents", "environments", "simulator", "its step", "our step", "ratio")
    for row in result["worlds"]:
        ours, others = _split(row)
        best = min(one["median_s"] for one in ours.values())
        other = next(iter(others.items()), None)
        theirs = ("-", "-", "-") if other is None else (other[0], duration(other[1]["median_s"]), ratio(row["ratio"]))
        sizes = (row["world"], f"{row['agents']:,}", f"{row['environments']:,}")
        table.add_row(*sizes, theirs[0], theirs[1], duration(best), theirs[2])
    return table


def training_table(result: dict[str, Any]) -> Table:
    """The parts of one iteration."""
    table = plain_table("agents", "runs", "samples", "gradient steps", "rollout", "update", "iteration")
    counts = (f"{result[key]:,}" for key in ("agents", "runs", "samples", "gradient_steps"))
    table.add_row(*counts, *(duration(result[key]["median_s"]) for key in ("rollout", "update", "iteration")))
    return table


def worlds_figure(results: Sequence[dict[str, Any]]) -> Figure:
    """Bars of one step, on a logarithmic axis, a panel for each machine."""
    with style():
        rows = results[0]["worlds"]
        figure = new_figure(5.2 * len(results) + 1.6, 0.85 * len(rows) + 1.3)
        panels = figure.subplots(1, len(results), sharex=True, sharey=True, squeeze=False)[0]
        for ax, result in zip(panels, results, strict=True):
            _steps(ax, result)
            ax.set_xlabel("one step of all environments  [ms]")
            ax.set_title(machine(result))
        panels[0].set_yticks(range(len(rows)), [_label(row) for row in rows])
        panels[0].set_xscale("log")
        low, high = panels[0].get_xlim()
        panels[0].set_xlim(low, high * 60)  # room for the words beside the longest bar
        panels[0].invert_yaxis()  # of all panels, which share it
        return figure


def _steps(ax: Axes, result: dict[str, Any]) -> None:
    """The bars of one machine, each world in a slot of its own."""
    for slot, row in enumerate(result["worlds"]):
        ours, others = _split(row)
        bars = [*others.items(), *ours.items()]
        for k, (name, one) in enumerate(bars):
            at, time = slot + 0.34 * (k - (len(bars) - 1) / 2), 1000 * one["median_s"]
            ax.barh(at, time, 0.31, color=COLOURS.get(name, ORANGE))
            ax.annotate(f"{name}  {duration(one['median_s'])}", (time, at), (4, 0), **_BESIDE)


def training_figure(results: Sequence[dict[str, Any]]) -> Figure:
    """Rollout and update of one iteration, a bar for each machine."""
    with style():
        figure = new_figure(7.2, 1.5 + 0.6 * len(results))
        ax = figure.subplots()
        for k, result in enumerate(results):
            rollout, update = (result[key]["median_s"] for key in ("rollout", "update"))
            ax.barh(k, rollout, 0.5, color=BLUE, label="rollout" if k == 0 else None)
            ax.barh(k, update, 0.5, left=rollout, color=ORANGE, label="update" if k == 0 else None)
            ax.annotate(duration(result["iteration"]["median_s"]), (rollout + update, k), (4, 0), **_BESIDE)
        ax.set_yticks(range(len(results)), [machine(result) for result in results])
        ax.set_xlim(right=1.15 * max(result["iteration"]["median_s"] for result in results))
        ax.invert_yaxis()
        ax.set_xlabel(f"one iteration of PPO, {results[0]['agents']} agents, {results[0]['samples']:,} samples  [s]")
        figure.legend(loc="outside upper right", ncols=2)
        return figure


_BESIDE: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": 8, "color": MUTED}


def _split(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found = row["contestants"]
    ours = {name: one for name, one in found.items() if name.startswith("graphsnd")}
    return ours, {name: one for name, one in found.items() if name not in ours}


def _label(row: dict[str, Any]) -> str:
    return f"{row['world'].replace('_', ' ')}\n{row['agents']:,} agents, {row['environments']:,} envs"
