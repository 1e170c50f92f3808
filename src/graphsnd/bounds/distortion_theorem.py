r"""The distortion theorem: what Graph-SND on a fixed graph says for certain about SND.

With N = n(n-1)/2 pairs, weights w and their sum W (for unit weights W = |E|, and this is the paper's Theorem 12), every
metric d has

.. math:: \frac{W}{N \max_e w_e}\, \mathrm{SND}_G \le \mathrm{SND} \le \frac{W \pi_w(G)}{N}\, \mathrm{SND}_G,
    \qquad \pi_w(G) = \min_f \max_e \frac{\mathrm{load}_f(e)}{w_e}.

**Above.** Let f split each pair {i, j} over paths P with shares summing to 1. The triangle inequality along each path,
averaged with the shares and summed over pairs, gives

.. math:: N\, \mathrm{SND} = \sum_{i<j} d(i,j) \le \sum_{i<j} \sum_P f_{ij}(P) \sum_{e \in P} d(e)
    = \sum_e \mathrm{load}_f(e)\, d(e) \le \max_e \frac{\mathrm{load}_f(e)}{w_e} \sum_e w_e\, d(e).

Nothing asks f to be integral, so the fractional index, never larger, may stand in for the paper's, which has one path
per pair, and any routing for the best. The fractional bound cannot be improved: the distances under the optimal dual
edge lengths are a metric for which it holds with equality.

**Below.** The paper drops the pairs that are no edges. This forgets the triangle inequality, and a metric that vanishes
off the edges of a sparse graph vanishes everywhere. Routing the other way round, each edge {u, v} of the graph over the
pairs of the complete graph, a share x directly and 1 - x spread over the n - 2 paths u, k, v, no pair {a, b} carries
more than

.. math:: \lambda(x) = \max_{a<b} \left[ x\, w_{ab} + (1-x)\, \frac{s_a + s_b - 2 w_{ab}}{n-2} \right],
    \qquad s_a = \sum_b w_{ab},

so that W SND_G <= lambda(x) N SND: the paper's bound is x = 1. For a d-regular graph x = 0 gives
SND >= (n-2)/(2(n-1)) SND_G, about one half, where the paper has d/(n-1); one half is the truth for two camps on a
bipartite graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphsnd.bounds.forwarding import ROUNDING, ForwardingIndex, Network, build_network, index_of_network
from graphsnd.errors import check_number
from graphsnd.graphs import Graph


@dataclass(frozen=True, eq=False)
class Distortion:
    """Factors between which SND / Graph-SND lies on a graph, for every metric.

    Example:
        >>> import networkx, graphsnd as gs
        >>> star = distortion(gs.graphs.from_networkx(networkx.star_graph(4)))
        >>> [round(end, 6) for end in star.interval(1.0)]  # where SND can be if Graph-SND is 1
        [0.4, 1.6]
    """

    lower: float  # the paper's: |E| / pairs, or W / (pairs * largest weight)
    lower_metric: float  # the same side with the triangle inequality, never smaller
    upper: float  # |E| pi* / pairs, from the certified upper bound of pi*
    index: ForwardingIndex  # the routing behind the upper bound; relative to the weights where there are any

    def interval(self, graph_snd: float) -> tuple[float, float]:
        """Return the certified interval for SND, given Graph-SND measured on this graph.

        Example:
            >>> from graphsnd import graphs
            >>> low, high = distortion(graphs.complete(5)).interval(2.0)
            >>> low, round(high, 6)
            (2.0, 2.0)
        """
        value = check_number("graph_snd", graph_snd, low=0)
        return value * max(self.lower, self.lower_metric), value * self.upper

    def __repr__(self) -> str:
        low, high = self.interval(1.0)
        return f"Distortion({low:.4g} <= SND / Graph-SND <= {high:.4g})"


def distortion(
    graph: Graph, method: str = "auto", *, tolerance: float = 0.02, seconds: float | None = None
) -> Distortion:
    r"""Return how far SND can be from Graph-SND on this graph, whatever the agents do (Theorem 12, with weights).

    .. math:: \frac{|E|}{N} \le \frac{\mathrm{SND}}{\mathrm{SND}_G} \le \frac{|E|\, \pi^*(G)}{N}
        \le \frac{|E|\, \pi(G)}{N}

    The distance must satisfy the triangle inequality; all distances of this library do. Weights of the graph are those
    of Graph-SND and enter the bound; edges of weight 0 count for nothing, and what remains must be connected.

    Args:
        graph: A connected graph.
        method: Method that finds the index, see :func:`~graphsnd.bounds.forwarding_index`.
        tolerance: Relative gap of the index at which ``flow`` stops.
        seconds: Time limit for the search, or None.

    Returns:
        The factors, and ``interval`` to apply them.

    Raises:
        InputError: For a graph that is not connected.

    Example:
        >>> import networkx
        >>> from graphsnd import graphs
        >>> distortion(graphs.from_networkx(networkx.star_graph(4)))
        Distortion(0.4 <= SND / Graph-SND <= 1.6)
    """
    net = build_network(graph, weighted=True)
    index = index_of_network(net, method, tolerance, seconds)
    share = float(net.capacity.sum()) / graph.pairs
    return Distortion(
        lower=share / float(net.capacity.max()),
        lower_metric=share / _reverse_index(net),
        upper=share * index.upper,
        index=index,
    )


def _reverse_index(net: Network) -> float:
    """Return the smallest lambda(x): convex and piecewise linear in x, from the worst edge and the worst other pair."""
    direct = float(net.capacity.max())
    if net.n == 2:
        return direct
    strength, (a, b) = net.strengths(), net.edges.T
    around = (strength[a] + strength[b] - 2 * net.capacity) / (net.n - 2)
    apart = _heaviest_other_pair(net) / (net.n - 2)

    def load(x: float) -> float:
        return max(float((x * net.capacity + (1 - x) * around).max()), (1 - x) * apart)

    low, high = 0.0, 1.0
    for _ in range(60):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if load(left) <= load(right) else (left, high)
    best = min(load(0.0), load(low))
    return best * (1 + ROUNDING) if best < direct else direct


def _heaviest_other_pair(net: Network) -> float:
    """Return the largest sum of strengths over pairs that are no edge; 0 for the complete graph."""
    strength = net.strengths()
    ranked = np.argsort(-strength, kind="stable").tolist()
    best = 0.0
    for v in range(net.n):
        known = {v, *net.arcs.indices[net.arcs.indptr[v] : net.arcs.indptr[v + 1]].tolist()}
        # Walking down the ranking passes at most the neighbours and the vertex itself.
        best = max(best, next((float(strength[u] + strength[v]) for u in ranked if u not in known), 0.0))
    return best
