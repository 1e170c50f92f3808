"""The forwarding index with one path for each pair, as the paper defines it: an upper bound by rerouting.

Pairs are routed in turn along the cheapest path, where an edge costs one hop plus a price exponential in its load.
Afterwards only the pairs that cross the most loaded edges are routed again, one by one, at the prices that the others
leave: every move lowers the sum of the prices paid, so that a pass cannot cycle. A hop is expensive at first, which
keeps paths short and the total load low. When passes no longer help, hops become cheaper, and longer paths appear. At
the end prices are perturbed a little between passes, so that pairs move among paths of equal cost until one that
lowers the largest load is found.

The library's :func:`graphsnd.bounds.forwarding_index` bounds the fractional index from both sides; its theorems need no
more.
"""

# Numba gives the compiled functions their types.
# mypy: disallow-untyped-defs=False, disallow-untyped-decorators=False, disallow-incomplete-defs=False
# mypy: check-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import heapq
import math
import time

import numba
import numpy as np

from graphsnd.bounds.forwarding import Network, build_network
from graphsnd.bounds.spectral import Floats, Ints
from graphsnd.graphs import Graph

CHUNK = 16  # targets that share a tree while the first routing is made
SHARPNESS = 20.0  # e-folds of the price between no load and the level
HOPS = (10.0, 3.0, 1.0, 0.3)  # costs of a hop, relative to the price at the level
JITTER = (0.01, 0.01, 0.01, 0.01, 0.1)  # relative changes of the prices, in turn, when nothing else helps
VISITS = 10**6  # visits to pairs in the search; at least 30 passes over all of them

jit = numba.njit(nogil=True, cache=True)


