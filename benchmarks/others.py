"""Exact total-variation SND by sorting, and the graph builders."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, take_turns
from graphsnd import graphs
from graphsnd.behavior import Categorical
from graphsnd.graphs import Graph
from graphsnd.metric import snd

CATEGORIES = 5
SPARSE_FROM, SPARSE_DEGREE = 10_000, 10  # team size from which graphs get this degree instead of a tenth of the pairs


def by_sorting(
    n: int, observations: int, device: torch.device, *, seed: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Time exact SND of ``n`` agents with five discrete actions, checks of the input included."""
    generator = torch.Generator(device).manual_seed(seed)
    probs = torch.rand(observations, n, CATEGORIES, generator=generator, device=device) + 0.01
    team = Categorical(probs / probs.sum(dim=-1, keepdim=True))
    pairs = n * (n - 1) / 2 * observations
    found = take_turns(
        [Contestant("sorted", lambda: snd(team), pairs=pairs)], Clock(device), rounds=rounds, seconds=seconds
    )["sorted"]
    unit = found["median_s"] / (n * math.log2(n) * observations)
    return {"n": n, "observations": observations, "categories": CATEGORIES, "s_per_n_log2_n": unit, **found}


def builders(n: int, device: torch.device, *, seed: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Time every way to draw or find a graph on ``n`` agents, kept on ``device``."""
    pairs = n * (n - 1) // 2
    degree = SPARSE_DEGREE if n >= SPARSE_FROM else max(1, round((n - 1) / 10))
    degree += n * degree % 2
    m = n * degree // 2
    drawn = torch.Generator(device).manual_seed(seed)
    positions = torch.rand(n, 2, generator=drawn, device=device)
    host = torch.Generator().manual_seed(seed)  # regular graphs are always drawn on the CPU
    ways: dict[str, Callable[[], Graph]] = {
        "bernoulli": lambda: graphs.bernoulli(n, m / pairs, seed=drawn),
        "uniform": lambda: graphs.uniform(n, m, seed=drawn),
        "random_regular": lambda: graphs.random_regular(n, degree, seed=host, device=device),
        "knn": lambda: graphs.knn(positions, degree),
    }
    contestants = [Contestant(name, way) for name, way in ways.items()]
    found = take_turns(contestants, Clock(device), rounds=rounds, seconds=seconds)
    return {"n": n, "degree": degree, "edges": m, "builders": found}
