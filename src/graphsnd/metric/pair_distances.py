"""The behavioural distance d(i, j) of equation (1): of all pairs, along edges, and of each agent to the others."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from graphsnd import kernels
from graphsnd.behavior import Behavior, Distance, Points, embed
from graphsnd.errors import InputError
from graphsnd.graphs import Graph


def pairwise(behavior: Behavior, distance: Distance | None = None, *, backend: str = "auto") -> torch.Tensor:
    r"""All pairwise behavioural distances.

    .. math:: d(i,j) = \frac{1}{|O|} \sum_{o \in O} W_2(\pi_i(o), \pi_j(o)) \qquad (1)

    Args:
        behavior: What ``n`` agents would do on shared observations.
        distance: Distance object; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        Symmetric ``[n, n]`` matrix with a zero diagonal, differentiable.

    Example:
        >>> import graphsnd as gs
        >>> gs.pairwise(gs.Deterministic(torch.tensor([[[0.0], [3.0]]])))
        tensor([[0., 3.],
                [3., 0.]])
    """
    points = embed(behavior, distance)
    return kernels.pair_matrix(points, backend=backend).to(points.result_dtype)


def edge_distances(
    behavior: Behavior, graph: Graph, distance: Distance | None = None, *, backend: str = "auto"
) -> torch.Tensor:
    """The distances d(i, j) along the edges of a graph; nothing else is computed.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        graph: Graph on the same ``n`` agents.
        distance: Distance object; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        ``[m]`` distances in the order of ``graph.edges``, differentiable.

    Raises:
        InputError: When the graph has another number of agents, or other names for them.

    Example:
        >>> import graphsnd as gs
        >>> path = gs.graphs.from_edge_index(torch.tensor([[0, 1], [1, 2]]), 3)
        >>> gs.edge_distances(gs.Deterministic(torch.tensor([[[0.0], [3.0], [4.0]]])), path)
        tensor([3., 1.])
    """
    points = embed(behavior, distance)
    check_graph(graph, points.agents, behavior._names)
    return edge_means(points, graph, backend=backend).to(points.result_dtype)


def contributions(behavior: Behavior, distance: Distance | None = None, *, backend: str = "auto") -> torch.Tensor:
    """Each agent's mean distance to all others; their mean over agents is SND.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        distance: Distance object; the family's default when None.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        ``[n]`` in the order of ``behavior.names``, differentiable. ``dict(zip(behavior.names, values.tolist()))`` has
        them by name.

    Example:
        >>> import graphsnd as gs
        >>> gs.contributions(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        tensor([4.5000, 3.0000, 4.5000])
    """
    matrix = pairwise(behavior, distance, backend=backend)
    return matrix.sum(dim=1) / (matrix.shape[0] - 1)


def edge_means(points: Points, graph: Graph, *, backend: str = "auto") -> torch.Tensor:
    """d(i, j) along the edges of points that are already embedded: ``[m]``, float64."""
    check_graph(graph, points.agents)
    return kernels.edge_sums(points, graph.edges.to(points.values.device), backend=backend)


def check_graph(graph: Graph, agents: int, names: Sequence[str] | None = None) -> None:
    """Raise unless ``graph`` is a graph on that many agents, with the same names where both have names."""
    if not isinstance(graph, Graph):
        raise InputError("graph", "to be a graphsnd.Graph", type(graph).__name__, "See graphsnd.graphs.from_networkx.")
    if graph.n != agents:
        fix = f"Build it with n = {agents}."
        raise InputError("graph", f"on the behaviour's {agents} agents", f"a graph on {graph.n}", fix)
    if names and graph.names and tuple(names) != graph.names:
        at = next(i for i, name in enumerate(names) if name != graph.names[i])
        fix = "Build it in the behaviour's order, e.g. graphs.from_networkx(G, behavior.names)."
        expected = f"with the behaviour's agents in their order, {names[at]!r} at {at}"
        raise InputError("graph", expected, f"{graph.names[at]!r}", fix)
