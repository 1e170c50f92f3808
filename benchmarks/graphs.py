"""How long does it take to draw a graph, or to find the neighbours of each agent?

Times are seconds of one graph, kept on the device. Builders take turns within a round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, Options, Tables, take_turns
from graphsnd import graphs
from graphsnd.graphs import Graph

SPARSE_FROM, SPARSE_DEGREE = 10_000, 10  # team size from which graphs get this degree instead of a tenth of the pairs


def measure(options: Options) -> dict[str, Any]:
    """Time all builders for teams of growing size."""
    sizes = (50, 100) if options.quick else (50, 100, 500, 100_000)
    return {"graphs": options.each("graphs", sizes, lambda n: time_builders(n, options))}


def time_builders(n: int, options: Options) -> dict[str, Any]:
    """Time each way to draw or find a graph on ``n`` agents."""
    device, pairs = options.device, n * (n - 1) // 2
    degree = SPARSE_DEGREE if n >= SPARSE_FROM else max(1, round((n - 1) / 10))
    degree += n * degree % 2
    m = n * degree // 2
    drawn = torch.Generator(device).manual_seed(options.seed)
    positions = torch.rand(n, 2, generator=drawn, device=device)
    host = torch.Generator().manual_seed(options.seed)  # regular graphs are always drawn on the CPU
    builders: dict[str, Callable[[], Graph]] = {
        "bernoulli": lambda: graphs.bernoulli(n, m / pairs, seed=drawn),
        "uniform": lambda: graphs.uniform(n, m, seed=drawn),
        "random_regular": lambda: graphs.random_regular(n, degree, seed=host, device=device),
        "knn": lambda: graphs.knn(positions, degree),
    }
    contestants = [Contestant(name, build) for name, build in builders.items()]
    times = take_turns(contestants, Clock(device), **options.patience)
    return {"n": n, "degree": degree, "edges": m, "builders": times}


def tables(result: dict[str, Any]) -> Tables:
    """Return the time of each builder and team size."""
    builders = (f"builders.{name}" for name in result["graphs"][0]["builders"])
    return {"Time to draw or find a graph": (result["graphs"], ("n", "degree", *builders))}
