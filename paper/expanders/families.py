r"""The families of graphs that the ablation compares, at equal numbers of edges.

Degrees are ceil(log2 n), ceil(2 log2 n) and ceil(4 log2 n), as in the paper's text; code that takes multiples of
ceil(log2 n) gets 24 for 23. Uniform and trimmed nearest-neighbour graphs have exactly the nd/2 edges of the regular
ones, Bernoulli graphs on average. The undirected union of k = d nearest neighbours, which the paper's figures show, has
more edges. It is compared too, because the trimmed graph is seldom connected.

Seeds are plain integers: ``graphs.random_regular(n, d, seed=s)`` is the graph of a row.
"""

from __future__ import annotations

import math
from enum import Enum

from torch import Tensor

from graphsnd import graphs
from graphsnd.graphs import Graph

SIZES, SEEDS = (50, 100, 200, 500), (0, 1, 2, 3, 4)


class Family(str, Enum):
    """The families that are compared."""

    REGULAR = "random regular"
    BERNOULLI = "bernoulli"
    UNIFORM = "uniform"
    KNN = "knn, trimmed"
    UNION = "knn, union"

    @property
    def drawn(self) -> bool:
        """Whether a graph depends on a seed; otherwise it depends on the team."""
        return self not in (Family.KNN, Family.UNION)


# The paper's four families at equal numbers of edges, and as in its figures.
FOUR = (Family.REGULAR, Family.BERNOULLI, Family.UNIFORM, Family.KNN)
AS_PUBLISHED = (*FOUR[:3], Family.UNION)


def degrees(n: int) -> list[int]:
    """Return the protocol's degrees, each raised by one if n times the degree is odd.

    Degrees at which the graph would be complete or impossible are left out; this happens below 23 agents only.

    Example:
        >>> degrees(50), degrees(13)
        ([6, 12, 23], [4, 8])
    """
    protocol = [math.ceil(factor * math.log2(n)) for factor in (1, 2, 4)]
    return [degree for d in protocol if (degree := d + n * d % 2) < n - 1]


def build(family: Family, n: int, degree: int, seed: int, positions: Tensor) -> Graph:
    """Return a graph of a family with n * degree / 2 edges; more for the union of nearest neighbours.

    Args:
        family: Family of the graph.
        n: Number of agents.
        degree: Mean degree; n * degree is even.
        seed: Seed of the draw.
        positions: Mean actions that define the neighbours, ``[n, f]``. Not used for drawn graphs.
    """
    edges = n * degree // 2
    if family is Family.REGULAR:
        return graphs.random_regular(n, degree, seed=seed)
    if family is Family.BERNOULLI:
        return graphs.bernoulli(n, edges / math.comb(n, 2), seed=seed)
    if family is Family.UNIFORM:
        return graphs.uniform(n, edges, seed=seed)
    union = graphs.knn(positions, degree)
    assert isinstance(union, Graph)
    # The union has at least nd/2 edges, because every agent adds d neighbours.
    return union if family is Family.UNION else trim(union, edges, positions)


def trim(graph: Graph, edges: int, positions: Tensor) -> Graph:
    """Return the graph of the ``edges`` shortest edges; ties go to the pair that comes first.

    The union of nearest neighbours has more than nd/2 edges wherever nearness is not mutual; trimming brings it to the
    budget of the other families. The pairs are chosen by their lengths, so they are no random sample.
    """
    i, j = graph.edges.unbind(1)
    points = positions.double()
    kept = (points[i] - points[j]).norm(dim=1).argsort(stable=True)[:edges]
    return Graph(graph.n, graph.edges[kept], family=f"{graph.family}, trimmed")
