"""Rows of the ablation by family, size and degree."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from paper.expanders.families import Family
from paper.expanders.ratios import Row

Rows = Sequence[Row]


def of(rows: Iterable[Row], family: Family, **where: int) -> list[Row]:
    """The rows of a family, with these values in other columns; identical agents are left out."""
    named = [row for row in rows if row.family == family.value and row.ratio is not None]
    return [row for row in named if all(getattr(row, key) == value for key, value in where.items())]


def cells_of(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """Sizes and degrees, in order."""
    return sorted({(row.n, row.degree) for row in rows})


def rms(rows: Rows) -> float:
    """Root mean square of the ratio's distance from 1."""
    return math.sqrt(statistics.fmean((row.ratio - 1) ** 2 for row in rows if row.ratio is not None))


def difference(rows: Rows) -> float:
    """Root mean square of Graph-SND - SND."""
    return math.sqrt(statistics.fmean(row.difference**2 for row in rows))


def median(rows: Rows, column: str) -> float:
    """Of a column, over the rows that have it."""
    return statistics.median(value for row in rows if (value := getattr(row, column)) is not None)
