"""The compiled loops behind the forwarding index: shortest paths, their loads, and how to rebalance them.

A network reaches these loops as ``indptr``, ``heads`` and ``ids``: the arcs of vertex u are ``indptr[u] ..
indptr[u+1]``, each with the vertex it leads to and the number of its edge. Loads and lengths are indexed by edge.

All loops live in this one file because numba's disk cache notices a change only in the file of the function it caches,
not in those that function calls.
"""

from __future__ import annotations

import numba
import numpy as np

jit = numba.njit(nogil=True, cache=True)


@jit
def dijkstra(source, stop, indptr, heads, ids, length):
    """Return the shortest paths from ``source`` until ``stop`` is settled (-1: all): dist, via, parent and order.

    ``order`` lists the settled vertices by distance, ``via`` the edge and ``parent`` the vertex before each. Lengths of
    zero are fine: a parent is always settled before its child.
    """
    n, arcs = len(indptr) - 1, len(heads)
    dist, settled = np.full(n, np.inf), np.zeros(n, np.bool_)
    via, parent, order = np.full(n, -1), np.full(n, -1), np.empty(n, np.int64)
    keys, nodes = np.empty(arcs + 1), np.empty(arcs + 1, np.int64)  # a heap of distances and their vertices
    dist[source] = 0.0
    keys[0], nodes[0], size, count = 0.0, source, 1, 0
    while size > 0:
        key, u = keys[0], nodes[0]
        size -= 1
        sift_down(keys, nodes, size)
        if settled[u]:
            continue
        settled[u] = True
        order[count] = u
        count += 1
        if u == stop or count == n:
            break
        for a in range(indptr[u], indptr[u + 1]):
            v = heads[a]
            reached = key + length[ids[a]]
            if not settled[v] and reached < dist[v]:
                dist[v], via[v], parent[v] = reached, ids[a], u
                sift_up(keys, nodes, size, reached, v)
                size += 1
    return dist, via, parent, order


@jit
def sift_down(keys, nodes, size):
    """Close the gap at the root with the entry at ``size``, the last one."""
    key, node, i = keys[size], nodes[size], 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], nodes[i] = keys[child], nodes[child]
        i = child
    keys[i], nodes[i] = key, node


@jit
def sift_up(keys, nodes, i, key, node):
    """Put an entry in at position ``i``, the first free one."""
    while i > 0:
        above = (i - 1) >> 1
        if keys[above] <= key:
            break
        keys[i], nodes[i] = keys[above], nodes[above]
        i = above
    keys[i], nodes[i] = key, node


@jit
def distance_sum(indptr, heads, ids, length):
    """Return the sum of the shortest distances over all unordered pairs."""
    total = 0.0
    for source in range(len(indptr) - 1):
        total += dijkstra(source, -1, indptr, heads, ids, length)[0].sum()
    return total / 2


@jit
def betweenness(indptr, heads, ids, loads):
    """Add the loads of splitting every pair equally over its paths with fewest edges; returns the sum of hop counts.

    Half of a pair is charged to each end, in row ``source % len(loads)``; the sum of the rows is the load.
    """
    n = len(indptr) - 1
    order, hops, paths, below = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), np.empty(n)
    total = 0
    for source in range(n):
        row = loads[source % len(loads)]
        hops[:] = -1
        paths[:] = 0.0
        below[:] = 0.0
        order[0], hops[source], paths[source], count = source, 0, 1.0, 1
        for i in range(n):
            u = order[i]
            total += hops[u]
            for a in range(indptr[u], indptr[u + 1]):
                v = heads[a]
                if hops[v] < 0:
                    hops[v], order[count] = hops[u] + 1, v
                    count += 1
                if hops[v] == hops[u] + 1:
                    paths[v] += paths[u]
        for i in range(n - 1, 0, -1):
            v = order[i]
            for a in range(indptr[v], indptr[v + 1]):
                u = heads[a]
                if hops[u] == hops[v] - 1:
                    share = paths[u] / paths[v] * (0.5 + below[v])
                    below[u] += share
                    row[ids[a]] += share
    return total // 2


@jit
def soft_lengths(total, capacity, sharpness, weight, length):
    """Fill the gradient of the soft maximum of the relative loads: ``weight`` sums to 1, ``length`` is per load."""
    relative = total / capacity
    weight[:] = np.exp(sharpness * (relative - relative.max()))
    weight /= weight.sum()
    length[:] = weight / capacity


@jit
def newton_step(new, old, capacity, weight, sharpness):
    """Return the step from the loads ``old`` towards ``new``: Newton's for the soft maximum, kept where it holds."""
    change = (new - old) / capacity
    slope, curvature, largest = (weight * change).sum(), (weight * change * change).sum(), np.abs(change).max()
    if slope >= 0.0:
        return 0.0
    # Beyond a factor e^2 in a single weight the quadratic model says nothing.
    return min(1.0, -slope / (sharpness * (curvature - slope * slope) + 1e-300), 2.0 / (sharpness * largest))


@jit
def rebalance(indptr, heads, ids, capacity, loads, total, sharpness, average):
    """Do one round: every block of sources moves part of its flow onto shortest paths under the current lengths.

    ``loads[block]`` and ``total`` change in place, and remain the loads of a fractional routing: convex combinations of
    tree routings. The lengths used are added to ``average``.
    """
    n, m, blocks = len(indptr) - 1, len(total), len(loads)
    weight, length, new = np.empty(m), np.empty(m), np.empty(m)
    for block in range(blocks):
        soft_lengths(total, capacity, sharpness, weight, length)
        average += length
        new[:] = 0.0
        for source in range(block, n, blocks):
            _, via, parent, order = dijkstra(source, -1, indptr, heads, ids, length)
            pairs = np.full(n, 0.5)
            for i in range(n - 1, 0, -1):
                v = order[i]
                new[via[v]] += pairs[v]
                pairs[parent[v]] += pairs[v]
        step = newton_step(new, loads[block], capacity, weight, sharpness)
        change = step * (new - loads[block])
        loads[block] += change
        total += change
