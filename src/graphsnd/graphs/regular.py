"""Random regular graphs: the configuration model, then switches until the graph is simple.

The pairing is on the host, with NumPy and numba: a graph of some thousand edges is done before torch has started its
operations.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.errors import check_agents
from graphsnd.graphs import pairs
from graphsnd.graphs.edges import check_degree
from graphsnd.graphs.graph import Graph, Sampling, check_edges
from graphsnd.graphs.random import Device, integers, others, rank, source, unrank

Ints = NDArray[np.int64]
# Rounds without a single accepted switch before the pairing is thrown away. Even in the densest case, half of all
# pairs, a switch with a random edge is accepted about one time in four: a longer drought means that none is possible.
PATIENCE = 64
# Repairs leave the pairing's law, and how much shows depends on the share of repaired edges: the repair alone gives
# K_3,3 half its due among the cubic graphs on 6 agents, is 12 % short of triangles on 10, and not measurably off past
# 250 edges. Below that random switches go on for a few rounds of every edge, which removes it.
SMALL, SWITCHES_PER_EDGE = 256, 8
SPARE = 64  # random numbers for repairs, beside one for each stub


def random_regular(n: int, degree: int, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Draw a simple graph in which every agent has exactly ``degree`` neighbours.

    Stubs are paired at random (the configuration model) and the few loops and repeated edges are switched away with
    random good edges. No agent is treated differently from another, so every pair has probability degree/(n-1) exactly;
    the law over whole graphs is close to uniform, not exactly so.

    Args:
        n: The number of agents, at least 2.
        degree: The neighbours of each agent, 1 .. n-1; n * degree must be even.
        seed: An int, or a generator to advance.
        device: Device of the graph. With an int seed it is drawn on the CPU, so every device gets the same graph.

    Raises:
        InputError: For an odd n * degree (it is never rounded), or a degree outside 1 .. n-1.

    Example:
        >>> random_regular(6, 3, seed=0).degrees()
        tensor([3, 3, 3, 3, 3, 3])
    """
    n = check_agents(n)
    degree = check_degree(n, degree)
    check_edges("degree", n * degree / 2)
    generator, target = source(seed, device, host=True)
    ranks = regular_pairs(n, min(degree, n - 1 - degree), generator)
    ranks = others(ranks, n) if degree > n - 1 - degree else ranks
    edges = unrank(ranks, n).to(target)
    inclusion = degree / (n - 1)
    return Graph._trusted(n, edges, inclusion=inclusion, family="random_regular", sampling=Sampling.RELABELLED)


def regular_pairs(n: int, degree: int, generator: torch.Generator) -> Tensor:
    """Return the sorted ranks of a simple graph with all degrees equal; degree <= (n-1)/2 and n * degree even."""
    small = n * degree <= 2 * SMALL
    while True:
        keys = _draw_small(n, degree, generator) if small else _repair(_pairing(n, degree, generator), n, generator)
        if keys is not None:
            return rank(pairs.from_keys(torch.from_numpy(keys), n), n).to(generator.device)


def _keys(ends: Ints, n: int) -> Ints:
    """Return one integer per unordered pair of ``[m, 2]``."""
    return np.minimum(ends[:, 0], ends[:, 1]) * n + np.maximum(ends[:, 0], ends[:, 1])


def _draw(size: int, high: int, generator: torch.Generator) -> Ints:
    drawn: Ints = integers(size, high, generator).cpu().numpy()
    return drawn


