"""SND, Graph-SND and the Horvitz-Thompson estimator."""

from __future__ import annotations

import math

from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Points
from graphsnd.errors import InputError
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import normalised_weights, ratio
from graphsnd.metric.pair_distances import edge_sums, embed_on
from graphsnd.sums import mean


def snd(behavior: Behavior, distance: Distance | str | None = None, *, backend: str = "auto") -> Tensor:
    r"""System Neural Diversity: the mean distance over all pairs of agents.

    .. math:: \mathrm{SND}(D) = \binom{n}{2}^{-1} \sum_{i<j} d(i,j) \qquad (2)

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        distance: A distance or its name; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Scalar tensor, differentiable; exactly 0 for identical agents.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.snd(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor(4.)
    """
    return kernels.pair_mean(embed(behavior, distance), backend=backend)


def by_observation(behavior: Behavior, distance: Distance | str | None = None, *, backend: str = "auto") -> Tensor:
    r"""Return the SND at each observation: in which states do the agents differ?

    .. math:: \mathrm{SND}_o = \binom{n}{2}^{-1} \sum_{i<j} W_2(\pi_i(o), \pi_j(o))

    Their mean is SND.

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        distance: A distance or its name; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        One number for each observation, in the shape that the behaviour's observations have, differentiable.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.metric.by_observation(gs.Deterministic(torch.tensor([[[0.0], [0.0]], [[0.0], [3.0]]])))
        tensor([0., 3.])
    """
    points = embed(behavior, distance)
    totals = kernels.pair_totals(points, backend=backend) / math.comb(points.agents, 2)
    return totals.to(points.result_dtype).reshape(behavior.batch_shape)


def graph_snd(
    behavior: Behavior,
    graph: Graph | MovingGraph,
    distance: Distance | str | None = None,
    *,
    backend: str = "auto",
) -> Tensor:
    r"""Graph-SND: the weighted mean distance over the edges of a graph (Definition 1).

    .. math:: \mathrm{SND}_G(D, G) = \frac{1}{W(G)} \sum_{\{i,j\} \in E} w_{ij}\, d(i,j) \qquad (3)

    On the complete graph with unit weights this is SND (Proposition 2). Where W(G) = 0 it is 0, the paper's
    convention. Where each observation has its own graph, it is the mean over observations of each observation's
    Graph-SND, in which one with W = 0 counts as 0.

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        graph: Graph on the same ``n`` agents, or a graph for each observation.
        distance: A distance or its name; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Scalar tensor, differentiable.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> gs.graph_snd(team, gs.graphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3))
        tensor(3.)
        >>> twice = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]], [[0.0], [1.0], [2.0]]]))
        >>> meeting = gs.graphs.radius(torch.tensor([[[0.0], [1.0], [9.0]], [[0.0], [1.0], [2.0]]]), 1.0)
        >>> gs.graph_snd(twice, meeting)
        tensor(2.)
    """
    points = embed_on(graph, behavior, distance, moving=True)
    return graph_mean(points, graph, backend=backend).to(points.result_dtype)


def graph_mean(points: Points, graph: Graph | MovingGraph, *, backend: str = "auto") -> Tensor:
    """Return Graph-SND of points that are already embedded: a scalar, float64."""
    if isinstance(graph, MovingGraph):
        return mean(edge_sums(points, graph, backend=backend).each())
    if graph.weights is None:
        sums = kernels.edge_totals(points, graph.edges, ordered=True, backend=backend)
        return mean(sums) / max(1, graph.m)  # without edges all sums are 0
    weights, weight_sum = normalised_weights(graph, points.parts[0].device)
    sums = kernels.edge_totals(points, graph.edges, weights, ordered=True, backend=backend)
    return ratio(mean(sums), weight_sum)


def horvitz_thompson(
    behavior: Behavior, graph: Graph, distance: Distance | str | None = None, *, backend: str = "auto"
) -> Tensor:
    r"""Horvitz-Thompson estimate of SND from a sampled graph, unbiased even when a draw is empty (Proposition 7).

    .. math:: \widehat{\mathrm{SND}}_{HT}(G) = \binom{n}{2}^{-1} \sum_{\{i,j\} \in E} d(i,j) / p_{ij}

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        graph: A draw of a design with known inclusion probability: Bernoulli, uniform or random regular.
        distance: A distance or its name; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Scalar tensor, differentiable.

    Raises:
        InputError: When the graph was not drawn from a design, or carries weights of its own.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> gs.horvitz_thompson(team, gs.graphs.bernoulli(3, 1.0))
        tensor(4.)
    """
    points = embed_on(graph, behavior, distance)
    inclusion = known_inclusion(graph)
    sums = kernels.edge_totals(points, graph.edges, ordered=True, backend=backend)
    return (mean(sums) / (inclusion * graph.pairs)).to(points.result_dtype)


def known_inclusion(graph: Graph, argument: str = "graph") -> float:
    """Return the probability with which each pair was drawn; raise for a graph that was not, or that has weights."""
    if graph.inclusion is None:
        got = f"a fixed graph ({graph.family})"
        fix = "Use graphsnd.graph_snd, or build it with graphs.bernoulli, uniform or random_regular."
        raise InputError(argument, "to be a random draw with a known inclusion probability", got, fix)
    if graph.weights is not None:
        raise InputError(argument, "without weights of its own", "a weighted graph", "The design sets the weights.")
    return graph.inclusion
