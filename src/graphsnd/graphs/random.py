"""Random graphs: which pairs to measure when there are too many to measure all.

Each draw gives every pair the same chance, ``Graph.inclusion``, which is what an unbiased estimate divides by. All
take ``seed``: an int, which always gives the same graph on the same kind of device, or a ``torch.Generator``, which is
advanced, so that repeated calls give new graphs. Global random state is neither read nor written.
"""

from __future__ import annotations

import math

import torch

from graphsnd.errors import InputError, check_agents, check_integer, check_number
from graphsnd.graphs import pairs
from graphsnd.graphs.graph import Graph, Sampling, copy_with
from graphsnd.graphs.pairs import (
    LARGEST,
    THINNEST,
    Device,
    check_degree,
    check_edges,
    distinct,
    geometric_skips,
    integers,
    marked_pairs,
    source,
)
from graphsnd.graphs.regular import regular_pairs


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
        edges = pairs.unrank(ranks, n)
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
    ranks = pairs.others(ranks, n) if m > count - m else ranks
    edges = pairs.unrank(ranks, n).to(target)
    return Graph._trusted(n, edges, inclusion=m / count, family="uniform", sampling=Sampling.UNIFORM)


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
    ranks = pairs.others(ranks, n) if degree > n - 1 - degree else ranks
    edges = pairs.unrank(ranks, n).to(target)
    inclusion = degree / (n - 1)
    return Graph._trusted(n, edges, inclusion=inclusion, family="random_regular", sampling=Sampling.RELABELLED)


def relabelled(graph: Graph, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Return the same graph with its agents numbered at random, so that its mean estimates SND without bias.

    Every pair is then an edge with probability m / (n(n-1)/2), kept in ``inclusion``. Which two pairs are edges
    *together* depends on the graph, so the edges are no simple random sample: ``sampling`` says so, and the variance is
    that of :func:`graphsnd.bounds.relabelling_variance`.

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
