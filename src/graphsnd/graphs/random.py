"""Random graphs: which pairs to measure when there are too many to measure all.

Each draw gives every pair the same chance, ``Graph.inclusion``, which is what an unbiased estimate divides by. All
take ``seed``: an int, which always gives the same graph on the same kind of device, or a ``torch.Generator``, which is
advanced, so that repeated calls give new graphs. Global random state is neither read nor written.

Pairs of n agents are numbered 0 .. n(n-1)/2 - 1 in lexicographic order. A random design samples numbers, not pairs;
sorted numbers unrank to sorted edges, so nothing has to be sorted twice.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsnd.errors import InputError, check_agents, check_device, check_integer, check_number
from graphsnd.graphs import pairs
from graphsnd.graphs.graph import Graph, Sampling, check_edges, copy_with

LISTED = 512  # agents whose pairs are kept in a table, 2 MB at most
THINNEST, LARGEST = 1 / 64, 1 << 14  # chance of a pair, and agents, for which a GPU marks all pairs
Device = torch.device | str | None


def bernoulli(n: int, p: float, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Draw every pair independently with probability ``p`` (an Erdős-Rényi graph); it may be empty.

    Time and memory follow the edges that are drawn, not the pairs that are not: the gaps between successes of a
    Bernoulli process are geometric, so they are drawn instead of the failures.

    Args:
        n: The number of agents, at least 2.
        p: The probability of a pair, in (0, 1].
        seed: An int, or a generator to advance.
        device: Device that draws and keeps the graph; the generator's, or torch's default, when None.

    Raises:
        InputError: For p outside (0, 1], n < 2, or a seed that is neither int nor generator.

    Example:
        >>> graph = bernoulli(1000, 0.01, seed=0)
        >>> graph.inclusion, abs(graph.m - 4995) < 5 * 4945**0.5
        (0.01, True)
    """
    n, p = check_agents(n), check_number("p", p, above=0, high=1)
    count = math.comb(n, 2)
    check_edges("p", p * count)
    generator, target = source(seed, device)
    if generator.device.type == "cuda" and p > THINNEST and n <= LARGEST:
        edges = marked_pairs(n, p, generator)
    else:
        ranks = torch.arange(count, device=generator.device) if p == 1.0 else geometric_skips(count, p, generator)
        edges = unrank(ranks, n)
    return Graph._trusted(n, edges.to(target), inclusion=p, family="bernoulli", sampling=Sampling.INDEPENDENT)


