"""The compiled loops behind the forwarding index: shortest paths, their loads, and the two ways to rebalance them.

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
def dijkstra(source, stop, indptr, heads, ids, length, dist, via, parent, order, keys, nodes):
    """Shortest paths from ``source`` until ``stop`` is settled (-1: all); returns how many vertices are settled.

    ``order`` lists the settled vertices by distance, ``via`` the edge and ``parent`` the vertex before each. Lengths of
    zero are fine: a parent is always settled before its child.
    """
    n = len(dist)
    dist[:] = np.inf
    settled = np.zeros(n, np.bool_)
    dist[source] = 0.0
    via[source] = -1
    parent[source] = -1
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
    return count


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
    """The sum of the shortest distances over all unordered pairs."""
    n, arcs = len(indptr) - 1, len(heads)
    dist, keys = np.empty(n), np.empty(arcs + 1)
    via, parent, order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    nodes = np.empty(arcs + 1, np.int64)
    total = 0.0
    for source in range(n):
        dijkstra(source, -1, indptr, heads, ids, length, dist, via, parent, order, keys, nodes)
        total += dist.sum()
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
    top, norm = 0.0, 0.0
    for e in range(len(total)):
        top = max(top, total[e] / capacity[e])
    for e in range(len(total)):
        weight[e] = np.exp(sharpness * (total[e] / capacity[e] - top))
        norm += weight[e]
    for e in range(len(total)):
        weight[e] /= norm
        length[e] = weight[e] / capacity[e]


@jit
def newton_step(new, old, capacity, weight, sharpness):
    """How far to go from the loads ``old`` towards ``new``: Newton's step for the soft maximum, kept where it holds."""
    slope, curvature, largest = 0.0, 0.0, 0.0
    for e in range(len(new)):
        change = (new[e] - old[e]) / capacity[e]
        slope += weight[e] * change
        curvature += weight[e] * change * change
        largest = max(largest, abs(change))
    if slope >= 0.0:
        return 0.0
    # Beyond a factor e^2 in a single weight the quadratic model says nothing.
    return min(1.0, -slope / (sharpness * (curvature - slope * slope) + 1e-300), 2.0 / (sharpness * largest))


@jit
def rebalance(indptr, heads, ids, capacity, loads, total, sharpness, average):
    """One round: every block of sources moves part of its flow onto shortest paths under the current lengths.

    ``loads[block]`` and ``total`` change in place, and remain the loads of a fractional routing: convex combinations of
    tree routings. The lengths used are added to ``average``.
    """
    n, arcs, m, blocks = len(indptr) - 1, len(heads), len(total), len(loads)
    dist, keys, pairs = np.empty(n), np.empty(arcs + 1), np.empty(n)
    via, parent, order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    nodes = np.empty(arcs + 1, np.int64)
    weight, length, new = np.empty(m), np.empty(m), np.empty(m)
    for block in range(blocks):
        soft_lengths(total, capacity, sharpness, weight, length)
        average += length
        new[:] = 0.0
        for source in range(block, n, blocks):
            dijkstra(source, -1, indptr, heads, ids, length, dist, via, parent, order, keys, nodes)
            pairs[:] = 0.5
            for i in range(n - 1, 0, -1):
                v = order[i]
                new[via[v]] += pairs[v]
                pairs[parent[v]] += pairs[v]
        step = newton_step(new, loads[block], capacity, weight, sharpness)
        for e in range(m):
            change = step * (new[e] - loads[block, e])
            loads[block, e] += change
            total[e] += change


@jit
def price(load, worth, level, sharpness, hop):
    """What one more path costs on an edge: ``hop``, and exponentially more the further it goes beyond ``level``.

    ``worth`` is the edge's capacity, give or take what breaks ties.
    """
    return (np.exp(min(sharpness * ((load + 1) / worth - level), 60.0)) + hop) / worth


