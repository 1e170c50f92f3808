r"""The numbers of the timing experiment that claims are held against.

A speed-up is a ratio of mean times, full over sampled, in the same trials; see
:func:`~paper.shared.stopwatch.speedup`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from paper.experiment import Number
from paper.shared.stopwatch import speedup
from paper.timing.calls import FEW

SMALL, LARGE = (4, 8, 16), (100, 250, 500)
CPU_LARGE, GPU_LARGE = 100, 500

Rows = dict[int, dict[str, Any]]  # by team size


def numbers(machines: dict[str, Any]) -> dict[str, Number]:
    """Every number whose sizes were timed.

    Args:
        machines: ``"cpu"`` and perhaps ``"gpu"``, as :func:`~paper.timing.run.sweep` gives them.
    """
    found: dict[str, Number] = {}
    for machine, wanted in (("cpu", CPU_NUMBERS), ("gpu", GPU_NUMBERS)):
        rows = {row["n"]: row for row in machines.get(machine, {}).get("sizes", ())}
        for name, (sizes, make) in wanted.items():
            if set(sizes) <= set(rows):
                found[name] = make(rows)
    return found


def ratio(row: dict[str, Any], above: str, below: str) -> dict[str, Any]:
    """How many times faster one call is than another in the same trials."""
    ratio = speedup(row["calls"][above]["seconds"], row["calls"][below]["seconds"])
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high, "kind": ratio.kind}


def sampled(row: dict[str, Any], way: str, p: float) -> dict[str, Any]:
    """The speed-up of a way, ``"loop"`` or ``"fused"``, by sampling."""
    return ratio(row, f"{way}, all pairs", f"{way}, p={p:g}")


def _one(n: int, above: str, below: str) -> tuple[Sequence[int], Callable[[Rows], Number]]:
    return (n,), lambda rows: Number(**ratio(rows[n], above, below), unit="x")


def _small_tenth(rows: Rows) -> Number:
    found = [sampled(rows[n], "loop", 0.1)["value"] for n in SMALL]
    return Number(statistics.median(found), min(found), max(found), "x", "range over n = 4, 8, 16")


def _small_all(rows: Rows) -> Number:
    found = [sampled(rows[n], "loop", 1.0)["value"] for n in SMALL]
    return Number(statistics.fmean(found), min(found), max(found), "x", "range over n = 4, 8, 16")


def _step(rows: Rows) -> Number:
    """The largest ratio of a speed-up to that at the chance before; below 1 when all fall."""
    steps = []
    for n in SMALL:
        values = [sampled(rows[n], "loop", p)["value"] for p in rows[n]["chances"]]
        steps += [after / before for before, after in pairwise(values)]
    return Number(max(steps), min(steps), max(steps), "", f"range of {len(steps)} steps")


def _law(rows: Rows) -> Number:
    """How far p times the speed-up is from 1, at worst."""
    chances = {n: (*rows[n]["chances"], *rows[n]["once"]) for n in LARGE}
    found = [p * sampled(rows[n], "loop", p)["value"] for n in LARGE for p in chances[n]]
    off = [abs(value - 1) for value in found]
    return Number(max(off), min(off), max(off), "", f"range of {len(off)} cells")


def _exponent(rows: Rows) -> Number:
    """Slope of log time against log number of pairs, by least squares."""
    x = [math.log(math.comb(n, 2)) for n in LARGE]
    y = [math.log(rows[n]["calls"]["loop, all pairs"]["mean_s"]) for n in LARGE]
    between = [(y[k + 1] - y[k]) / (x[k + 1] - x[k]) for k in range(len(LARGE) - 1)]
    slope = statistics.linear_regression(x, y).slope
    return Number(slope, min(between), max(between), "", "range of neighbouring sizes")


def _seconds(rows: Rows) -> Number:
    found = rows[GPU_LARGE]["calls"]["loop, all pairs"]["seconds"]
    return Number(statistics.fmean(found), min(found), max(found), "s", f"range of {len(found)} trials")


CPU_NUMBERS: dict[str, tuple[Sequence[int], Callable[[Rows], Number]]] = {
    "cpu_loop_speedup_p01": (SMALL, _small_tenth),
    "cpu_loop_speedup_p1": (SMALL, _small_all),
    "cpu_loop_step_ratio": (SMALL, _step),
    "cpu_fused_speedup_n100": _one(CPU_LARGE, "fused, all pairs", "fused, p=0.1"),
    "cpu_exact_fused_advantage_n100": _one(CPU_LARGE, "loop, p=0.1", "fused, all pairs"),
}
GPU_NUMBERS: dict[str, tuple[Sequence[int], Callable[[Rows], Number]]] = {
    "gpu_loop_law_error": (LARGE, _law),
    "gpu_loop_exponent": (LARGE, _exponent),
    "gpu_loop_seconds_n500": ((GPU_LARGE,), _seconds),
    "gpu_loop_speedup_n500": _one(GPU_LARGE, "loop, all pairs", "loop, p=0.1"),
    "gpu_fused_speedup_n500": _one(GPU_LARGE, "fused, all pairs", "fused, p=0.1"),
    "exact_fused_advantage_n500": _one(GPU_LARGE, "loop, p=0.1", "fused, all pairs"),
    # What 64 times the arithmetic adds to the loop: near 1 where it only waits for launches.
    "gpu_loop_arithmetic": _one(64, "loop, all pairs", f"loop, {FEW} observations"),
}
