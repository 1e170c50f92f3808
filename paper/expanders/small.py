"""Graphs small enough to know the forwarding index by hand, against which the paper's definition and code are held."""

from __future__ import annotations

from graphsnd import bounds, graphs
from graphsnd.graphs import Graph
from paper.expanders.facts import equal_split
from paper.expanders.integral import integral_index

COMPLETE = range(3, 9)


def small_graphs() -> dict[str, float]:
    """Indices of complete graphs and of rings of four and five.

    Returns:
        ``complete``, the largest certified upper bound over K_3 .. K_8; ``ring_5`` and ``ring_5_ordered``, the index of
        the ring of five and what loads over ordered pairs, split over shortest paths, make of it; ``ring_4_fractional``
        and ``ring_4``, whose two diagonals always meet on an edge when each has one path.

    Example:
        >>> found = small_graphs()
        >>> found["ring_5"], round(found["ring_5_ordered"], 6), found["ring_4"]
        (3.0, 6.0, 3.0)
    """
    return {
        "complete": max(_index(graphs.complete(n)) for n in COMPLETE),
        "ring_5": _index(_ring(5)),
        "ring_5_ordered": 2 * equal_split(_ring(5)),
        "ring_4_fractional": bounds.forwarding_index(_ring(4)).upper,
        "ring_4": _index(_ring(4)),
    }


def _ring(n: int) -> Graph:
    return graphs.circulant(n, shifts=[1])


def _index(graph: Graph) -> float:
    return integral_index(graph, bounds.forwarding_index(graph).lower)