def uniform(n: int, m: int, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Draw exactly ``m`` distinct pairs, every set of ``m`` equally likely.

    Args:
        n: The number of agents, at least 2.
        m: The number of edges, 1 .. n(n-1)/2.
        seed: An int, or a generator to advance.
        device: Device that draws and keeps the graph; the generator's, or torch's default, when None.

    Raises:
        InputError: For m outside 1 .. n(n-1)/2, n < 2, or a seed that is neither int nor generator.

    Example:
        >>> uniform(100, 30, seed=0)
        Graph(uniform, n=100, m=30, inclusion=0.00606061)
    """
    n = check_agents(n)
    count = math.comb(n, 2)
    m = check_integer("m", m, f"to be an integer in 1 .. n(n-1)/2 = {count}", low=1, high=count)
    check_edges("m", m)
    generator, target = source(seed, device)
    # Drawing what is left out keeps at least half of all draws new when most pairs are wanted.
    ranks = distinct(min(m, count - m), count, generator)
    ranks = others(ranks, n) if m > count - m else ranks
    edges = unrank(ranks, n).to(target)
    return Graph._trusted(n, edges, inclusion=m / count, family="uniform", sampling=Sampling.UNIFORM)


def relabelled(graph: Graph, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Return the same graph with its agents numbered at random, so that its mean estimates SND without bias.

    Every pair is then an edge with probability m / (n(n-1)/2), kept in ``inclusion``. Which two pairs are edges
    *together* depends on the graph, so the edges are no simple random sample: ``sampling`` says so, and the variance is
    that of :func:`graphsnd.bounds.relabelling.relabelling_variance`.

    Args:
        graph: A graph with an edge and without weights, chosen without looking at the distances: a graph built from
            what the agents do or where they are does not become a fair sample of their distances by this.
        seed: An int, or a generator to advance.
        device: Device of the new graph; with an int seed, that of ``graph`` when None.

    Raises:
        InputError: For a graph with weights or without edges.

    Example:
        >>> relabelled(Graph(5, torch.tensor([[0, 1], [0, 2], [0, 3], [0, 4]])), seed=0).degrees().sort().values
        tensor([1, 1, 1, 1, 4])
    """
    if graph.weights is not None or graph.m == 0:
        raise InputError("graph", "with edges and without weights", repr(graph))
    if device is None and not isinstance(seed, torch.Generator):
        device = graph.device
    generator, target = source(seed, device, host=True)
    labels = integers(graph.n, 2**63 - 1, generator).argsort(stable=True).to(target)
    i, j = labels[graph.edges.to(target)].unbind(1)
    edges = pairs.from_keys(pairs.keys(i, j, graph.n).sort().values, graph.n)
    return copy_with(graph, edges=edges, inclusion=graph.m / graph.pairs, sampling=Sampling.RELABELLED)


def rank(edges: Tensor, n: int) -> Tensor:
    """Return the lexicographic number of each pair ``i < j``.

    Args:
        edges: int64 ``[..., 2]``, each row a pair with i < j.
        n: The number of agents.

    Returns:
        int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.

    Example:
        >>> rank(torch.tensor([[0, 1], [0, 2], [0, 3], [1, 2]]), 4)
        tensor([0, 1, 2, 3])
    """
    i, j = edges.unbind(-1)
    return i * (2 * n - i - 1) // 2 + (j - i - 1)


def unrank(index: Tensor, n: int) -> Tensor:
    """Return the pair with a given lexicographic number. Inverse of :func:`rank`.

    Args:
        index: int64 ``[...]``, each in 0 .. n(n-1)/2 - 1.
        n: The number of agents; exact up to about a billion.

    Returns:
        int64 ``[..., 2]``, each row a pair with i < j.

    Example:
        >>> unrank(torch.tensor([0, 3, 5]), 4).tolist()
        [[0, 1], [1, 2], [2, 3]]
    """
    if index.device.type == "cpu" and n <= LISTED:
        return torch.from_numpy(_listed(n).take(index.numpy(), axis=0))
    return _unrank(index, n)


@lru_cache(maxsize=16)
def _listed(n: int) -> NDArray[np.int64]:
    """Return all pairs of a small team: reading them costs a tenth of computing them."""
    listed: NDArray[np.int64] = _unrank(torch.arange(math.comb(n, 2), device="cpu"), n).numpy()
    return listed


def _unrank(index: Tensor, n: int) -> Tensor:
    from_end = math.comb(n, 2) - 1 - index
    # Counted from the last pair, row k = n - 2 - i begins at the triangular number k(k+1)/2, which a square root finds.
    k = ((torch.sqrt(8.0 * from_end.double() + 1.0) - 1.0) / 2.0).long()
    if n > 2**25:
        # Past 2**53 the argument of the root is rounded, and the floor may land one row off on either side.
        k = torch.where(k * (k + 1) >> 1 > from_end, k - 1, k)
        k = torch.where((k + 1) * (k + 2) >> 1 <= from_end, k + 1, k)
    return torch.stack([n - 2 - k, n - 1 - from_end + (k * (k + 1) >> 1)], -1)


def others(ranks: Tensor, n: int) -> Tensor:
    """Return the ranks of the pairs that ``ranks`` leaves out, in order; n(n-1)/2 bytes of memory.

    Example:
        >>> others(torch.tensor([0, 2, 4]), 4)
        tensor([1, 3, 5])
    """
    absent = torch.ones(math.comb(n, 2), dtype=torch.bool, device=ranks.device)
    absent[ranks] = False
    return absent.nonzero().squeeze(1)


def resolve(device: Device) -> torch.device:
    """Return the device; None is torch's default, as in torch's own factories."""
    return torch.get_default_device() if device is None else check_device(device)


def source(seed: object, device: Device, *, host: bool = False) -> tuple[torch.Generator, torch.device]:
    """Return the generator to draw from and the device the graph ends up on."""
    if isinstance(seed, torch.Generator):
        return seed, seed.device if device is None else check_device(device)
    expected = "to be an int in 0 .. 2**63 - 1 or a torch.Generator"
    number = check_integer("seed", seed, expected, low=0, high=2**63 - 1, fix="Randomness is an argument.")
    target = resolve(device)
    drawn_on = target if target.type == "cuda" and not host else torch.device("cpu")
    return torch.Generator(drawn_on).manual_seed(number), target


def integer_seed(seed: int | torch.Generator) -> int:
    """Return an int as it is, or one drawn from a generator."""
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**62, (), generator=seed, device=seed.device))
    return seed


