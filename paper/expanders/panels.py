"""Two panels of the ablation's figure: the forwarding index, and deviations against the spectral gap."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, GREEN, INK, MUTED, ORANGE, VERMILLION
from paper.expanders.families import Family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = dict[str, Any]  # a row as JSON has it

# Colour, marker and name; the union of nearest neighbours is drawn as the trimmed one, hollow.
LOOKS = {
    Family.REGULAR: (BLUE, "o", "random regular"),
    Family.BERNOULLI: (ORANGE, "s", "Bernoulli"),
    Family.UNIFORM: (GREEN, "^", "uniform"),
    Family.KNN: (VERMILLION, "D", "nearest neighbours, trimmed to nd/2 edges"),
    Family.UNION: (VERMILLION, "D", "nearest neighbours, all (more edges)"),
}
ROUTED = (Family.REGULAR, Family.BERNOULLI, Family.UNIFORM, Family.UNION)
# Columns of regular graphs beside their deviations: label, marker, colour.
BOUNDS = {
    "spectral": ("spectral bound, Proposition 17", "x", INK),
    "probabilistic": ("bound over random graphs, Proposition 19, 90%", "+", MUTED),
    "probabilistic_finite": ("the same from exact second moments, any n", "1", MUTED),
    "predicted": ("exact standard deviation, random regular", "_", BLUE),
}


def forwarding(ax: Axes, rows: Sequence[Cell]) -> None:
    """The index against n log n / d: the median over seeds, and from the least certified lower end to the largest."""
    drawn: dict[Family, list[tuple[float, float]]] = {family: [] for family in ROUTED}
    for place, family in enumerate(ROUTED):
        colour, marker, _ = LOOKS[family]
        for unit, mine in _routed(rows, family):
            middle = statistics.median(row["integral_upper"] for row in mine)
            ends = min(row["integral_lower"] for row in mine), max(row["integral_upper"] for row in mine)
            x = unit * (1 + 0.035 * (place - 1.5))  # beside each other, so that every interval is seen
            face = "white" if family is Family.UNION else colour
            ax.plot([x, x], ends, color=colour, linewidth=1.8, zorder=2)
            ax.plot(x, middle, marker, color=colour, markerfacecolor=face, markersize=5.5, zorder=3)
            drawn[family].append((unit, middle))
    _guide(ax, drawn[Family.REGULAR])
    _logarithmic(ax)
    ax.set_xlabel("n log$_2$ n / d  [pairs]")
    ax.set_ylabel("edge forwarding index  [pairs on an edge]")
    ax.set_title("Forwarding index, certified: median, range of seeds")
    note = _apart(rows)
    ax.annotate(note, (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom", fontsize=8.5, color=MUTED)


def gaps(ax: Axes, rows: Sequence[Cell]) -> None:
    """Every graph's deviation, and for regular graphs what is said about it."""
    from matplotlib.ticker import FuncFormatter

    for key, (label, marker, colour) in BOUNDS.items():
        mine = [row for row in some(rows, family=Family.REGULAR.value) if row[key]]
        x, y = [row["gap"] for row in mine], [100 * row[key] for row in mine]
        ax.plot(x, y, marker, color=colour, markersize=7, linestyle="", label=label, zorder=2)
    for family in (Family.KNN, Family.UNIFORM, Family.BERNOULLI, Family.REGULAR):
        colour, marker, _ = LOOKS[family]
        mine = [row for row in some(rows, family=family.value) if row["ratio"] not in (None, 1.0)]
        x, y = [row["gap"] for row in mine], [100 * abs(row["ratio"] - 1) for row in mine]
        ax.plot(x, y, marker, color=colour, markersize=4.5, alpha=0.75, linestyle="", markeredgewidth=0, zorder=3)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_ylim(top=40 * ax.get_ylim()[1])
    ax.legend(loc="upper left")
    ax.grid()
    ax.set_xlabel("spectral gap, 1 - |λ$_2$| / largest degree")
    ax.set_ylabel("|Graph-SND / SND - 1|  [%]")
    ax.set_title("Deviations of all these graphs, and bounds for regular ones")


def values(rows: Iterable[Cell], key: str, **where: Any) -> list[int]:
    """The different values of a column, in order."""
    return sorted({row[key] for row in some(rows, **where)})


def some(rows: Iterable[Cell], **where: Any) -> list[Cell]:
    """Rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def _routed(rows: Sequence[Cell], family: Family) -> Iterable[tuple[float, list[Cell]]]:
    for n in values(rows, "n"):
        for degree in values(rows, "degree", n=n):
            mine = some(rows, family=family.value, n=n, degree=degree)
            mine = [row for row in mine if row["integral_upper"] is not None]
            if mine:
                yield n * math.log2(n) / degree, mine


def _guide(ax: Axes, points: Sequence[tuple[float, float]]) -> None:
    if points:
        factor = statistics.geometric_mean([y / x for x, y in points])
        ends = [min(points)[0] / 1.2, max(points)[0] * 1.2]
        label = f"{factor:.2f} n log$_2$ n / d"
        ax.plot(ends, [factor * x for x in ends], "--", color=INK, linewidth=1, label=label, zorder=1)
        ax.legend(loc="upper left")


def _logarithmic(ax: Axes) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
    ax.grid()


def _apart(rows: Sequence[Cell]) -> str:
    """How many graphs are not connected, and so have no index."""
    parts = []
    for family, (_, _, name) in LOOKS.items():
        mine = some(rows, family=family.value)
        count = sum(not row["connected"] for row in mine)
        parts += [f"{count} of {len(mine)} {name.split(' to ')[0]}"] if count else []
    return "\n".join(["not connected, so without an index:", *parts]) if parts else ""
