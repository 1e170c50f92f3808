"""What moved between two results of a benchmark by more than the spread of their rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# What tells the rows of a list apart.
KEYS = ("suite", "case", "design", "task", "team", "world", "n", "agents", "observations", "features")
LEAST = 0.05  # relative change of the median that is worth a line


def compare(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the times that changed beyond noise, the largest slowdown first.

    A time is slower when every round of the new result took longer than three quarters of the rounds of the old one
    (its minimum lies above the other's upper quartile) and the medians are 5% apart; faster the other way round.

    Args:
        before: The JSON of a benchmark.
        after: Of the same, at another commit.

    Returns:
        For each, what it is, its summaries before and after, and the ratio of their medians, ``times_as_long``.
    """
    old, moves = dict(times_in(before)), []
    for what, new in times_in(after):
        if what in old:
            ratio = new["median_s"] / max(old[what]["median_s"], 1e-12)
            slower = new["min_s"] > old[what]["q3_s"] and ratio > 1 + LEAST
            if slower or (old[what]["min_s"] > new["q3_s"] and ratio < 1 - LEAST):
                moves.append({"what": what, "before": old[what], "after": new, "times_as_long": ratio})
    return sorted(moves, key=lambda move: -move["times_as_long"])


def times_in(result: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every summary of times in a result, with its path: rows of lists by what tells them apart."""
    if isinstance(result, dict) and "median_s" in result:
        yield path, result
    elif isinstance(result, dict):
        for key, value in result.items():
            yield from times_in(value, f"{path} {key}".strip())
    elif isinstance(result, list):
        for row in result:
            if isinstance(row, dict):
                name = ", ".join(f"{key} {row[key]}" for key in KEYS if isinstance(row.get(key), str | int))
                yield from times_in(row, f"{path} ({name})".strip())
