"""The picture of the timing sweeps: what a tenth of the pairs saves, in a loop and in one fused call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import GREEN, INK, MUTED, ORANGE, VERMILLION, group_look, new_figure, style
from paper.timing.numbers import sampled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P, OBSERVATIONS = 0.1, 4096
# Call, what it is called, colour and marker; from slow to fast, as the lines lie.
LINES = (
    ("loop, all pairs", "Python loop, all pairs", MUTED, "o"),
    (f"loop, p={P:g}", "Python loop, 10% of pairs", ORANGE, "s"),
    ("fused, all pairs", "graphsnd, all pairs", VERMILLION, "D"),
    (f"fused, p={P:g}", "graphsnd, 10% of pairs", GREEN, "^"),
)
BARS: dict[str, Any] = {"linewidth": 1.5, "elinewidth": 1.1, "capsize": 2.5, "markersize": 5.5}


def timing_figure(data: dict[str, Any]) -> Figure:
    """Speed-up against p and against n, and the time of a call against n on each machine.

    Args:
        data: Of the timing experiment; the GPU's panel is left out where there is no GPU part.
    """
    machines = {name: data["machines"][name] for name in ("cpu", "gpu") if name in data["machines"]}
    with style():
        rows, columns = (2, 2) if len(machines) == 2 else (1, 3)
        figure = new_figure(4.9 * columns, 3.9 * rows + 0.5)
        axes = figure.subplots(rows, columns).flatten()
        _against_p(axes[0], machines)
        _against_n(axes[1], machines)
        for ax, name in zip(axes[2:], machines, strict=False):
            _times(ax, machines[name], name)
        if len(machines) == 2:
            axes[3].sharey(axes[2])
        handles, labels = axes[2].get_legend_handles_labels()
        figure.legend(handles, labels, ncols=len(LINES), loc="outside lower center")
        return figure


def _against_p(ax: Axes, machines: dict[str, Any]) -> None:
    """The loop: a line for each size on the CPU with several chances, and one for the largest on the GPU."""
    rows = [row for row in machines["cpu"]["sizes"] if len(row["chances"]) > 1]
    chances = sorted({p for row in rows for p in row["chances"]})
    ax.plot(chances, [1 / p for p in chances], "--", color=INK, linewidth=1.1, label="1/p", zorder=1)
    looks = [_look(k, f"n = {row['n']}") for k, row in enumerate(rows)]
    if "gpu" in machines:
        rows.append(machines["gpu"]["sizes"][-1])
        looks.append({"label": f"n = {rows[-1]['n']}, GPU", "color": INK, "marker": "*", "markerfacecolor": "white"})
    for k, (row, look) in enumerate(zip(rows, looks, strict=True)):
        shift = 1 + 0.03 * (k - (len(rows) - 1) / 2)  # beside each other, so that every interval is seen
        drawn = (*row["chances"], *row["once"])
        _bars(ax, [p * shift for p in drawn], [sampled(row, "loop", p) for p in drawn], **look)
    _log(ax, chances, [1, 2, 5, 10, 20])
    ax.set_xlabel("chance of a pair, p")
    ax.set_ylabel("all pairs / sampled, with interval  [times]")
    ax.set_title("Python loop: what a graph saves, by p")
    ax.legend()


def _against_n(ax: Axes, machines: dict[str, Any]) -> None:
    """What a tenth of the pairs saves, in both ways and on every machine; colours are those of :data:`LINES`."""
    sizes = sorted({row["n"] for machine in machines.values() for row in machine["sizes"]})
    for y, text in ((1 / P, "1/p"), (1.0, "no gain")):
        ax.axhline(y, color=INK, linestyle="--", linewidth=1.0, zorder=1)
        ax.annotate(text, (1.0, y), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8.5)
    for name, machine in machines.items():
        rows = [row for row in machine["sizes"] if P in row["chances"]]
        for way, (_, _, colour, marker) in (("loop", LINES[1]), ("fused", LINES[3])):
            face, line = ("white", ":") if name == "gpu" else (colour, "-")
            look = {"color": colour, "marker": marker, "markerfacecolor": face, "linestyle": line}
            _bars(ax, [row["n"] for row in rows], [sampled(row, way, P) for row in rows], **look)
    _log(ax, _apart(sizes), [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20])
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * (high / low) ** 0.13)  # room for the two words
    ax.set_xlabel("agents, n")
    ax.set_ylabel("all pairs / sampled, with interval  [times]")
    ax.set_title("What a tenth saves" + (": CPU full, GPU open" if "gpu" in machines else ", by n"))


def _times(ax: Axes, machine: dict[str, Any], name: str) -> None:
    """The time of the four calls; a line breaks where the number of observations stops growing with the team."""
    pooled = [row for row in machine["sizes"] if row["observations"] > OBSERVATIONS]
    single = [row for row in machine["sizes"] if row["observations"] <= OBSERVATIONS]
    for call, label, colour, marker in LINES:
        for rows in filter(None, (pooled, single)):
            found = [row["calls"][call] for row in rows]
            ends = [{"value": one["median_s"], "low": one["q1_s"], "high": one["q3_s"]} for one in found]
            scaled = [{key: 1000 * value for key, value in one.items()} for one in ends]
            named = label if rows is single else None
            _bars(ax, [row["n"] for row in rows], scaled, color=colour, marker=marker, label=named)
    _log(ax, _apart([row["n"] for row in machine["sizes"]]), None)
    if pooled and single:
        ax.axvline((pooled[-1]["n"] * single[0]["n"]) ** 0.5, color=MUTED, linestyle=":", linewidth=1)
        small: dict[str, Any] = {"transform": ax.transAxes, "fontsize": 8.5, "color": MUTED}
        ax.text(0.02, 0.98, f"n x {OBSERVATIONS:,} observations", va="top", **small)
        ax.text(0.98, 0.02, f"{OBSERVATIONS:,} observations", ha="right", **small)
    ax.set_xlabel("agents, n")
    ax.set_ylabel("time of a call, median and quartiles  [ms]")
    hardware = machine["origin"]["hardware"]
    threads = machine["sizes"][0]["before"]["threads"]
    ax.set_title(hardware["gpu"] if name == "gpu" else f"CPU, {threads} thread{'s' * (threads > 1)}")


def _look(k: int, label: str) -> dict[str, Any]:
    colour, marker = group_look(k)
    return {"color": colour, "marker": marker, "label": label}


def _bars(ax: Axes, x: list[float], found: list[dict[str, Any]], **look: Any) -> None:
    below = [max(0.0, one["value"] - one["low"]) for one in found]
    above = [max(0.0, one["high"] - one["value"]) for one in found]
    ax.errorbar(x, [one["value"] for one in found], [below, above], **BARS, **look)


def _apart(sizes: list[int]) -> list[int]:
    """Those whose labels do not touch on a logarithmic axis."""
    kept: list[int] = []
    for n in sorted(sizes):
        if not kept or n >= 1.6 * kept[-1]:
            kept.append(n)
    return kept


def _log(ax: Axes, x: list[Any], y: list[float] | None) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    # Autoscaling saw the error bars before the axis was logarithmic, and made room for values near 0.
    ax.relim()
    ax.autoscale_view()
    ax.set_xticks(x, [f"{value:g}" for value in x])
    if y is not None:
        low, high = ax.get_ylim()
        kept = [value for value in y if low <= value <= high]
        ax.set_yticks(kept, [f"{value:g}" for value in kept])
    ax.minorticks_off()
    ax.grid()
