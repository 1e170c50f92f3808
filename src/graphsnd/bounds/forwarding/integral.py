r"""Integral routings: one path for every pair, rerouted until no edge stands out.

Pairs are routed in turn along the cheapest path, where an edge costs one hop plus a price exponential in its load.
Afterwards only the pairs that cross the most loaded edges are taken up and routed again, alone, at the prices that
the others leave: every move lowers the sum of the prices paid, so that a pass cannot cycle. A hop is worth much at
first, which keeps paths short and the total load low; when passes stop helping it becomes cheaper, and detours appear.
In the end prices are shaken a little between passes: pairs wander among paths that cost the same until a gap opens.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.forwarding.compiled import loops
from graphsnd.bounds.forwarding.network import Floats, Ints, Network
from graphsnd.errors import InputError

CHUNK = 16  # targets that share a tree while the first routing is made
SHARPNESS = 20.0  # e-folds of the price between no load and the level
HOPS = (10.0, 3.0, 1.0, 0.3)  # what a hop costs, in prices at the level
JITTER = (0.01, 0.01, 0.01, 0.01, 0.1)  # relative changes of the capacities in prices, in turn, when nothing else helps
ENTRIES = 2 * 10**8  # most edges over all paths that are kept in memory


@dataclass(frozen=True, eq=False)
class Routing:
    """One path for every unordered pair of agents."""

    n: int  # agents
    edges: Tensor  # int64 [m, 2], those of the graph
    offsets: Tensor  # int64 [pairs + 1], pairs (0, 1), (0, 2), ..., (n-2, n-1)
    steps: Tensor  # int64 [total], numbers of edges; those of pair p are steps[offsets[p] : offsets[p + 1]]

    def path(self, i: int, j: int) -> list[int]:
        """The agents on the path from ``i`` to ``j``, both included."""
        if not (0 <= i < self.n and 0 <= j < self.n and i != j):
            raise InputError("i, j", f"to be two different agents in 0 .. {self.n - 1}", (i, j))
        first, last = min(i, j), max(i, j)
        pair = first * self.n - first * (first + 1) // 2 + last - first - 1
        agents = [last]
        for a, b in self.edges[self.steps[self.offsets[pair] : self.offsets[pair + 1]]].tolist():
            agents.append(b if a == agents[-1] else a)
        return agents if i == last else agents[::-1]

    def loads(self) -> Tensor:
        """The number of paths across every edge, int64 ``[m]``."""
        return torch.bincount(self.steps, minlength=len(self.edges))


class Paths:
    """Paths of all pairs in one growing pool."""

    def __init__(self, net: Network) -> None:
        pairs = net.n * (net.n - 1) // 2
        self.net = net
        self.start: Ints = np.zeros(pairs, np.int64)
        self.hops: Ints = np.full(pairs, -1, np.int64)
        self.load: Floats = np.zeros(net.m)
        self.pool = np.empty(4 * pairs + CHUNK * net.n, np.int32)
        self.used = 0
        self.rng = np.random.default_rng(0)

    @property
    def worst(self) -> float:
        """The largest relative load."""
        return float((self.load / self.net.capacity).max())

    def sweep(self, level: float, hop: float, limit: float, chunk: int, jitter: float = 0.0) -> None:
        """One pass of :func:`loops.route`, begun again with a larger pool when it is full. ``jitter`` shakes prices."""
        worth = self.net.capacity * (1 + jitter * self.rng.random(self.net.m))
        while True:
            full, self.used = loops.route(
                *self.net.arcs, self.net.capacity, worth, self.load, level, SHARPNESS / level, hop, limit, chunk,
                self.pool, self.start, self.hops, self.used,
            )  # fmt: skip
            if not full:
                return
            self._grow()

    def packed(self) -> tuple[Ints, Ints]:
        """Offsets ``[pairs + 1]`` and the edges of all paths, without gaps."""
        hops = np.maximum(self.hops, 0)
        offsets = np.concatenate([[0], np.cumsum(hops)])
        source = np.repeat(self.start - offsets[:-1], hops) + np.arange(offsets[-1])
        return offsets, self.pool[source]

    def _grow(self) -> None:
        offsets, steps = self.packed()
        self.pool = np.empty(2 * len(steps) + CHUNK * self.net.n + len(self.start), np.int32)
        self.pool[: len(steps)] = steps
        self.start, self.used = offsets[:-1].copy(), len(steps)


def route(net: Network, lower: float, passes: int, deadline: float) -> tuple[float, tuple[Ints, Ints]]:
    """Look for an integral routing with small congestion.

    Args:
        net: The network.
        lower: A lower bound on the index: no routing is sought below it.
        passes: Most passes over the pairs after the first.
        deadline: Time of ``time.monotonic()`` at which to stop.

    Returns:
        The largest relative load, and the offsets and edges of the paths.
    """
    goal, unit = (float(math.ceil(lower)), 1.0) if net.unit else (lower, lower / 100)
    paths = Paths(net)
    paths.sweep(lower, HOPS[0], math.inf, CHUNK)
    worst, best = paths.worst, paths.packed()
    hops, shaken = list(HOPS), 0
    for _ in range(passes):
        if worst <= goal or time.monotonic() > deadline:
            break
        if hops:
            paths.sweep(lower, hops[0], goal + (paths.worst - goal) // (2 * unit) * unit, 1)
        else:
            paths.sweep(lower, 1.0, worst - 2 * unit, 1, JITTER[shaken % len(JITTER)])
            shaken += 1
        if paths.worst < worst:
            worst, best = paths.worst, paths.packed()
        elif hops:
            hops.pop(0)
    return worst, best


def routing_of(net: Network, paths: tuple[Ints, Ints]) -> Routing:
    """The paths in tensors."""
    offsets, steps = paths
    return Routing(
        net.n, torch.from_numpy(net.edges), torch.from_numpy(offsets), torch.from_numpy(steps.astype(np.int64))
    )