def _pairing(n: int, degree: int, generator: torch.Generator) -> Ints:
    """Return a uniform perfect matching of n * degree stubs, as a multigraph ``[m, 2]``."""
    # Sorting random keys, not randperm, whose Fisher-Yates reduces 32 bits modulo the remaining length. The low bits
    # become the stub's number: sorting values takes a fifth of the time of sorting places.
    size = n * degree
    low = (1 << size.bit_length()) - 1
    stubs = np.sort(_draw(size, 2**63 - 1, generator) & ~low | np.arange(size)) & low
    return (stubs // max(degree, 1)).reshape(-1, 2)


def _repair(ends: Ints, n: int, generator: torch.Generator) -> Ints | None:
    """Switch loops and repeats away, return sorted keys; None after PATIENCE rounds without progress."""
    idle = 0
    while idle < PATIENCE:
        keys = _keys(ends, n)
        bad = _repeats(keys) | (ends[:, 0] == ends[:, 1])
        keys.sort()
        if not bad.any():
            return keys
        idle = 0 if _switch(ends, keys, bad, n, generator) else idle + 1
    return None


def _switch(ends: Ints, present: Ints, bad: NDArray[np.bool_], n: int, generator: torch.Generator) -> int:
    """Replace bad edges ab and random good edges cd by ac and bd, in place, where all stays simple; return how many."""
    wrong = bad.nonzero()[0]
    partner = _draw(len(wrong), len(ends), generator)
    flip = _draw(len(wrong), 2, generator)
    a, b = ends[wrong].T
    c, d = ends[partner, flip], ends[partner, 1 - flip]
    proposed = _keys(np.stack([np.concatenate([a, b]), np.concatenate([c, d])], axis=1), n)
    # All proposals of a round are taken at once, so none may make what is there or what another one makes.
    exists = present[np.minimum(np.searchsorted(present, proposed), len(present) - 1)] == proposed
    clash = (exists | _repeats(proposed)).reshape(2, -1).any(0)
    refused = clash | (a == c) | (b == d) | bad[partner] | _repeats(partner)
    good = (~refused).nonzero()[0]
    ends[wrong[good], 1] = c[good]
    ends[partner[good], 0], ends[partner[good], 1] = b[good], d[good]
    return len(good)


def _repeats(values: Ints) -> NDArray[np.bool_]:
    """Mark every value that equals an earlier one."""
    return pairs.repeats(torch.from_numpy(values)).numpy()


def _draw_small(n: int, degree: int, generator: torch.Generator) -> Ints | None:
    """Return the sorted keys of a small graph, or None where the random numbers ran out.

    Edge by edge, with random numbers drawn at once: a dozen operations on arrays take longer.
    """
    size = n * degree
    words = _draw((2 + SWITCHES_PER_EDGE) * size + SPARE, 2**63 - 1, generator)
    edges: Ints = np.arange(size) // max(degree, 1)
    done = _compiled()(edges, words, np.zeros(n * n, dtype=np.uint8), n, SWITCHES_PER_EDGE * size // 2)
    return np.sort(_keys(edges.reshape(-1, 2), n)) if done else None


@lru_cache
def _compiled() -> Any:
    from numba import njit  # importing graphsnd must not load it

    return njit(cache=True)(_switch_all)


def _switch_all(edges: Any, words: Any, met: Any, n: int, switches: int) -> bool:
    """Shuffle stubs into pairs, switch loops and repeats away, then take random switches, in place.

    The stationary law of switches of a simple graph is uniform over all such graphs.

    Args:
        edges: The agent of every stub in order; afterwards two of them after each other are an edge.
        words: Random numbers from 0 to 2**63 - 2.
        met: ``n * n`` zeros, to count the edges of each pair in.
        n: Number of agents.
        switches: Number of switches to try once the graph is simple.

    Returns:
        False where the words ran out.
    """
    size = len(edges)
    used = size
    for at in range(1, size):
        other = words[at] % (at + 1)
        edges[at], edges[other] = edges[other], edges[at]
    for at in range(0, size, 2):
        a, b = edges[at], edges[at + 1]
        met[a * n + b] += 1
        met[b * n + a] += a != b
    at = 0
    while at < size or switches > 0:
        if used + 2 > len(words):
            return False
        first = at
        if at >= size:
            switches -= 1
            first = words[used] % size // 2 * 2
            used += 1
        elif edges[at] != edges[at + 1] and met[edges[at] * n + edges[at + 1]] == 1:
            at += 2
            continue
        second = words[used] % size  # an edge, and one of its directions
        used += 1
        a, b, c, d = edges[first], edges[first + 1], edges[second], edges[second ^ 1]
        # A switch that fails is a step that stays put: skipping it instead would favour graphs with few switches.
        if a == c or b == d or met[a * n + c] or met[b * n + d] or (a == b and c == d) or (a == d and b == c):
            continue
        for i, j, change in ((a, b, -1), (c, d, -1), (a, c, 1), (b, d, 1)):
            met[i * n + j] += change
            met[j * n + i] += change * (i != j)
        edges[first + 1], edges[second // 2 * 2], edges[second // 2 * 2 + 1] = c, b, d
    return True
