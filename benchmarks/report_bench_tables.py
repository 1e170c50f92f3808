"""A benchmark in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def times_table(result: dict[str, Any]) -> Table:
    """Median time of every contestant at every team size; a star for what was scaled up from a part."""
    table = _table("n", "obs.", "pair loop", "cdist", "exact", "exact + grad", "10% new", "10% kept")
    names = ("pair_loop", "cdist", "fused", "fused_backward", "sparse_fresh", "sparse")
    for row in result["exact"]:
        cells = (
            duration(one["median_s"]) + "*" * (one["share_timed"] < 1)
            for one in (row["contestants"][name] for name in names)
        )
        table.add_row(f"{row['n']:,}", f"{row['observations']:,}", *cells)
    return table


def ratios_table(result: dict[str, Any]) -> Table:
    """What exact SND gains over the others, how near it is to the limit, and, on cuda, what it needs."""
    measured = result["device"] == "cuda"
    names = ("vs loop", "vs cdist", "vs 10% new", "vs 10% kept", "grad", "pairs/s", "of limit")
    table = _table("n", *names, *(["peak"] if measured else []))
    for row in result["exact"]:
        found = row["contestants"]
        exact, limit = found["fused"], row["fraction_of_limit"]
        rivals = ("pair_loop", "cdist", "sparse_fresh", "sparse")
        table.add_row(
            f"{row['n']:,}",
            *(ratio(found[name]["median_s"] / exact["median_s"]) for name in rivals),
            ratio(found["fused_backward"]["median_s"] / exact["median_s"]),
            power(exact["pairs_per_second"]),
            "-" if limit is None else f"{limit:.0%}",
            *([f"{exact['peak_bytes'] / 2**20:,.2f} MiB"] if measured else []),
        )
    return table


def sorting_table(result: dict[str, Any]) -> Table:
    """Exact total-variation SND, which needs no pairs."""
    table = _table("n", "obs.", "exact TVD-SND", "per n log2 n")
    for row in result["sorted"]:
        unit = f"{1e9 * row['s_per_n_log2_n']:.2f} ns"
        table.add_row(f"{row['n']:,}", f"{row['observations']:,}", duration(row["median_s"]), unit)
    return table


def graphs_table(result: dict[str, Any]) -> Table:
    """The time to draw or find a graph."""
    names = list(result["graphs"][0]["builders"])
    table = _table("n", "degree", *(name.replace("_", " ") for name in names))
    for row in result["graphs"]:
        cells = (duration(row["builders"][name]["median_s"]) for name in names)
        table.add_row(f"{row['n']:,}", str(row["degree"]), *cells)
    return table


def duration(seconds: float) -> str:
    """Three digits and a unit.

    Example:
        >>> [duration(s) for s in (0.00000512, 0.0213, 3.0, 22200.0)]
        ['5.12 us', '21.3 ms', '3.00 s', '22,200 s']
    """
    value, unit = next(((seconds * f, u) for f, u in ((1e6, "us"), (1e3, "ms")) if seconds * f < 999.5), (seconds, "s"))
    return f"{value:,.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"


def ratio(value: float) -> str:
    """How many times as much, to two digits at least.

    Example:
        >>> [ratio(v) for v in (0.052, 7.31, 26400.0)]
        ['0.052x', '7.3x', '26,400x']
    """
    return f"{value:.2g}x" if value < 9.95 else f"{value:,.0f}x"


def power(value: float) -> str:
    """A large number.

    Example:
        >>> power(6.42e11)
        '6.4e11'
    """
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right")
    return table
