"""Is it worth sampling? In a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def verdict(rows: Sequence[dict[str, Any]]) -> str:
    """Below which team size exact SND is cheaper than looking at a tenth of the pairs.

    Args:
        rows: The ``exact`` part of the results, one for each team size.
    """
    return (
        f"On this machine exact SND is cheaper than sampling a tenth of the pairs {_where(rows, 'sparse_fresh')}. "
        f"Where the graph is drawn once and kept, exact SND is cheaper {_where(rows, 'sparse')}."
    )


def crossover(rows: Sequence[dict[str, Any]], rival: str) -> int | None:
    """The smallest measured team size from which on the rival is faster than exact SND; None if there is none."""
    found = None
    for row in sorted(rows, key=lambda row: -row["n"]):
        if not _wins(row, rival):
            break
        found = row["n"]
    return found


def _where(rows: Sequence[dict[str, Any]], rival: str) -> str:
    sizes = sorted(row["n"] for row in rows)
    at = crossover(rows, rival)
    if at == sizes[0]:
        return f"at no measured size (n = {at:,} and above)"
    # One size where the rival won by luck, below others where it lost, is said and does not move the border.
    odd = [f"{row['n']:,}" for row in rows if _wins(row, rival) and (at is None or row["n"] < at)]
    but = f", except at n = {' and '.join(odd)}" if odd else ""
    if at is None:
        return f"at every measured size, up to n = {sizes[-1]:,}{but}"
    return f"below n = {at:,} (measured up to n = {max(n for n in sizes if n < at):,}{but})"


def _wins(row: dict[str, Any], rival: str) -> bool:
    return bool(row["contestants"][rival]["median_s"] < row["contestants"]["fused"]["median_s"])
