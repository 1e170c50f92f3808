r"""The edge forwarding index of a graph, between bounds that hold for certain.

For any lengths l >= 0 on the edges, every path of a pair is at least as long as their distance, so that

.. math:: \sum_{s<t} \mathrm{dist}_l(s,t) \le \sum_e \mathrm{load}(e)\, l(e) \le \pi \sum_e c(e)\, l(e),

for routings with one path per pair and fractional ones alike, with capacities c (1 each without weights). Linear
programming duality says that the best lengths leave no gap to the fractional index. So each method here ends with a
routing, whose largest load is the upper bound, and with lengths, whose distances are the lower bound.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.spectral import Floats, Ints, edge_weights
from graphsnd.errors import InputError, check_choice, check_number
from graphsnd.graphs import Graph

METHODS = ("auto", "lp", "flow", "betweenness")
EXACT = 25_000  # variables of the linear program that auto still solves: about a second
SOLVABLE = 200_000  # variables beyond which the linear program takes minutes and gigabytes
ROUNDING = 1e-9  # outwards, far more than float64 sums of positive terms can be off
ENTRIES = 2**22  # numbers in the largest temporary
BLOCKS = 64  # groups of sources, which take turns in moving their flow
ROUNDS = 200  # at most; each is one shortest-path tree for every source
WARM, COOLING, COLDEST = 0.5, 0.85, 1e-4  # temperatures, relative to the largest load
AVERAGING = 0.5  # weight that a round leaves to the lengths before it


@dataclass(frozen=True, eq=False)
class ForwardingIndex:
    """Bounds on the fractional edge forwarding index of a graph, with their certificate.

    Example:
        >>> import networkx, graphsnd as gs
        >>> index = forwarding_index(gs.graphs.from_networkx(networkx.cycle_graph(4)))
        >>> round(index.lower, 6), round(index.upper, 6), abs(index.gap) < 1e-6
        (2.0, 2.0, True)
    """

    lower: float  # bound of the fractional index; rounded up, of the index with one path per pair as well
    upper: float  # bound of the fractional index
    method: str  # what narrowed the bounds: lp, flow or betweenness
    lengths: Tensor  # float64 [m], of the edges; the distances under them prove `lower`

    @property
    def gap(self) -> float:
        """The relative width of the bounds."""
        return self.upper / self.lower - 1

    def __repr__(self) -> str:
        return f"ForwardingIndex(in [{self.lower:.6g}, {self.upper:.6g}], {self.method})"


def forwarding_index(
    graph: Graph, method: str = "auto", *, tolerance: float = 0.02, seconds: float | None = None
) -> ForwardingIndex:
    r"""Return bounds on the fractional edge forwarding index: the load of the most loaded edge, at its smallest.

    .. math:: \pi^*(G) = \min_f \max_{e \in E} \mathrm{load}_f(e)

    over routings f that send each *unordered* pair over one or several paths, so that the index of a complete graph
    is 1. The paper's index :math:`\pi` allows one path per pair; it is at least :math:`\pi^*`, and the distortion
    theorem holds with either. The paper also asks that adjacent pairs use their own edge. This changes neither value:
    where the pair {u, v} takes a detour P, it can trade with a path that uses the edge uv, which takes P instead, and
    no load grows.

    Both bounds are certified, whatever the method and whenever it stops: above by the loads of an actual routing, below
    by the distances under actual edge lengths.

    Args:
        graph: A connected graph. Its weights do not enter.
        method: ``lp`` solves the linear program (exact; up to 200,000 variables, (n-1) 2m of them: about 100 agents of
            degree 10). ``flow`` approximates it on graphs of thousands of edges. ``betweenness`` takes equal splitting
            over shortest paths as it is. ``auto`` stops at betweenness where that is optimal, else picks ``lp`` up to
            25,000 variables and ``flow`` above. ``flow`` also takes the place of ``lp`` where its solver fails.
        tolerance: Relative gap at which ``flow`` stops.
        seconds: Time limit for ``flow``; none when None. A round, one shortest-path tree per agent, is finished; there
            are at most 200. Above 2e7 agents times edges it may take minutes.

    Raises:
        InputError: For a graph that is not connected, or too large for ``lp``.

    Example:
        >>> import networkx
        >>> from graphsnd import graphs
        >>> forwarding_index(graphs.from_networkx(networkx.cycle_graph(4)))
        ForwardingIndex(in [2, 2], betweenness)
    """
    return index_of_network(build_network(graph), method, tolerance, seconds)


@dataclass(frozen=True, eq=False)
class Network:
    """A connected undirected graph whose edges carry capacities."""

    n: int  # vertices
    edges: Ints  # [m, 2], i < j, sorted
    capacity: Floats  # [m], positive; a load counts relative to it
    arcs: Any  # scipy.sparse CSR [n, n], the number of the edge between two vertices

    @property
    def m(self) -> int:
        """The number of edges."""
        return len(self.edges)

    def strengths(self) -> Floats:
        """Return the capacity at every vertex, ``[n]``; without weights its degree."""
        return np.bincount(self.edges.ravel(), np.repeat(self.capacity, 2), self.n).astype(np.float64, copy=False)

    def matrix(self, values: Floats) -> Any:
        """Return the symmetric sparse matrix of values ``[m]`` on the edges; zeros are stored."""
        from scipy.sparse import csr_matrix

        return csr_matrix((values[self.arcs.data], self.arcs.indices, self.arcs.indptr), shape=(self.n, self.n))

    def blocks(self) -> Iterator[Ints]:
        """Return all vertices in blocks whose distances, or flows on all edges, fit into a temporary."""
        return iter(np.array_split(np.arange(self.n), 1 + self.n * max(self.n, self.m) // ENTRIES))


def build_network(graph: Graph, *, weighted: bool = False) -> Network:
    """Return the network of a connected graph.

    Args:
        graph: The graph.
        weighted: Take the weights as capacities, in units of the largest, and leave out edges of weight 0; otherwise
            all capacities are 1.

    Raises:
        InputError: When the edges do not join all agents.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    weights = edge_weights(graph)
    # In units of the largest, weights of 1e-300 and of 1e300 are all the same.
    capacity = weights / (weights.max(initial=0.0) or 1.0) if weighted else np.ones(graph.m)
    edges = graph.edges.cpu().numpy()
    edges, capacity = edges[capacity > 0], capacity[capacity > 0]
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    arcs = csr_matrix((np.tile(np.arange(len(edges)), 2), tuple(ends)), shape=(graph.n, graph.n))
    count = connected_components(arcs, directed=False, return_labels=False)
    if count > 1:
        fix = "Add edges between them, or measure each component by itself."
        raise InputError("graph", "to be connected, so that every pair has a path", f"{count} components", fix)
    return Network(graph.n, edges, capacity, arcs)