def integral_index(graph: Graph, lower: float, *, seconds: float | None = None) -> float:
    """Return the largest load of the best routing found that gives each pair one path.

    Args:
        graph: Connected graph; its weights are ignored.
        lower: Lower bound on the index, above 0; the search stops when it is reached.
        seconds: Time limit; the current pass is still finished. None: no limit.

    Example:
        >>> from graphsnd import graphs
        >>> integral_index(graphs.circulant(4, shifts=[1]), 2.0)
        3.0
    """
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    goal, paths = float(math.ceil(lower)), Paths(build_network(graph))
    paths.sweep(lower, HOPS[0], math.inf, CHUNK)
    worst, hops, shaken = paths.worst, list(HOPS), 0
    for _ in range(max(30, min(300, 2 * VISITS // (graph.n * (graph.n - 1))))):
        if worst <= goal or time.monotonic() > deadline:
            break
        if hops:
            paths.sweep(lower, hops[0], goal + (paths.worst - goal) // 2, 1)
        else:
            paths.sweep(lower, 1.0, worst - 2, 1, JITTER[shaken % len(JITTER)])
            shaken += 1
        if paths.worst < worst:
            worst = paths.worst
        elif hops:
            hops.pop(0)
    return worst


class Paths:
    """Paths of all pairs: the edges of pair p, from its target back, are ``steps[p, : hops[p]]``; -1 hops: none yet."""

    def __init__(self, net: Network) -> None:
        pairs, arcs = net.n * (net.n - 1) // 2, net.arcs
        self.arcs = arcs.indptr.astype(np.int64), arcs.indices.astype(np.int64), arcs.data
        self.load: Floats = np.zeros(net.m)
        self.hops: Ints = np.full(pairs, -1, np.int64)
        # A path has n - 1 edges at most; only written entries take memory.
        self.steps = np.empty((pairs, net.n - 1), np.int32)
        self.rng = np.random.default_rng(0)

    @property
    def worst(self) -> float:
        """Return the largest load."""
        return float(self.load.max())

    def sweep(self, level: float, hop: float, limit: float, chunk: int, jitter: float = 0.0) -> None:
        """Run one pass of :func:`route`. ``jitter`` perturbs prices."""
        worth = 1 + jitter * self.rng.random(len(self.load))
        route(*self.arcs, worth, self.load, level, SHARPNESS / level, hop, limit, chunk, self.steps, self.hops)


@jit
def price(load, worth, level, sharpness, hop):
    """Return the price of one more path on an edge: ``hop`` plus an amount exponential in the load beyond ``level``.

    ``worth`` is 1 up to a small perturbation that breaks ties.
    """
    return (np.exp(min(sharpness * ((load + 1) / worth - level), 60.0)) + hop) / worth


@jit
def route(indptr, heads, ids, worth, load, level, sharpness, hop, limit, chunk, steps, hops):
    """Make one pass over the pairs: route those without a path, and reroute those on an edge loaded above ``limit``.

    Pairs (s, t), s < t, are in the order of rows. ``chunk`` targets of a source share one tree of shortest paths.
    """
    n, m = len(indptr) - 1, len(load)
    batch, prices = np.empty(chunk, np.int64), np.empty(m)
    for e in range(m):
        prices[e] = price(load[e], worth[e], level, sharpness, hop)
    for turn in range(n):
        # From both ends of the numbering: early sources have many targets, late ones few.
        s = turn // 2 if turn % 2 == 0 else n - 1 - turn // 2
        first = s * n - s * (s + 1) // 2 - s - 1
        t = s + 1
        while t < n:
            size = 0
            while t < n and size < chunk:
                if wants(first + t, load, limit, steps, hops):
                    batch[size] = t
                    size += 1
                t += 1
            if size == 0:
                break
            for k in range(size):
                shift(first + batch[k], -1, load, worth, level, sharpness, hop, prices, steps, hops)
            stop = batch[0] if size == 1 else -1
            dist, via, parent = dijkstra(s, stop, indptr, heads, ids, prices)
            for k in range(size):
                pair = first + batch[k]
                if hops[pair] < 0 or dist[batch[k]] < (1 - 1e-12) * cost(pair, prices, steps, hops):
                    write(pair, batch[k], via, parent, steps, hops)
            # Prices are fixed while a chunk is compared, and are updated here.
            for k in range(size):
                shift(first + batch[k], 1, load, worth, level, sharpness, hop, prices, steps, hops)


@jit
def dijkstra(source, stop, indptr, heads, ids, length):
    """Return the shortest paths from ``source`` until ``stop`` is settled (-1: all): dist, via and parent.

    ``via`` is the edge and ``parent`` the vertex before each. SciPy's neither stops early nor runs inside of a compiled
    loop, whose lengths change with every pair.
    """
    n = len(indptr) - 1
    dist, settled = np.full(n, np.inf), np.zeros(n, np.bool_)
    via, parent = np.full(n, -1), np.full(n, -1)
    dist[source] = 0.0
    heap = [(0.0, source)]
    while heap:
        key, u = heapq.heappop(heap)
        if settled[u]:
            continue
        settled[u] = True
        if u == stop:
            break
        for a in range(indptr[u], indptr[u + 1]):
            v = heads[a]
            reached = key + length[ids[a]]
            if not settled[v] and reached < dist[v]:
                dist[v], via[v], parent[v] = reached, ids[a], u
                heapq.heappush(heap, (reached, v))
    return dist, via, parent


@jit
def wants(pair, load, limit, steps, hops):
    """Return whether a pair has no path, or one across an edge loaded above ``limit``."""
    if hops[pair] < 0:
        return True
    above = False
    for e in steps[pair, : hops[pair]]:
        above |= load[e] > limit
    return above


@jit
def shift(pair, by, load, worth, level, sharpness, hop, prices, steps, hops):
    """Add the pair's path to the loads (``by`` = 1) or remove it (-1), and update the prices."""
    for e in steps[pair, : max(hops[pair], 0)]:
        load[e] += by
        prices[e] = price(load[e], worth[e], level, sharpness, hop)


@jit
def cost(pair, prices, steps, hops):
    """Return the price of the pair's path."""
    total = 0.0
    for e in steps[pair, : hops[pair]]:
        total += prices[e]
    return total


@jit
def write(pair, target, via, parent, steps, hops):
    """Store the tree's path to ``target``."""
    k, v = 0, target
    while via[v] >= 0:
        steps[pair, k] = via[v]
        k, v = k + 1, parent[v]
    hops[pair] = k
