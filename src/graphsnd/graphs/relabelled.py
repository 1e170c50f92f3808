"""A fixed graph becomes a sampling design when the agents are numbered at random."""

from __future__ import annotations

import torch

from graphsnd.errors import InputError
from graphsnd.graphs import pairs
from graphsnd.graphs.draws import Device, integers, source
from graphsnd.graphs.graph import Graph, Sampling


def relabelled(graph: Graph, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """The same graph with its agents numbered at random, so that its mean estimates SND without bias.

    Every pair is then an edge with probability m / (n(n-1)/2), kept in ``inclusion``. Which two pairs are edges
    *together* depends on the graph, so the edges are no simple random sample: ``sampling`` says so, and the variance is
    that of :func:`graphsnd.bounds.relabelling_variance`.

    Args:
        graph: A graph with an edge and without weights, chosen without looking at the distances: a graph built from
            what the agents do or where they are does not become a fair sample of their distances by this.
        seed: An int, or a generator to advance.
        device: Where the new graph is kept; with an int seed, where ``graph`` is when None.

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
    inclusion = graph.m / graph.pairs
    return Graph._trusted(graph.n, edges, inclusion=inclusion, family=graph.family, sampling=Sampling.RELABELLED)
