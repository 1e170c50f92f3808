"""The figure of the timing experiment: what a tenth of the pairs saves, in a loop and in one fused call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import GREEN, INK, MUTED, ORANGE, VERMILLION, group_look, new_figure, style
from paper.shared.drawing import error_bars, make_log, write_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from paper.timing import Data, Machine

P, OBSERVATIONS = 0.1, 4096
# Call, what it is called, colour and marker; from slow to fast, as the lines lie.
LINES = (
    ("loop, all pairs", "Python loop, all pairs", MUTED, "o"),
    (f"loop, p={P:g}", "Python loop, 10% of pairs", ORANGE, "s"),
    ("fused, all pairs", "graphsnd, all pairs", VERMILLION, "D"),
    (f"fused, p={P:g}", "graphsnd, 10% of pairs", GREEN, "^"),
)


def draw(data: Data) -> Figure:
    """Draw speed-up against p and against n, and the time of a call against n on each machine."""
    machines = dict(sorted(data.machines.items()))  # the CPU first
    with style():
        rows, columns = (2, 2) if len(machines) == 2 else (1, 3)
        figure = new_figure(4.9 * columns, 3.9 * rows + 0.5)
        axes = figure.subplots(rows, columns).flatten()
        _draw_against_p(axes[0], machines)
        _draw_against_n(axes[1], machines)
        for ax, machine in zip(axes[2:], machines.values(), strict=False):
            _draw_times(ax, machine)
        if len(machines) == 2:
            axes[3].sharey(axes[2])
        for ax in axes:
            ax.grid()
        for ax in axes[:2]:
            ax.set_ylabel("all pairs / sampled, with interval  [times]")
        figure.legend(*axes[2].get_legend_handles_labels(), ncols=len(LINES), loc="outside lower center")
        return figure


def _draw_against_p(ax: Axes, machines: dict[str, Machine]) -> None:
    """Draw the loop: a line for each size on the CPU with several chances, and one for the largest on the GPU."""
    rows = [row for row in machines["cpu"].sizes if len(row.chances) > 1]
    chances = sorted({p for row in rows for p in row.chances})
    ax.plot(chances, [1 / p for p in chances], "--", color=INK, linewidth=1.1, label="1/p", zorder=1)
    looks: list[dict[str, Any]] = []
    for k, row in enumerate(rows):
        colour, marker = group_look(k)
        looks.append({"color": colour, "marker": marker, "label": f"n = {row.n}"})
    if "gpu" in machines:
        rows.append(machines["gpu"].sizes[-1])
        looks.append({"label": f"n = {rows[-1].n}, GPU", "color": INK, "marker": "*", "markerfacecolor": "white"})
    for k, (row, look) in enumerate(zip(rows, looks, strict=True)):
        shift = 1 + 0.03 * (k - (len(rows) - 1) / 2)  # beside each other, so that every interval is seen
        drawn = (*row.chances, *row.once)
        error_bars(ax, [p * shift for p in drawn], [row.sampled("loop", p) for p in drawn], **look)
    make_log(ax, x=chances)
    ax.set(xlabel="chance of a pair, p", title="Python loop: what a graph saves, by p")
    ax.legend()


def _draw_against_n(ax: Axes, machines: dict[str, Machine]) -> None:
    """Draw what a tenth of the pairs saves, in both ways and on every machine; colours are those of the times."""
    for y, text in ((1 / P, "1/p"), (1.0, "no gain")):
        ax.axhline(y, color=INK, linestyle="--", linewidth=1.0, zorder=1)
        write_at(ax, y, text)
    for name, machine in machines.items():
        rows = [row for row in machine.sizes if P in row.chances]
        for way, (_, _, colour, marker) in (("loop", LINES[1]), ("fused", LINES[3])):
            face, line = ("white", ":") if name == "gpu" else (colour, "-")
            look = {"color": colour, "marker": marker, "markerfacecolor": face, "linestyle": line}
            error_bars(ax, [row.n for row in rows], [row.sampled(way, P) for row in rows], **look)
    make_log(ax, x=_apart({row.n for machine in machines.values() for row in machine.sizes}))
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * (high / low) ** 0.13)  # room for the two words
    title = "What a tenth saves" + (": CPU full, GPU open" if "gpu" in machines else ", by n")
    ax.set(xlabel="agents, n", title=title)


def _draw_times(ax: Axes, machine: Machine) -> None:
    """Draw the time of the four calls; a line breaks where observations stop growing with the team."""
    pooled = [row for row in machine.sizes if row.observations > OBSERVATIONS]
    single = [row for row in machine.sizes if row.observations <= OBSERVATIONS]
    for call, label, colour, marker in LINES:
        for rows in filter(None, (pooled, single)):
            times, named = [row.calls[call].number(1000) for row in rows], label if rows is single else None
            error_bars(ax, [row.n for row in rows], times, color=colour, marker=marker, label=named)
    make_log(ax, None, x=_apart({row.n for row in machine.sizes}))
    if pooled and single:
        ax.axvline((pooled[-1].n * single[0].n) ** 0.5, color=MUTED, linestyle=":", linewidth=1)
        small: dict[str, Any] = {"transform": ax.transAxes, "fontsize": 8.5, "color": MUTED}
        ax.text(0.02, 0.98, f"n x {OBSERVATIONS:,} observations", va="top", **small)
        ax.text(0.98, 0.02, f"{OBSERVATIONS:,} observations", ha="right", **small)
    conditions = machine.sizes[0].before
    title = conditions.gpu or f"CPU, {conditions.threads} thread{'s' * (conditions.threads > 1)}"
    ax.set(xlabel="agents, n", ylabel="time of a call, median and quartiles  [ms]", title=title)


def _apart(sizes: set[int]) -> list[int]:
    """Return those whose labels do not touch on a logarithmic axis."""
    kept: list[int] = []
    for n in sorted(sizes):
        if not kept or n >= 1.6 * kept[-1]:
            kept.append(n)
    return kept