def integers(size: int, high: int, generator: torch.Generator) -> Tensor:
    """Return uniform draws from 0 .. high-1, int64 ``[size]``.

    ``torch.randint(high)`` reduces 32 random bits modulo ``high`` for some ranges and versions, which for a billion
    pairs favours some of them by a quarter. Reducing 63 bits leaves a bias of high / 2**63.
    """
    bits = torch.randint(2**63 - 1, (size,), generator=generator, device=generator.device)
    return bits.remainder_(high)


def geometric_skips(count: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the successes of ``count`` Bernoulli(p) trials, as sorted positions."""
    rate = -math.log1p(-p)
    slack = 4 * math.sqrt(count * p) + 16
    size, last = int(count * p + slack), -1
    parts = []
    while True:
        u = torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64)
        # torch splits an array between threads and may round the ends of each part differently, and a single gap
        # rounded the other way shifts every edge after it. NumPy takes one thread, so the graph cannot depend on their
        # number; for small graphs it is also faster. Anything past the last trial is past it all the same: the bound
        # keeps the gap of a tiny p inside int64.
        trials: Any
        if u.device.type == "cpu":
            trials = np.minimum(np.log1p(-u.numpy()) / -rate, count).astype(np.int64)
        else:
            trials = (torch.log1p(-u) / -rate).clamp_(max=count).long()
        trials += 1
        trials = trials.cumsum(0) + last
        inside = int((trials < count).sum())
        parts.append(torch.as_tensor(trials[:inside]))
        if inside < size:
            return torch.cat(parts) if len(parts) > 1 else parts[0]
        last, size = int(trials[-1]), int(slack)


def marked_pairs(n: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the pairs that came up when each was drawn, in order; n * n bytes of memory.

    On a GPU: four launches and one wait for the number of pairs, where a launch costs more than a million draws.
    """
    chosen = torch.empty(n, n, dtype=torch.bool, device=generator.device).bernoulli_(p, generator=generator)
    return chosen.triu_(1).nonzero().contiguous()


def distinct(size: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the first ``size`` distinct values of uniform draws from 0 .. count-1, sorted; size <= count/2.

    Which values come first is exchangeable, so the set is exactly uniform: nothing is thinned after the fact.
    """
    slack = int(4 * math.sqrt(size)) + 16
    # On average this many draws show `size` different values; the slack makes one round the rule.
    stream = integers(math.ceil(-count * math.log1p(-size / count)) + slack, count, generator)
    while True:
        values = stream[~pairs.repeats(stream)]
        if len(values) >= size:
            return values[:size].sort().values
        stream = torch.cat([stream, integers(slack, count, generator)])