def index_of_network(net: Network, method: str, tolerance: float, seconds: float | None) -> ForwardingIndex:
    """Return the same for a network: loads count relative to capacities."""
    check_choice("method", method, METHODS)
    tolerance = check_number("tolerance", tolerance, low=0)
    deadline = math.inf if seconds is None else time.monotonic() + check_number("seconds", seconds, low=0)
    loads, index = _split_equally(net)
    variables = (net.n - 1) * 2 * net.m  # a flow for every source but the last, on every arc
    if method == "auto":
        method = "betweenness" if index.gap <= 3 * ROUNDING else "lp" if variables <= EXACT else "flow"
    if method == "lp" and variables > SOLVABLE:
        got = f"a graph with n = {net.n} and m = {net.m}: {variables} variables"
        raise InputError("graph", f"small enough for `lp`, (n-1) 2m <= {SOLVABLE}", got, 'Use method="flow".')
    index = replace(index, method=method)
    if method == "lp":
        solved = _solve(net, index)
        return solved or _descend(net, loads, replace(index, method="flow"), tolerance, deadline)
    return _descend(net, loads, index, tolerance, deadline) if method == "flow" else index


def _with_lengths(net: Network, index: ForwardingIndex, lengths: Floats) -> ForwardingIndex:
    """Return the index with the lower bound that edge lengths ``[m]`` prove, if it is better."""
    from scipy.sparse.csgraph import dijkstra

    norm, matrix = float((lengths * net.capacity).sum()), net.matrix(lengths)
    if norm == 0:
        return index
    distances = sum(float(dijkstra(matrix, indices=block).sum()) for block in net.blocks()) / 2
    lower = distances / norm * (1 - ROUNDING)
    return replace(index, lower=lower, lengths=torch.from_numpy(lengths)) if lower > index.lower else index


