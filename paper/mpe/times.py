"""What the graphs of the panel save: all pairs against a new graph, in a Python loop and in one fused call.

For the loop a graph is drawn as code with such a loop draws it, with a random number for every pair or by networkx,
which for ten agents is many times faster than the builders behind the fused call. These are made for large graphs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor

from graphsnd.behavior import Categorical
from graphsnd.graphs import Graph
from graphsnd.metric import graph_snd, snd
from graphsnd.training.streams import hashed
from paper.mpe.panel import ESTIMATORS, Estimator
from paper.rows import encode
from paper.shared.pairloop import all_pairs, some_pairs
from paper.shared.stopwatch import take_turns

GRAPH_SEED, WARM_CALLS, RESAMPLES = 77, 3, 2000


def measure_times(team: Categorical, trials: int) -> dict[str, Any]:
    """Time all pairs and every graph of the panel, drawn inside the timed part.

    Args:
        team: What the agents do on some observations.
        trials: How often; all calls take turns.

    Returns:
        For ``"loop, all pairs"``, ``"loop, bernoulli_010"``, ``"fused, all pairs"`` and so on the median, quartiles and
        mean of the seconds, the mean number of pairs, and the ``speedup`` against all pairs done in the same way.
    """
    calls = _calls(team)
    for _ in range(WARM_CALLS):
        for call in calls.values():
            call()
    times = encode(take_turns(calls, trials=dict.fromkeys(calls, trials), device=torch.device("cpu")))
    found = {}
    for name, one in times.items():
        kept = {key: value for key, value in one.items() if key not in ("seconds", "pairs")}
        whole = times[f"{name.partition(',')[0]}, all pairs"]["seconds"]
        ratio = speedup(whole, one["seconds"])
        found[name] = {**kept, "mean_pairs": sum(one["pairs"]) / trials, "speedup": ratio}
    return found


def speedup(full: Sequence[float], part: Sequence[float]) -> dict[str, Any]:
    """How many times faster the second is, by medians: calls of microseconds are hit hard by whoever else computes.

    Returns:
        ``value``, ``low`` and ``high``, a bootstrap over trials, and ``kind``.

    Example:
        >>> speedup([4.0, 4.0, 40.0], [2.0, 2.0, 2.0])["value"]
        2.0
    """
    above, below = np.array(full), np.array(part)
    drawn = np.random.default_rng(0).integers(len(above), size=(RESAMPLES, len(above)))
    low, high = np.quantile(np.median(above[drawn], axis=1) / np.median(below[drawn], axis=1), (0.025, 0.975))
    kind = f"ratio of medians, 95% bootstrap interval, {len(above)} trials"
    return {"value": float(np.median(above) / np.median(below)), "low": float(low), "high": float(high), "kind": kind}


def loop_mean(probs: Tensor, pairs: Iterable[Sequence[int]]) -> float:
    """The mean total variation over pairs, one after the other in Python; 0 when there are none.

    Args:
        probs: ``[agents, observations, actions]``.
        pairs: Indices of two agents each.

    Example:
        >>> loop_mean(torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]]), all_pairs(3).tolist())
        0.6666666666666666
    """
    total, count = 0.0, 0
    for i, j in pairs:
        total += (probs[i] - probs[j]).abs().sum(dim=-1).mean().item() / 2
        count += 1
    return total / count if count else 0.0


def _calls(team: Categorical) -> dict[str, Callable[[], int]]:
    n, probs = team.agents, team.probs.flatten(0, -3).transpose(0, 1).contiguous()  # a tensor for every agent
    everyone = all_pairs(n).tolist()
    calls: dict[str, Callable[[], int]] = {
        "loop, all pairs": partial(_loop, probs, lambda: everyone),
        "fused, all pairs": partial(_fused_all, team),
    }
    for place, estimator in enumerate(ESTIMATORS):
        calls[f"loop, {estimator.name}"] = partial(_loop, probs, _edges(estimator, n, place))
        new = partial(estimator.build, n, hashed(GRAPH_SEED, place))
        calls[f"fused, {estimator.name}"] = partial(_fused_graph, team, new)
    return calls


def _edges(estimator: Estimator, n: int, place: int) -> Callable[[], Sequence[Sequence[int]]]:
    """How a loop draws the pairs that it goes through."""
    if estimator.degree is None:
        return partial(some_pairs, all_pairs(n), estimator.share(n), np.random.default_rng((GRAPH_SEED, place)))
    drawn = random.Random(GRAPH_SEED)
    return lambda: list(nx.random_regular_graph(estimator.degree, n, seed=drawn).edges)


def _loop(probs: Tensor, edges: Callable[[], Sequence[Sequence[int]]]) -> int:
    pairs = edges()
    loop_mean(probs, pairs)
    return len(pairs)


def _fused_all(team: Categorical) -> int:
    float(snd(team))
    return team.agents * (team.agents - 1) // 2


def _fused_graph(team: Categorical, new: Callable[[], Graph]) -> int:
    graph = new()
    float(graph_snd(team, graph))
    return graph.m
