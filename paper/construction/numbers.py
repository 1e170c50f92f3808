"""The numbers of the construction experiment that claims are held against, and the table of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paper.experiment import Number

LARGE = 500
# The paper's table of medians, in milliseconds: what ours are divided by, never a result.
PAPER_MS: dict[str, dict[int, float]] = {
    "bernoulli": {50: 0.016, 100: 0.036, 500: 0.875},
    "uniform": {50: 0.014, 100: 0.022, 500: 0.440},
    "regular": {50: 0.159, 100: 0.345, 500: 2.352},
    "knn": {50: 0.370, 100: 0.734, 500: 4.091},
}
BUILDERS = tuple(PAPER_MS)
ORDER = ("uniform", "bernoulli", "regular", "knn")  # of the table, the fastest first


def numbers(rows: Sequence[dict[str, Any]]) -> dict[str, Number]:
    """Every number whose sizes were timed.

    Args:
        rows: One for each size, as :func:`~paper.construction.run.measure` gives them.
    """
    sizes = {row["n"]: row["calls"] for row in rows}
    if not set(PAPER_MS["knn"]) <= set(sizes):
        return {}
    knn = sizes[LARGE]["knn"]
    found = {
        "knn_seconds_n500": Number(knn["median_s"], knn["q1_s"], knn["q3_s"], "s", "quartiles"),
        "slowest_over_metric_n500": _slowest_over(sizes[LARGE], "loop"),
        "slowest_over_fused_n500": _slowest_over(sizes[LARGE], "snd"),
        "builders_in_order": _in_order(sizes),
    }
    return found | {f"{name}_over_paper": _over_paper(sizes, name) for name in BUILDERS}


def seconds(call: dict[str, Any], key: str = "median_s") -> float:
    """Of the whole of a call's work."""
    return float(call[key] * call.get("whole", 1.0))


def _slowest_over(calls: dict[str, Any], metric: str) -> Number:
    """The slowest builder over the metric; the ends set quartile against quartile."""
    slowest = max((calls[name] for name in BUILDERS), key=seconds)
    ends = [seconds(slowest, mine) / seconds(calls[metric], its) for mine, its in (("q1_s", "q3_s"), ("q3_s", "q1_s"))]
    value = seconds(slowest) / seconds(calls[metric])
    return Number(value, ends[0], ends[1], "", "quartile over opposite quartile")


def _in_order(sizes: dict[int, Any]) -> Number:
    """At how many of the paper's sizes the medians are in the paper's order."""
    ranked = (sorted(BUILDERS, key=lambda name: seconds(sizes[n][name])) for n in PAPER_MS["knn"])
    return Number(sum(tuple(names) == ORDER for names in ranked), unit="", kind="of 3 sizes")


def _over_paper(sizes: dict[int, Any], name: str) -> Number:
    ratios = [1000 * seconds(sizes[n][name]) / paper for n, paper in PAPER_MS[name].items()]
    return Number(max(ratios), min(ratios), max(ratios), "x", "range of 3 sizes")
