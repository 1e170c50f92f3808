"""SND at a budget in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.report_bench_tables import duration, ratio

if TYPE_CHECKING:
    from rich.table import Table


def plain_table(*columns: str) -> Table:
    """Words to the left, and they may wrap; numbers to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=at > 0)
    return table


def designs_table(row: dict[str, Any]) -> Table:
    """One team: every design with its error, its cost and its time."""
    table = plain_table("design", "RMSE", "x better", "distances", "evaluations", "time")
    exact = row["exact_time"]["median_s"]
    table.add_row("all pairs", "exact", "", "", "", duration(exact), style="bold")
    for one in row["designs"]:
        gain = "-" if one["rmse_gain"] is None else ratio(one["rmse_gain"])
        name = one["name"] + (" *" if one.get("matched") else "")
        time = duration(one["time"]["median_s"])
        table.add_row(name, f"{one['rmse']:.2%}", gain, f"{one['distances']:,.0f}", f"{one['evaluations']:,}", time)
    return table


def tolerance_table(rows: list[dict[str, Any]]) -> Table:
    """Time and policy evaluations to a tolerance."""
    table = plain_table("agents", "observations", "tolerance", "met", "evaluations", "of all", "time")
    for row in rows:
        share = row["evaluations"][0] / (row["n"] * row["observations"])
        met = "yes" if all(row["met"]) else "NO"
        cells = (f"{row['observations']:,}", f"{row['rel_tol']:.1%}", met, f"{row['evaluations'][0]:,}", f"{share:.2g}")
        table.add_row(f"{row['n']:,}", *cells, duration(row["seconds"][len(row["seconds"]) // 2]))
    return table


def projections_table(rows: list[dict[str, Any]]) -> Table:
    """Sorting against pairs."""
    table = plain_table("agents x obs.", "features", "directions", "RMSE", "time", "vs exact", "vs cdist")
    for row in rows:
        for name, one in row["by"].items():
            rivals = (ratio(one[f"times_faster_than_{rival}"]) for rival in ("exact", "cdist"))
            what = (f"{row['n']:,} x {row['observations']:,}", f"{row['features']}", name)
            table.add_row(*what, f"{one['rmse']:.1e}", duration(one["time"]["median_s"]), *rivals)
    return table


def coverage_table(rows: list[dict[str, Any]]) -> Table:
    """How often intervals held the truth."""
    table = plain_table("design and interval", "covered", "half-width")
    for row in rows:
        covered = f"{row['covered']:.1%} ± {row['covered_error']:.1%}"
        table.add_row(f"{row['design']}: {row['kind']}", covered, f"{row['relative_half_width']:.2%}")
    return table
