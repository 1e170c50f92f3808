r"""Guarantees of a graph for any team, and how close Graph-SND on it is to SND of one team.

A row holds the measured ratio and, for the same graph and the same team,

*for every metric*: the forwarding index of the graph and Theorem 12;
*for this matrix of distances*: the spectral bound of Proposition 17;
*for its largest entry, over random regular graphs*: the bound of Proposition 19;
*for this matrix, the agents numbered at random*: the exact standard deviation of the ratio.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import networkx
from torch import Tensor

from graphsnd import bounds, graphs
from graphsnd.bounds.relabelling import paper_random_regular_bound, relabelling_variance, split_squares
from graphsnd.bounds.spectral import check_symmetric
from graphsnd.graphs import Graph
from paper.expanders.families import Family
from paper.expanders.integral import integral_index

DELTA = 0.1  # failure probability of the probabilistic bounds
COMPLETE = range(3, 9)  # sizes of the complete graphs, whose index is known in closed form


@dataclass(frozen=True, kw_only=True)
class GraphSummary:
    """Forwarding index and guarantees of one graph. Fields that are not defined for it are None."""

    n: int
    degree: int  # mean degree that the graph was built for
    family: str
    seed: int | None  # None where the graph is not drawn
    edges: int
    connected: bool
    integral_lower: float | None = None  # forwarding index with one path per pair, lower bound; None when not computed
    integral_upper: float | None = None
    distortion_low: float | None = None  # SND / Graph-SND is at least this for every metric ...
    distortion_high: float | None = None  # ... and at most this


def summarise_graph(
    graph: Graph,
    family: str,
    degree: int,
    *,
    seed: int | None = None,
    forwarding: bool = True,
    seconds: float | None = None,
) -> GraphSummary:
    """Return the forwarding index and the guarantees of a graph.

    Args:
        graph: Graph without weights and with at least one edge.
        family: Name of the family, for display.
        degree: Mean degree that the graph was built for.
        seed: Seed of the draw; None for a graph that was not drawn.
        forwarding: Whether to compute the forwarding index.
        seconds: Time limit of its search, see :func:`~graphsnd.bounds.forwarding_index`.

    Example:
        >>> ring = summarise_graph(graphs.circulant(5, shifts=[1]), "ring", 2)
        >>> ring.connected, ring.integral_upper
        (True, 3.0)
    """
    connected = bounds.spectrum(graph).connected
    index: dict[str, float | None] = {}
    if forwarding and connected:
        factors = bounds.distortion(graph, seconds=seconds)
        integral = integral_index(graph, factors.index.lower, seconds=seconds)
        low, high = factors.interval(1.0)
        index = {
            # Loads of one path per pair are whole numbers, so the fractional bound may be rounded up.
            "integral_lower": float(math.ceil(factors.index.lower)),
            "integral_upper": integral,
            "distortion_low": low,
            # Any routing proves the theorem; the integral one is sometimes better than the fractional search.
            "distortion_high": min(high, graph.m / graph.pairs * integral),
        }
    return GraphSummary(n=graph.n, degree=degree, family=family, seed=seed, edges=graph.m, connected=connected, **index)


@dataclass(frozen=True)
class SmallGraphs:
    """Forwarding indices of graphs that are small enough to compute by hand."""

    complete: float  # the largest certified upper bound over K_3 .. K_8
    ring_5: float
    ring_5_ordered: float  # from loads over ordered pairs, split over shortest paths
    ring_4_fractional: float
    ring_4: float  # larger: its two diagonals always meet on an edge when each has one path


def measure_small_graphs() -> SmallGraphs:
    """Return the indices of complete graphs and of rings of four and five.

    Example:
        >>> small = measure_small_graphs()
        >>> small.ring_5, round(small.ring_5_ordered, 6), small.ring_4
        (3.0, 6.0, 3.0)
    """
    rings = {n: graphs.circulant(n, shifts=[1]) for n in (4, 5)}
    fractional = bounds.forwarding_index(rings[4]).upper
    complete = max(_integral(graphs.complete(n)) for n in COMPLETE)
    return SmallGraphs(complete, _integral(rings[5]), ordered_split(rings[5]), fractional, _integral(rings[4]))


def ordered_split(graph: Graph) -> float:
    """Return the largest load of an edge, every ordered pair split equally over its shortest paths.

    The paper's code reports this load. It is no forwarding index: nothing is minimised and every pair counts twice.

    Example:
        >>> ordered_split(graphs.circulant(5, shifts=[1]))  # the index is 3
        6.0
    """
    return float(2 * max(networkx.edge_betweenness_centrality(graph.to_networkx(), normalized=False).values()))


def _integral(graph: Graph) -> float:
    return integral_index(graph, bounds.forwarding_index(graph).lower)


@dataclass(frozen=True, eq=False)
class Distances:
    """A team's matrix of distances, and the values that do not depend on the graph."""

    matrix: Tensor  # float64 [n, n]
    snd: float
    variance: float  # variance of the distances over all pairs

    @classmethod
    def of(cls, matrix: Tensor) -> Distances:
        """Return the distances of a matrix from :func:`graphsnd.pairwise`."""
        values = check_symmetric(matrix)
        n = len(values)
        squares = sum(float(part) for part in split_squares(values))
        return cls(values, float(values.sum()) / (n * (n - 1)), squares / max(1, math.comb(n, 2) - 1))

    def uniform_error(self, edges: int) -> float:
        """Return the standard deviation of the mean over a simple random sample of ``edges`` pairs."""
        return math.sqrt(self.variance * (1 / edges - 1 / math.comb(len(self.matrix), 2)))


