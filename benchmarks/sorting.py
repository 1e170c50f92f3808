"""How fast is exact total-variation SND by sorting, which needs no pairs?

Times are seconds of one call, checks of the input included.

ns_per_n_log2_n: nanoseconds, per observation.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, Options, Tables, take_turns
from graphsnd.behavior import Categorical
from graphsnd.metric import snd

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
    unit = 1e9 * times["median_s"] / (n * math.log2(n) * observations)
    return {"n": n, "observations": observations, "categories": CATEGORIES, "ns_per_n_log2_n": unit, "time": times}


def tables(result: dict[str, Any]) -> Tables:
    """Return the time of each team size."""
    columns = ("n", "observations", "categories", "time", "ns_per_n_log2_n")
    return {"Exact total-variation SND by sorting": (result["sorted"], columns)}
