"""What can be said about a graph whatever the team on it: its eigenvalues, its forwarding index, their guarantees."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from graphsnd import bounds
from graphsnd.bounds.forwarding.elementary import elementary_bounds
from graphsnd.bounds.forwarding.flow import empty_loads
from graphsnd.bounds.forwarding.network import build_network
from graphsnd.errors import InputError
from graphsnd.graphs import Graph
from paper.expanders.integral import integral_index


@dataclass(frozen=True)
class Facts:
    """One graph. What is not defined for it is None, never a number that looks like one."""

    n: int
    asked_degree: int  # of the protocol
    degree: int  # that was used: one more where n times the asked one is odd
    family: str
    seed: int | None  # None where the graph is not drawn
    edges: int
    connected: bool
    lambda_2: float  # largest absolute eigenvalue after the first
    gap: float
    ramanujan: bool
    forwarding_lower: float | None  # of the fractional index, certified; None when disconnected or not asked for
    forwarding_upper: float | None
    integral_lower: float | None  # of the index with one path a pair
    integral_upper: float | None
    betweenness: float | None  # largest load when pairs are split equally over all shortest paths
    distortion_low: float | None  # SND / Graph-SND is at least this for every metric ...
    distortion_high: float | None  # ... and at most this
    ratio_low: float  # Graph-SND / SND, for every distance of negative type, from the Laplacian ...
    ratio_high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def look(
    graph: Graph,
    *,
    family: str,
    degree: int,
    asked_degree: int | None = None,
    seed: int | None = None,
    forwarding: bool = True,
    seconds: float | None = None,
) -> Facts:
    """Find them.

    Args:
        graph: Without weights, with an edge.
        family: For people to read.
        degree: Mean degree that the graph was built for.
        asked_degree: What the protocol asks for; ``degree`` when None.
        seed: Of the draw; None for a graph that was not drawn.
        forwarding: Whether to compute the forwarding index.
        seconds: Time limit of its search, see :func:`~graphsnd.bounds.forwarding.forwarding_index`.

    Raises:
        InputError: For a graph with weights or without edges.

    Example:
        >>> from graphsnd import graphs
        >>> found = look(graphs.circulant(5, shifts=[1]), family="ring", degree=2)
        >>> found.connected, found.integral_upper, round(found.betweenness, 6), round(found.gap, 3)
        (True, 3.0, 3.0, 0.191)
    """
    if graph.m == 0 or graph.weights is not None:
        raise InputError("graph", "with edges and without weights", repr(graph))
    found = bounds.spectrum(graph)
    laplacian = bounds.spectral_ratio(graph)
    routed = forwarding and found.connected
    return Facts(
        n=graph.n,
        asked_degree=degree if asked_degree is None else asked_degree,
        degree=degree,
        family=family,
        seed=seed,
        edges=graph.m,
        connected=found.connected,
        lambda_2=found.second,
        gap=found.gap,
        ramanujan=found.ramanujan,
        **_routes(graph, routed, seconds),
        betweenness=equal_split(graph) if routed else None,
        ratio_low=laplacian.low,
        ratio_high=laplacian.high,
    )


def equal_split(graph: Graph) -> float:
    r"""The largest load of an edge when every pair is split equally over its shortest paths, no pair counted twice.

    .. math:: \max_e \sum_{i<j} \sigma_{ij}(e) / \sigma_{ij} \;\ge\; \pi^*(G)

    with sigma the number of shortest paths, and of those through e: the largest edge betweenness. Nothing is
    minimised, so it is no forwarding index. Code that sums over *ordered* pairs reports twice this.

    Args:
        graph: Connected.

    Example:
        >>> from graphsnd import graphs
        >>> round(equal_split(graphs.complete(4)), 6)
        1.0
    """
    net = build_network(graph)
    return elementary_bounds(net, empty_loads(net)).upper


def _routes(graph: Graph, routed: bool, seconds: float | None) -> dict[str, float | None]:
    if not routed:
        index = ("forwarding_lower", "forwarding_upper", "integral_lower", "integral_upper")
        return dict.fromkeys((*index, "distortion_low", "distortion_high"))
    factors = bounds.distortion(graph, seconds=seconds)
    integral = integral_index(graph, factors.index.lower, seconds=seconds)
    low, high = factors.interval(1.0)
    return {
        "forwarding_lower": factors.index.lower,
        "forwarding_upper": min(factors.index.upper, integral),
        "integral_lower": float(math.ceil(factors.index.lower)),
        "integral_upper": integral,
        "distortion_low": low,
        "distortion_high": min(high, graph.m / graph.pairs * integral),
    }