@dataclass(frozen=True, kw_only=True)
class Row(GraphSummary):
    """One graph on one team. Fields that are not defined for them are None."""

    snd: float
    graph_snd: float
    ratio: float | None  # Graph-SND / SND; None for identical agents
    reciprocal: float | None  # SND / Graph-SND, the theorem's ratio; None where Graph-SND is 0
    difference: float  # |Graph-SND - SND|
    spectral: float | None  # the paper's bound on |Graph-SND / SND - 1|; regular graphs only, as below
    rho: float | None  # normalised nuclear norm
    probabilistic: float | None  # the same for random regular graphs, with probability 1 - DELTA
    predicted: float | None  # standard deviation of the ratio over random numberings; None for graphs not drawn
    sampled: float | None  # the same for a uniform sample of as many pairs; None for identical agents


def compare(distances: Distances, graph: Graph, summary: GraphSummary) -> Row:
    """Return Graph-SND of a team on a graph beside SND and all bounds.

    Args:
        distances: Distances of the team.
        graph: Graph on the same agents, without weights and with at least one edge.
        summary: Summary of the graph.

    Example:
        >>> import torch
        >>> line, graph = torch.arange(6.0), graphs.complete(6)
        >>> row = compare(Distances.of((line[:, None] - line).abs()), graph, summarise_graph(graph, "complete", 5))
        >>> round(row.ratio, 9), row.integral_upper, row.predicted
        (1.0, 1.0, None)
    """
    snd = distances.snd
    i, j = graph.edges.cpu().T
    value = float(distances.matrix[i, j].mean())
    # Only a drawn graph has a random numbering, over which the ratio has a standard deviation.
    drawn = graph.inclusion is not None and snd > 0
    error = math.sqrt(float(relabelling_variance(distances.matrix, graph.degrees()))) if drawn else 0.0
    return Row(
        **vars(summary),
        snd=snd,
        graph_snd=value,
        ratio=value / snd if snd else None,
        reciprocal=snd / value if value else None,
        difference=abs(value - snd),
        **_regular_bounds(graph, distances),
        predicted=error / snd if drawn else None,
        sampled=distances.uniform_error(graph.m) / snd if snd else None,
    )


def _regular_bounds(graph: Graph, distances: Distances) -> dict[str, Any]:
    """Return the bounds that need a regular graph; all are None on other graphs."""
    names = ("spectral", "rho", "probabilistic")
    counts = graph.degrees()
    degree = int(counts[0])
    if not bool((counts == degree).all()):
        return dict.fromkeys(names)
    bound = bounds.spectral_bound(graph, distances.matrix)
    chance = None
    if graph.inclusion is not None and degree >= 3 and distances.snd > 0:
        largest = float(distances.matrix.max()) / distances.snd
        chance = paper_random_regular_bound(largest, graph.n, degree, DELTA)
    return dict(zip(names, (bound.relative, bound.rho, chance), strict=True))


@dataclass(frozen=True)
class TeamRows:
    """All rows of one team, or of the fresh teams of all sizes."""

    trained: bool
    own: bool  # whether each policy sees observations of its own
    seed: int | None  # seed of the training; None for fresh teams
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Data:
    """What the figure draws."""

    teams: tuple[TeamRows, ...]
    small: SmallGraphs
    observations: int  # number of observations of each team

    def rows(self, *, trained: bool, own: bool) -> list[Row]:
        """Return the rows of one kind of teams."""
        return [row for team in self.teams if (team.trained, team.own) == (trained, own) for row in team.rows]


def select(rows: Iterable[Row], family: Family | None = None, **where: int) -> list[Row]:
    """Return the rows of a family with these values in other columns; identical agents are left out."""
    kept = [row for row in rows if row.ratio is not None and family in (None, row.family)]
    return [row for row in kept if all(getattr(row, key) == value for key, value in where.items())]


def sizes_and_degrees(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """Return the distinct pairs of size and degree, in order."""
    return sorted({(row.n, row.degree) for row in rows})