def _with_loads(net: Network, index: ForwardingIndex, loads: Floats) -> ForwardingIndex:
    """Return the index with the upper bound that the loads ``[m]`` of a fractional routing prove, if it is better."""
    return replace(index, upper=min(index.upper, float((loads / net.capacity).max()) * (1 + ROUNDING)))


def _split_equally(net: Network) -> tuple[Floats, ForwardingIndex]:
    """Return the loads when every pair is split over its paths with fewest edges, and the index they prove.

    These are the edge betweennesses over unordered pairs. Half of a pair is charged to each end: the loads are kept by
    block of sources, ``[blocks, m]``.
    """
    loads = np.zeros((min(net.n, BLOCKS), net.m))
    for block in net.blocks():
        flows = _equal_flows(net, block)
        for own, share in zip(block, flows.T, strict=True):
            loads[own % len(loads)] += share
    total = loads.sum(axis=0)
    index = _with_loads(net, ForwardingIndex(0.0, math.inf, "betweenness", torch.ones(net.m)), total)
    # Where all pairs across a bridge meet, nothing but the bridge counts: on trees this is exact. Elsewhere it may be
    # the edges of one vertex that all paths to it have to share.
    crowded = total / net.capacity > index.upper * (1 - 1e-6)
    lonely = (net.edges == net.strengths().argmin()).any(axis=1)
    for lengths in (np.ones(net.m), crowded, lonely):
        index = _with_lengths(net, index, lengths.astype(np.float64))
    return loads, index


def _equal_flows(net: Network, sources: Ints) -> Floats:
    """Return the flow ``[m, sources]`` from each source of half a unit to every vertex, over paths with fewest edges.

    Brandes' recursion, level by level for all sources: paths are counted away from a source, flows towards it.
    """
    from scipy.sparse.csgraph import dijkstra

    hops = dijkstra(net.arcs, unweighted=True, indices=sources).T
    joined, (i, j) = net.matrix(np.ones(net.m)), net.edges.T
    paths, levels = (hops == 0).astype(np.float64), int(hops.max())
    for level in range(levels):
        paths += (joined @ np.where(hops == level, paths, 0.0)) * (hops == level + 1)
    per_path = np.zeros_like(paths)  # the flow that passes a vertex or ends there, by path that leads to it
    for level in range(levels, 0, -1):
        beyond = joined @ np.where(hops == level + 1, per_path, 0.0)
        per_path += np.where(hops == level, 0.5 / paths + beyond, 0.0)
    forward, back = paths[i] * per_path[j], paths[j] * per_path[i]
    return np.where(hops[j] > hops[i], forward, 0.0) + np.where(hops[j] < hops[i], back, 0.0)


def _descend(net: Network, loads: Floats, index: ForwardingIndex, tolerance: float, deadline: float) -> ForwardingIndex:
    r"""Narrow the bounds until their gap is at most ``tolerance``, by soft-maximum descent.

    The largest relative load is replaced by :math:`\beta^{-1} \log \sum_e \exp(\beta\, \mathrm{load}_e / c_e)`. Its
    gradient is a length for every edge; the routing that decreases it fastest sends every pair along its shortest path
    under these lengths (Garg and Könemann; Fleischer). Blocks of sources take turns: each moves part of its flow onto
    its new trees by Newton's step, and the lengths follow at once. Loads are at all times those of a fractional
    routing, convex combinations of tree routings; the lengths, averaged, give the lower bound. Between rounds beta
    grows: lowering the temperature slowly balances the many equally short paths of a random graph.

    Args:
        net: The network.
        loads: ``[blocks, m]``, the loads of a fractional routing to start from; overwritten.
        index: Forwarding index, if it is known.
        tolerance: Relative gap that is good enough.
        deadline: Time of ``time.monotonic()`` at which to stop.
    """
    average, temperature = np.zeros(net.m), WARM
    for round_ in range(ROUNDS):
        if index.gap <= tolerance or time.monotonic() > deadline:
            break
        total = loads.sum(axis=0)
        sharpness = math.log(net.m + 1) / (temperature * float((total / net.capacity).max()))
        average *= AVERAGING
        for block, own in enumerate(loads):
            relative = total / net.capacity
            weight = np.exp(sharpness * (relative - relative.max()))
            weight /= weight.sum()
            average += weight / net.capacity
            new = _tree_loads(net, np.arange(block, net.n, len(loads)), weight / net.capacity)
            change = _newton_step((new - own) / net.capacity, weight, sharpness) * (new - own)
            own += change
            total += change
        index = _with_loads(net, index, loads.sum(axis=0))
        # The lower bound costs as much as a round; on alternate rounds it is worth that.
        if round_ % 2:
            index = _with_lengths(net, index, average / average.sum())
        temperature = min(temperature, max(index.gap / 3, COOLING * temperature, COLDEST))
    return index


