"""The behavioural distance d(i, j) of equation (1): of all pairs, along edges, and of each agent to the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.behavior.points import Points
from graphsnd.errors import MOST_EDGES, InputError
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import check_graph, ratio

MOST_ROWS = math.isqrt(2 * MOST_EDGES)  # of a matrix: 16 GiB in double precision


def pairwise(
    behavior: Behavior,
    distance: Distance | str | None = None,
    *,
    graph: Graph | None = None,
    backend: str = "auto",
) -> Tensor:
    r"""Return the behavioural distances of all pairs of agents, or of the edges of a graph.

    .. math:: d(i,j) = \frac{1}{|O|} \sum_{o \in O} W_2(\pi_i(o), \pi_j(o)) \qquad (1)

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        distance: A distance or its name; the family's default when None.
        graph: Graph on the same ``n`` agents with ``m`` edges; only their distances are computed.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Symmetric ``[n, n]`` matrix with a zero diagonal; with a graph ``[m]``, in the order of ``graph.edges``.
        Differentiable. A Euclidean distance below 1e-19 (float32) or 1e-154 (float64) of the largest difference between
        two agents may lose digits or be 0: its square underflows.

    Raises:
        InputError: For more agents than a matrix of their distances has room for, and for a graph of other agents.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [4.0]]]))
        >>> gs.pairwise(team)
        tensor([[0., 3., 4.],
                [3., 0., 1.],
                [4., 1., 0.]])
        >>> gs.pairwise(team, graph=gs.graphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3))
        tensor([3., 1.])
    """
    if graph is not None:
        points = embed_on(graph, behavior, distance)
        return edge_means(points, graph, backend=backend).to(points.result_dtype)
    points = embed(behavior, distance)
    if points.agents > MOST_ROWS:  # an operating system may promise the memory, and end the process when it is used
        fix = "For SND use gs.measure; for single agents and pairs, contributions or pairwise with a sparse graph=."
        raise InputError("behavior", f"of at most {MOST_ROWS} agents for a matrix of all pairs", points.agents, fix)
    return kernels.pair_matrix(points, backend=backend).to(points.result_dtype)


def contributions(
    behavior: Behavior,
    distance: Distance | str | None = None,
    *,
    graph: Graph | MovingGraph | None = None,
    backend: str = "auto",
) -> Tensor:
    r"""Return each agent's mean distance to all others, or to its neighbours in a graph.

    Over all pairs their mean is SND. On a graph, agent i has

    .. math:: c_i = \sum_j w_{ij}\, d(i,j) / W_i, \qquad W_i = \sum_j w_{ij},

    and the mean of the :math:`c_i` weighted by :math:`W_i` is Graph-SND. Where each observation has its own graph,
    :math:`c_i` is the mean over observations. An agent without neighbours has 0, there too.

    Args:
        behavior: Behaviour of ``n`` agents on shared observations.
        distance: A distance or its name; the family's default when None.
        graph: Graph of the neighbours that count; all agents when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        ``[n]`` in the order of ``behavior.names``, differentiable. ``dict(zip(behavior.names, values.tolist()))`` has
        them by name.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> gs.contributions(team)
        tensor([4.5000, 3.0000, 4.5000])
        >>> gs.contributions(team, graph=gs.graphs.from_edge_index(torch.tensor([[0], [1]]), 3))
        tensor([3., 3., 0.])
    """
    if graph is None:
        matrix = pairwise(behavior, distance, backend=backend)
        return matrix.sum(dim=1) / (matrix.shape[0] - 1)
    points = embed_on(graph, behavior, distance, moving=True)
    # The mean over observations along the edges of one graph is a single observation of it.
    moving = (MovingGraph.stack([graph]) if isinstance(graph, Graph) else graph).to(points.parts[0].device)
    measure: Any = edge_means if isinstance(graph, Graph) else edge_lengths
    distances = measure(points, graph, backend=backend)
    weights = relative_weights(moving)
    i, j = (moving.edges + graph.n * moving.owners().unsqueeze(1)).unbind(1)
    zero, terms = distances.new_zeros(len(moving) * graph.n), (distances * weights, weights)
    sums, strengths = (zero.index_add(0, i, part).index_add(0, j, part).view(len(moving), -1) for part in terms)
    return ratio(sums, strengths).mean(0).to(points.result_dtype)


def embed_on(
    graph: Graph | MovingGraph, behavior: Behavior, distance: Distance | str | None, *, moving: bool = False
) -> Points:
    """Return a behaviour as points, or raise unless ``graph`` fits it; ``moving`` graphs only where they are taken."""
    points = embed(behavior, distance)
    check_graph(graph, points.agents, behavior._names, observations=points.observations if moving else None)
    return points


def edge_means(points: Points, graph: Graph, *, backend: str = "auto") -> Tensor:
    """d(i, j) along the edges of points that are already embedded: ``[m]``, float64."""
    return kernels.edge_means(points, graph.edges, backend=backend)


@dataclass(frozen=True, eq=False)
class EdgeSums:
    """Sums over the edges of each observation, all float64 ``[observations]``."""

    sums: Tensor  # of weight times distance, differentiable
    weights: Tensor  # of the weights; both in units of the observation's largest weight, so that neither overflows

    def each(self) -> Tensor:
        """Return the Graph-SND of each observation, 0 without weight."""
        return ratio(self.sums, self.weights)

    def empty_share(self) -> float:
        """Return the share of observations without weight; waits for the device."""
        return float((self.weights == 0).double().mean())


def edge_sums(points: Points, graph: MovingGraph, *, backend: str = "auto") -> EdgeSums:
    """Return the sums over the edges of each observation; the graph is one on these agents and observations."""
    graph = graph.to(points.parts[0].device)
    weights = relative_weights(graph)
    terms = edge_lengths(points, graph, backend=backend) * weights
    # Each sum is in the order of its terms, whatever the threads.
    add = partial(torch.segment_reduce, reduce="sum", offsets=graph.starts, initial=0, unsafe=True)
    return EdgeSums(add(terms), add(weights))


def edge_lengths(points: Points, graph: MovingGraph, *, backend: str = "auto") -> Tensor:
    """Return the distances along all edges, float64 ``[m]``, differentiable."""
    graph = graph.to(points.parts[0].device)
    return kernels.ragged_edges(points, graph.edges, graph.starts, backend=backend)


def relative_weights(graph: MovingGraph) -> Tensor:
    """Return the weights of all edges ``[m]`` in units of the largest at their observation."""
    if graph.weights is None:
        return torch.ones(graph.m, dtype=torch.float64, device=graph.device)
    weights = graph.weights.double()
    units = torch.segment_reduce(weights.detach(), "max", offsets=graph.starts, initial=0, unsafe=True)
    return ratio(weights, units[graph.owners()])
