r"""Bounds on the index that need no optimisation: edge lengths below, shortest paths above.

For any lengths l >= 0 on the edges, every path of a pair is at least as long as their distance, so that

.. math:: \sum_{s<t} \mathrm{dist}_l(s,t) \le \sum_e \mathrm{load}(e)\, l(e) \le \pi \sum_e l(e),

for routings with one path per pair and fractional ones alike. Length one everywhere is the mean distance; length one on
the edges of a cut with k vertices on one side is k (n - k) / |cut|. Linear programming duality says that the best
lengths leave no gap to the fractional index.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphsnd.bounds.forwarding.network import Floats, Network

# Bounds are rounded outwards by far more than float64 sums of positive terms can be off.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Bracket:
    """The fractional index lies between these, for certain."""

    lower: float
    upper: float
    lengths: Floats  # [m], of the distances that prove the lower bound

    @property
    def gap(self) -> float:
        """The relative width."""
        return self.upper / self.lower - 1

    def with_lower(self, lower: float, lengths: Floats) -> Bracket:
        """Return the bracket with this lower bound, if it is better."""
        return Bracket(lower, self.upper, lengths) if lower > self.lower else self

    def with_upper(self, upper: float) -> Bracket:
        """Return the bracket with this upper bound, if it is better."""
        return Bracket(self.lower, min(self.upper, upper), self.lengths)


def dual_bound(net: Network, lengths: Floats) -> float:
    """Return the lower bound that edge lengths ``[m]`` prove; 0 for lengths that are zero everywhere."""
    from graphsnd.bounds.forwarding import loops  # loads numba, which importing graphsnd must not

    norm = float((lengths * net.capacity).sum())
    return loops.distance_sum(*net.arcs, lengths) / norm * (1 - ROUNDING) if norm > 0 else 0.0


def largest_load(net: Network, loads: Floats) -> float:
    """Return the upper bound that the loads ``[m]`` of a fractional routing prove."""
    return float((loads / net.capacity).max()) * (1 + ROUNDING)


def elementary_bounds(net: Network, loads: Floats) -> Bracket:
    """Return bounds from hop distances, cuts and equal splitting over shortest paths.

    The upper bound is the largest edge betweenness over unordered pairs. The loads of that routing are added to
    ``loads``, ``[blocks, m]``, zero before.
    """
    from graphsnd.bounds.forwarding import loops

    hops = loops.betweenness(*net.arcs, loads)
    total = loads.sum(axis=0)
    upper = largest_load(net, total)
    # With unit capacities these are quotients of whole numbers, and rounding cannot take them past a whole index.
    down = 1.0 if (net.capacity == 1).all() else 1 - ROUNDING
    bracket = Bracket(hops / float(net.capacity.sum()) * down, upper, np.ones(net.m))
    for value, lengths in (_best_vertex(net), _best_sweep(net)):
        bracket = bracket.with_lower(value * down, lengths)
    # Where all pairs across a bridge meet, nothing but the bridge counts: on trees this is exact.
    crowded = (total / net.capacity > upper * (1 - 1e-6)).astype(np.float64)
    return bracket.with_lower(dual_bound(net, crowded), crowded)


def strengths(net: Network) -> Floats:
    """Return the capacity at every vertex, ``[n]``; with unit capacities its degree."""
    return np.bincount(net.edges.ravel(), np.repeat(net.capacity, 2), net.n).astype(np.float64, copy=False)


def _best_vertex(net: Network) -> tuple[float, Floats]:
    """Return the cut around one vertex that is worst to cross, as a bound and its lengths."""
    strength = strengths(net)
    vertex = int(strength.argmin())
    return (net.n - 1) / float(strength[vertex]), (net.edges == vertex).any(axis=1).astype(np.float64)


def _best_sweep(net: Network) -> tuple[float, Floats]:
    """Return the worst cut among the initial segments of the order that the Fiedler vector gives."""
    place = np.empty(net.n, np.int64)
    place[np.argsort(_slow_mode(net), kind="stable")] = np.arange(net.n)
    first, last = np.sort(place[net.edges], axis=1).T
    steps = np.bincount(first, net.capacity, net.n) - np.bincount(last, net.capacity, net.n)
    sizes = np.arange(1, net.n)
    # Differences of sums of real capacities can leave a rounding error where the graph is barely connected.
    bounds = sizes * (net.n - sizes) / np.maximum(np.cumsum(steps)[:-1], net.capacity.min())
    cut = int(bounds.argmax())
    inside = place <= cut
    crossing = inside[net.edges[:, 0]] != inside[net.edges[:, 1]]
    value = (cut + 1) * (net.n - cut - 1) / float(net.capacity[crossing].sum())
    return value, crossing.astype(np.float64)


def _slow_mode(net: Network, rounds: int = 300) -> Floats:
    """Return roughly the second eigenvector of the random walk; any vector would give valid cuts."""
    tails, heads = net.edges.T
    strength = strengths(net)
    vector = np.cos(np.arange(net.n) * np.sqrt(2.0))
    for _ in range(rounds):
        vector -= (strength * vector).sum() / strength.sum()
        vector /= np.abs(vector).max() or 1.0
        forward, back = (net.capacity * vector[ends] for ends in (heads, tails))
        sums = np.bincount(tails, forward, net.n) + np.bincount(heads, back, net.n)
        vector = (vector + sums / strength) / 2
    return vector