def _newton_step(change: Floats, weight: Floats, sharpness: float) -> float:
    """Return Newton's step for the soft maximum along a change of the relative loads, kept where it holds."""
    slope, curvature = float((weight * change).sum()), float((weight * change * change).sum())
    if slope >= 0.0:
        return 0.0
    # Beyond a factor e^2 in a single weight the quadratic model says nothing.
    newton = -slope / (sharpness * (curvature - slope * slope) + 1e-300)
    return min(1.0, newton, 2.0 / (sharpness * float(np.abs(change).max())))


def _tree_loads(net: Network, sources: Ints, lengths: Floats) -> Floats:
    """Return the loads ``[m]`` of sending half a unit from each source to every vertex along its shortest path."""
    from scipy.sparse.csgraph import dijkstra

    parents = dijkstra(net.matrix(lengths), indices=sources, return_predecessors=True)[1]
    rows, at = (parents >= 0).nonzero()
    above = parents[rows, at]
    keys = net.edges[:, 0] * net.n + net.edges[:, 1]
    edge = np.zeros(parents.shape, np.int64)  # from each vertex towards the source
    edge[rows, at] = np.searchsorted(keys, np.minimum(at, above) * net.n + np.maximum(at, above))
    loads = np.zeros(net.m)
    while len(at):  # all pairs go one step towards their sources
        loads += np.bincount(edge[rows, at], minlength=net.m) / 2
        at = parents[rows, at]
        rows, at = rows[parents[rows, at] >= 0], at[parents[rows, at] >= 0]
    return loads


def _solve(net: Network, index: ForwardingIndex) -> ForwardingIndex | None:
    r"""Narrow the bounds to the optimum with HiGHS, by the linear program of multicommodity flow.

    Source s sends one unit to every t > s. With flows f_s on the 2m arcs,

    .. math:: \min \pi \quad \text{s.t.} \quad \mathrm{div} f_s = b_s, \quad
        \sum_s f_s(uv) + f_s(vu) \le \pi\, c(uv), \quad f \ge 0.

    Returns:
        The bounds; None where HiGHS finds no optimum, as where capacities differ by many orders of magnitude.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, csr_matrix, hstack, identity, kron

    sources, (tails, heads), number = net.n - 1, net.edges.T, np.tile(np.arange(net.m), 2)
    # What a unit on each arc brings to each vertex: i to j first, then j to i.
    signs = np.repeat([1.0, -1.0], net.m), (np.concatenate([heads, tails]), number)
    forward = coo_matrix(signs, shape=(net.n, net.m))
    incidence = hstack([forward, -forward], format="csr")
    demands = np.triu(np.ones((net.n, net.n)), 1)[:-1]
    demands[np.arange(sources), np.arange(sources)] = -demands.sum(axis=1)
    # The balance at a source follows from the others; with it the rows would be dependent.
    kept = (np.arange(net.n) != np.arange(sources)[:, None]).ravel()
    balance = kron(identity(sources), incidence, format="csr")[kept]
    balance = hstack([balance, csr_matrix((balance.shape[0], 1))], format="csr")
    use = hstack([identity(net.m)] * (2 * sources) + [csr_matrix(-net.capacity[:, None])], format="csr")
    objective = np.zeros(balance.shape[1])
    objective[-1] = 1.0
    result = linprog(objective, use, np.zeros(net.m), balance, demands.ravel()[kept], method="highs-ipm")
    if not result.success:
        return None
    # Nothing is taken on trust: what the flows fail to deliver is charged to every edge, as if all of it passed there.
    flows = np.maximum(result.x[:-1], 0).reshape(sources, 2 * net.m)
    missing = float(np.abs(demands - flows @ incidence.T).sum()) / 2
    index = _with_loads(net, index, flows.reshape(-1, net.m).sum(axis=0) + missing)
    return _with_lengths(net, index, np.maximum(-result.ineqlin.marginals, 0))