@jit
def route(indptr, heads, ids, capacity, worth, load, level, sharpness, hop, limit, chunk, pool, start, hops, used):
    """One pass over the pairs: route what is not routed, and what crosses an edge loaded above ``limit``, anew.

    Pair (s, t), s < t, in the order of rows, keeps its edges from t back to s in ``pool[start : start + hops]``; hops
    of -1 mean not routed yet. ``chunk`` targets of a source share one tree of shortest paths under the prices.
    Returns whether the pool is full, which ends the pass early, and how many of its entries are used.
    """
    n, arcs, m = len(indptr) - 1, len(heads), len(load)
    dist, keys = np.empty(n), np.empty(arcs + 1)
    via, parent, order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    nodes, batch = np.empty(arcs + 1, np.int64), np.empty(chunk, np.int64)
    prices = np.empty(m)
    for e in range(m):
        prices[e] = price(load[e], worth[e], level, sharpness, hop)
    for turn in range(n):
        # From both ends of the numbering: early sources have many targets, late ones few.
        s = turn // 2 if turn % 2 == 0 else n - 1 - turn // 2
        first = s * n - s * (s + 1) // 2 - s - 1
        t = s + 1
        while t < n:
            size = 0
            while t < n and size < chunk:
                if wants(first + t, load, capacity, limit, pool, start, hops):
                    batch[size] = t
                    size += 1
                t += 1
            if size == 0:
                break
            if used + size * n > len(pool):
                return True, used
            for k in range(size):
                shift(first + batch[k], -1, load, worth, level, sharpness, hop, prices, pool, start, hops)
            stop = batch[0] if size == 1 else -1
            dijkstra(s, stop, indptr, heads, ids, prices, dist, via, parent, order, keys, nodes)
            for k in range(size):
                pair = first + batch[k]
                if hops[pair] < 0 or dist[batch[k]] < (1 - 1e-12) * cost(pair, prices, pool, start, hops):
                    used = write(pair, batch[k], via, parent, pool, start, hops, used)
            # Prices stand still while a chunk is compared; they follow here.
            for k in range(size):
                shift(first + batch[k], 1, load, worth, level, sharpness, hop, prices, pool, start, hops)
    return False, used


@jit
def wants(pair, load, capacity, limit, pool, start, hops):
    """Whether a pair has no path, or one across an edge loaded above ``limit``."""
    if hops[pair] < 0:
        return True
    above = False
    for k in range(start[pair], start[pair] + hops[pair]):
        above |= load[pool[k]] > limit * capacity[pool[k]]
    return above


@jit
def shift(pair, by, load, worth, level, sharpness, hop, prices, pool, start, hops):
    """Add the pair's path to the loads (by 1) or take it away (by -1), prices with it."""
    for k in range(start[pair], start[pair] + max(hops[pair], 0)):
        e = pool[k]
        load[e] += by
        prices[e] = price(load[e], worth[e], level, sharpness, hop)


@jit
def cost(pair, prices, pool, start, hops):
    """The price of the pair's path."""
    total = 0.0
    for k in range(start[pair], start[pair] + hops[pair]):
        total += prices[pool[k]]
    return total


@jit
def write(pair, target, via, parent, pool, start, hops, used):
    """Store the path of the tree to ``target``: in its old place when it fits, at the end of the pool otherwise."""
    length, v = 0, target
    while via[v] >= 0:
        length, v = length + 1, parent[v]
    if length > hops[pair]:
        start[pair], used = used, used + length
    hops[pair] = length
    k, v = start[pair], target
    while via[v] >= 0:
        pool[k] = via[v]
        k, v = k + 1, parent[v]
    return used


@jit
def tree_loads(indptr, heads, ids, capacity):
    """The loads of one tree of shortest paths per source, by hops and then by load: integral, and nothing is stored."""
    n, arcs, m = len(indptr) - 1, len(heads), len(capacity)
    dist, keys, pairs = np.empty(n), np.empty(arcs + 1), np.empty(n)
    via, parent, order = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    nodes = np.empty(arcs + 1, np.int64)
    load, length = np.zeros(m), np.ones(m)
    for source in range(n):
        dijkstra(source, -1, indptr, heads, ids, length, dist, via, parent, order, keys, nodes)
        top = 0.0
        for v in range(n):
            pairs[v] = 1.0 if v > source else 0.0
        for i in range(n - 1, 0, -1):
            v = order[i]
            load[via[v]] += pairs[v]
            pairs[parent[v]] += pairs[v]
        for e in range(m):
            top = max(top, load[e] / capacity[e])
        for e in range(m):
            length[e] = 1.0 + load[e] / capacity[e] / (top * n)
    return load
