"""How fast is exact total-variation SND by sorting, which needs no pairs?

Times are seconds of one call, checks of the input included.

s_per_n_log2_n: per observation.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from rich.table import Table

from benchmarks.timing import Clock, Contestant, Options, take_turns
from graphsnd.behavior import Categorical
from graphsnd.metric import snd
from graphsnd.plots.formatting import format_duration
from graphsnd.plots.tables import table

CATEGORIES = 5


def measure(options: Options) -> dict[str, Any]:
    """Time teams of growing size."""
    sizes = (100, 1000) if options.quick else (1000, 10_000, 100_000, *([1_000_000] if options.full else []))
    return {"sorted": options.each("exact total-variation SND", sizes, lambda n: time_sorting(n, options))}


def time_sorting(n: int, options: Options) -> dict[str, Any]:
    """Time exact SND of ``n`` agents with five discrete actions."""
    device, observations = options.device, 256 if options.quick else 64 if n < 1_000_000 else 8
    generator = torch.Generator(device).manual_seed(options.seed)
    probs = torch.rand(observations, n, CATEGORIES, generator=generator, device=device) + 0.01
    team = Categorical(probs / probs.sum(dim=-1, keepdim=True))
    contestant = Contestant("sorted", lambda: snd(team), pairs=n * (n - 1) / 2 * observations)
    times = take_turns([contestant], Clock(device), **options.patience)["sorted"]
    unit = times["median_s"] / (n * math.log2(n) * observations)
    return {"n": n, "observations": observations, "categories": CATEGORIES, "s_per_n_log2_n": unit, **times}


def tables(result: dict[str, Any]) -> dict[str, Table]:
    """Return the time of each team size."""
    rows = []
    for row in result["sorted"]:
        unit = f"{1e9 * row['s_per_n_log2_n']:.2f} ns"
        rows.append((f"{row['n']:,}", f"{row['observations']:,}", format_duration(row["median_s"]), unit))
    title = f"Exact total-variation SND by sorting, {CATEGORIES} categories"
    return {title: table(("n", "obs.", "exact TVD-SND", "per n log2 n"), rows, align=">")}
