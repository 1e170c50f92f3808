"""What does a graph that is built again at each observation cost beside one fixed graph?

Times are seconds of one call, checks of the input included. All agents move, knn:5 joins them.

search: positions to graphs, one for each observation.
moving: the search, then Graph-SND on its graphs.
fixed: the same search, then Graph-SND on one fixed graph with as many edges at each observation.
moving_distances, fixed_distances: Graph-SND alone, of graphs that are there already.
trees: a k-d tree of SciPy for each observation, one after the other, which only finds the neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.timing import Clock, Contestant, Options, Tables, take_turns
from graphsnd.behavior import Deterministic
from graphsnd.graphs import MovingGraph, knn, uniform
from graphsnd.metric import graph_snd

K, FEATURES = 5, 2


def measure(options: Options) -> dict[str, Any]:
    """Time teams of growing size."""
    sizes = (20,) if options.quick else (10, 100, *([1000] if options.full else []))
    return {"moving": options.each("a graph at each observation", sizes, lambda n: time_moving(n, options))}


def time_moving(n: int, options: Options) -> dict[str, Any]:
    """Time ``n`` agents that move."""
    from scipy.spatial import cKDTree

    device, observations = options.device, 64 if options.quick else 4096
    generator = torch.Generator(device).manual_seed(options.seed)
    positions, actions = torch.rand(2, observations, n, FEATURES, generator=generator, device=device)
    team, moving = Deterministic(actions), knn(positions, K)
    assert isinstance(moving, MovingGraph)
    edges = round(moving.m / observations)
    fixed = uniform(n, edges, seed=options.seed, device=device)

    def loop_over_trees() -> None:
        for points in positions.numpy():
            cKDTree(points).query(points, k=K + 1)

    calls: dict[str, Callable[[], object]] = {
        "search": lambda: knn(positions, K),
        "moving": lambda: graph_snd(team, knn(positions, K)),
        "fixed": lambda: (knn(positions, K), graph_snd(team, fixed)),
        "moving_distances": lambda: graph_snd(team, moving),
        "fixed_distances": lambda: graph_snd(team, fixed),
    }
    if device.type == "cpu":
        calls["trees"] = loop_over_trees
    times = take_turns([Contestant(*call) for call in calls.items()], Clock(device), **options.patience)
    ratio = times["moving"]["median_s"] / times["fixed"]["median_s"]
    sizes = {"n": n, "observations": observations, "edges": edges, "threads": torch.get_num_threads()}
    return sizes | {"moving_to_fixed": ratio} | {"contestants": times}


def tables(result: dict[str, Any]) -> Tables:
    """Return the times of each team size."""
    names = ("search", "moving", "fixed", "moving_distances", "fixed_distances", "trees")
    columns = ("n", "observations", "edges", *(f"contestants.{name}" for name in names), "moving_to_fixed")
    return {f"knn:{K} at each observation": (result["moving"], columns)}
