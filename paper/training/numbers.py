"""The numbers of the n = 100 run that claims are held against."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from paper.experiment import Number


def numbers(data: dict[str, Any]) -> dict[str, Number]:
    """From what the experiment wrote down."""
    return {**_tracking(data), **_values(data), **_times(data)}


def gaps(log: Sequence[dict[str, Any]]) -> list[float]:
    """Graph-SND over SND less 1, for every measurement whose graph has an edge.

    Example:
        >>> gaps([{"snd": 2.0, "graph_snd": 2.1}, {"snd": 2.0, "graph_snd": 0.0}])
        [0.050000000000000044]
    """
    return [row["graph_snd"] / row["snd"] - 1 for row in log if row["graph_snd"]]


def by_seed(log: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The measurements of every seed, in order."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in log:
        found.setdefault(row["seed"], []).append(row)
    return found


def _tracking(data: dict[str, Any]) -> dict[str, Number]:
    log = data["log"]
    found, sizes = {}, [abs(gap) for gap in gaps(log)]
    found["largest_gap"] = Number(max(sizes), kind=f"largest of {len(sizes)}")
    found["mean_gap"] = Number(statistics.fmean(sizes), kind=f"mean of {len(sizes)}")
    rms = math.sqrt(statistics.fmean(size**2 for size in sizes))
    found["gap_rms"] = Number(rms, kind=f"root mean square of {len(sizes)}")
    # The standard error is known at both ends; in between it moves from one to the other.
    ends = [end["expected"] for end in data["ends"]]
    found["expected_gap"] = Number(statistics.fmean(ends), min(ends), max(ends), kind="range of first and last teams")
    found["gap_over_expected"] = Number(rms / statistics.fmean(ends), rms / max(ends), rms / min(ends))
    curves = [[(row["snd"], row["graph_snd"]) for row in rows] for rows in by_seed(log).values()]
    likeness = [float(np.corrcoef(np.array(curve).T)[0, 1]) for curve in curves if len(curve) > 2]
    if likeness:
        found["curve_correlation"] = Number(min(likeness), min(likeness), max(likeness), kind=_seeds(likeness))
    return found


def _values(data: dict[str, Any]) -> dict[str, Number]:
    runs, last = by_seed(data["log"]).values(), max(end["iteration"] for end in data["ends"])
    growth = [rows[-1]["snd"] / rows[0]["snd"] for rows in runs]
    ends = [end for end in data["ends"] if end["iteration"] == last]
    errors = [abs(end["own_snd"] / end["snd"] - 1) for end in ends]
    return {
        "snd_growth": Number(min(growth), min(growth), max(growth), "x", _seeds(growth)),
        "first_snd": _mean([rows[0]["snd"] for rows in runs]),
        "final_snd": _mean([rows[-1]["snd"] for rows in runs]),
        "own_observation_error": _mean(errors),
        "final_snd_own_observations": _mean([end["own_snd"] for end in ends]),
        "final_reward": _mean([rows[-1]["reward"] for rows in runs]),
    }


def _times(data: dict[str, Any]) -> dict[str, Number]:
    found = {"fused_speedup": _median([row["snd_seconds"] / row["graph_snd_seconds"] for row in data["log"]])}
    for way, name in (("loop", "loop_speedup"), ("fused", "fused_speedup_here")):
        found[name] = _median([ratio for times in data["times"] for ratio in ratios(times["calls"], way)])
    counts = [count for times in data["times"] for count in times["calls"]["loop, graph"]["pairs"] if count]
    whole = data["times"][0]["calls"]["loop, all"]["pairs"][0]
    found["pairs_ratio"] = _median([whole / count for count in counts])
    took = data["training_seconds"]
    measuring = took["answers"] + took["pairs"]
    found["metric_share"] = Number(measuring / (took["training"] + measuring))
    found["pairs_share_of_metric"] = Number(took["pairs"] / measuring)
    return found


def ratios(calls: dict[str, Any], way: str) -> list[float]:
    """Time of all pairs over that of a graph, trial by trial."""
    full, part = (calls[f"{way}, {which}"]["seconds"] for which in ("all", "graph"))
    return [above / below for above, below in zip(full, part, strict=True)]


def _median(values: Sequence[float]) -> Number:
    kind = f"median, range of {len(values)} measurements"
    return Number(statistics.median(values), min(values), max(values), "x", kind)


def _mean(values: Sequence[float]) -> Number:
    return Number(statistics.fmean(values), min(values), max(values), kind=_seeds(values))


def _seeds(values: Sequence[float]) -> str:
    return "one seed" if len(values) == 1 else f"range of {len(values)} seeds"
