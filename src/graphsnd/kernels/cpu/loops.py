"""The compiled loops of the CPU backend.

Everything the CPU does is a stream of blocks of 64 lanes, ``x[feature, lane]`` against ``y[feature, lane]``: 64
observations of one pair of agents, or 64 pairs of one observation. Sixty-four lanes fill eight AVX2 registers, and
two tiles of 16 agents by 4 features stay in a first-level cache. Features are taken four at a time so that the
running sum goes through memory once per four; one compiled function serves every number of features. Euclidean
distances of many features have loops of their own, where up to 512 agents are the lanes: ``euclidean_totals``.

All loops live in this one file because numba's disk cache notices a change only in the file of the function it
caches, not in those that function calls.
"""

from __future__ import annotations

import numba
import numpy as np

LANES = 64
TILE = 16  # agents
SPAN = 512  # agents side by side, where they are the lanes
ROW = SPAN + 16  # between their features: at a power of two these would compete for lines of the cache
GROUP = 8  # agents that meet a span
EUCLIDEAN = 0  # any other norm is half L1

# No nnan/ninf: a NaN that slipped past validate=False must come out as NaN.
FLAGS = {"contract", "reassoc", "nsz", "arcp"}
jit = numba.njit(nogil=True, cache=True, fastmath=FLAGS, error_model="numpy")
inlined = numba.njit(nogil=True, cache=True, fastmath=FLAGS, error_model="numpy", inline="always")


@inlined
def distances(norm, x, y, d):
    """Fill ``d[lane]`` with the distance between ``x[:, lane]`` and ``y[:, lane]``."""
    if norm == EUCLIDEAN:
        squares(x, y, d)
        for q in range(LANES):
            d[q] = np.sqrt(d[q])
    else:
        absolutes(x, y, d)


@inlined
def squares(x, y, d):
    """Sums of squared differences."""
    features = x.shape[0]
    if features >= 4:
        for q in range(LANES):
            a, b, c, e = x[0, q] - y[0, q], x[1, q] - y[1, q], x[2, q] - y[2, q], x[3, q] - y[3, q]
            d[q] = a * a + b * b + c * c + e * e
        f = 4
    else:
        for q in range(LANES):
            a = x[0, q] - y[0, q]
            d[q] = a * a
        f = 1
    while f + 4 <= features:
        for q in range(LANES):
            a, b, c, e = (
                x[f, q] - y[f, q],
                x[f + 1, q] - y[f + 1, q],
                x[f + 2, q] - y[f + 2, q],
                x[f + 3, q] - y[f + 3, q],
            )
            d[q] += a * a + b * b + c * c + e * e
        f += 4
    while f < features:
        for q in range(LANES):
            a = x[f, q] - y[f, q]
            d[q] += a * a
        f += 1


@inlined
def add_distances(norm, x, y, d, acc):
    """Add the distances to ``acc[lane]``; the root of a square is taken on the way."""
    if norm == EUCLIDEAN:
        squares(x, y, d)
        for q in range(LANES):
            acc[q] += np.sqrt(d[q])
    else:
        distances(norm, x, y, d)
        for q in range(LANES):
            acc[q] += d[q]


@jit
def absolutes(x, y, d):
    """Half the sums of absolute differences."""
    d[:] = 0
    half = d.dtype.type(0.5)
    for f in range(x.shape[0]):
        for q in range(LANES):
            d[q] += abs(x[f, q] - y[f, q]) * half


@inlined
def add_slopes(norm, x, y, d, c, gx, gy):
    """Add ``c[lane]`` times the derivative of the distance to ``gx`` and ``gy``; nothing where the distance is 0."""
    if norm == EUCLIDEAN:
        zero = d.dtype.type(0)
        for q in range(LANES):
            d[q] = c[q] / d[q] if d[q] > zero else zero
        for f in range(x.shape[0]):
            for q in range(LANES):
                t = (x[f, q] - y[f, q]) * d[q]
                gx[f, q] += t
                gy[f, q] -= t
    else:
        for f in range(x.shape[0]):
            for q in range(LANES):
                t = np.sign(x[f, q] - y[f, q]) * c[q] * d.dtype.type(0.5)
                gx[f, q] += t
                gy[f, q] -= t


@inlined
def new_block(x):
    """Room for some lanes of observations, ``[agent, feature, lane]``."""
    return np.empty((x.shape[1], x.shape[2], LANES), x.dtype)


@jit
def load(x, start, count, inverse, out):
    """Transpose observations ``start`` to ``start + count`` into ``out[agent, feature, lane]``, zero beyond."""
    for i in range(out.shape[0]):
        for f in range(out.shape[1]):
            for q in range(count):
                out[i, f, q] = x[start + q, i, f] * inverse
            out[i, f, count:] = 0


@jit
def store(block, start, count, x):
    """The reverse of :func:`load`."""
    for i in range(block.shape[0]):
        for f in range(block.shape[1]):
            x[start : start + count, i, f] = block[i, f, :count]


@jit
def totals(norm, x, inverse, first, last, out):
    """``out[o]``: sum of distances over pairs, for observations ``first`` to ``last``."""
    n, block = x.shape[1], new_block(x)
    d, acc = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype)
    sums = np.empty(LANES, np.float64)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        sums[:] = 0
        for a in range(0, n, TILE):
            for b in range(a, n, TILE):
                # At most 256 terms in single precision, then on in double.
                acc[:] = 0
                for i in range(a, min(a + TILE, n)):
                    for j in range(max(b, i + 1), min(b + TILE, n)):
                        add_distances(norm, block[i], block[j], d, acc)
                sums += acc
        out[o : o + count] = sums[:count]


@jit
def slopes(norm, x, inverse, first, last, out, gradient):
    """``out[o]`` as :func:`totals` and ``gradient[o, i, f]`` of it, in one visit of the pairs."""
    n, block, pulls = x.shape[1], new_block(x), new_block(x)
    d, acc, ones = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype), np.ones(LANES, x.dtype)
    sums = np.empty(LANES, np.float64)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        pulls[:] = 0
        sums[:] = 0
        for a in range(0, n, TILE):
            for b in range(a, n, TILE):
                acc[:] = 0
                for i in range(a, min(a + TILE, n)):
                    for j in range(max(b, i + 1), min(b + TILE, n)):
                        distances(norm, block[i], block[j], d)
                        for q in range(LANES):
                            acc[q] += d[q]
                        add_slopes(norm, block[i], block[j], d, ones, pulls[i], pulls[j])
                sums += acc
        out[o : o + count] = sums[:count]
        store(pulls, o, count, gradient)


@jit
def matrix(norm, x, inverse, weight, first, last, out):
    """Upper triangle of ``out[i, j]``: weighted sums over all observations, for rows ``first`` to ``last``."""
    n, block = x.shape[1], new_block(x[:, first:])
    d = np.empty(LANES, x.dtype)
    w = np.zeros(LANES, np.float64)
    for o in range(0, x.shape[0], LANES):
        count = min(LANES, x.shape[0] - o)
        load(x[:, first:], o, count, inverse, block)
        w[:] = 0
        w[:count] = weight[o : o + count]
        for b in range(first, n, TILE):
            for i in range(first, last):
                for j in range(max(b, i + 1), min(b + TILE, n)):
                    distances(norm, block[i - first], block[j - first], d)
                    s = 0.0
                    for q in range(LANES):
                        s += w[q] * d[q]
                    out[i, j] += s


@jit
def row_totals(norm, x, inverse, first, last, out):
    """``out[o, i]``: sum over j > i for the rows ``i = first .. last``, lanes along j."""
    n, features = x.shape[1], x.shape[2]
    left, right = np.empty((features, LANES), x.dtype), np.empty((features, LANES), x.dtype)
    d = np.empty(LANES, x.dtype)
    for o in range(x.shape[0]):
        for b in range(first + 1 - (first + 1) % LANES, n, LANES):
            fill(x, o, b, inverse, right)
            for i in range(first, min(last, b + LANES)):
                for f in range(features):
                    left[f, :] = x[o, i, f] * inverse
                distances(norm, left, right, d)
                s = 0.0
                for q in range(max(0, i + 1 - b), min(LANES, n - b)):
                    s += d[q]
                out[o, i] += s


@jit
def euclidean_totals(x, inverse, first, last, out):
    """:func:`totals` for the Euclidean norm and teams that fill lanes of agents.

    Two agents at a time meet a span of others, four features at a time: what is loaded serves two pairs, and four
    features of a span stay in a first-level cache for a whole group of agents. Blocks of observations do not: with many
    features two tiles of them leave even a second-level one.
    """
    n, (y, w, r) = x.shape[1], new_spans(x)
    for o in range(first, last):
        turn(x[o], inverse, y)
        s = 0.0
        for p in range(y.shape[0]):
            count = min(SPAN, n - p * SPAN)
            w[p, :count] = 1
            for i in range(0, p * SPAN + count, GROUP):
                lane, rows = max(0, i - p * SPAN), min(GROUP, n - i)
                size = count - lane + -(count - lane) % TILE
                group_squares(y[i // SPAN, i % SPAN :], rows, y[p, lane:], size, r)
                for k in range(0, rows, 2):
                    # Each pair counts once; the second agent of two is at distance 0 from itself.
                    w[p, lane : max(lane, i + k + 1 - p * SPAN)] = 0
                    s += sum_roots(r[k * ROW :], w[p, lane : lane + size])
        out[o] = s


@jit
def euclidean_slopes(x, inverse, first, last, out, gradient):
    """:func:`slopes` for the Euclidean norm and teams that fill lanes of agents.

    Every pair is seen from both ends. The pull of all others on an agent is then a sum that stays in registers, which
    is faster than one visit that adds to both ends in memory.
    """
    n, features, (y, w, r) = x.shape[1], x.shape[2], new_spans(x)
    pull = np.empty((GROUP, y.shape[1] // ROW), x.dtype)
    for o in range(first, last):
        turn(x[o], inverse, y)
        s = 0.0
        for i in range(0, n, GROUP):
            u, rows = y[i // SPAN, i % SPAN :], min(GROUP, n - i)
            pull[:] = 0
            for p in range(y.shape[0]):
                count, v = min(SPAN, n - p * SPAN), y[p]
                size = count + -count % TILE
                w[p, :count] = 1
                ones = w[p, :size]
                if features <= 4:
                    for k in range(rows):
                        s += pull_four(u, k, v, ones, pull)
                else:
                    group_squares(u, rows, v, size, r)
                    for k in range(rows):
                        s += reciprocals(r[k * ROW :], ones)
                    group_pulls(u, rows, v, size, r, pull)
            gradient[o, i : i + rows] = pull[:rows, :features]
        out[o] = s / 2


@inlined
def new_spans(x):
    """Room for an observation, for the weights of its agents, and for a group's distances to a span."""
    spans, depth, dtype = -(-x.shape[1] // SPAN), x.shape[2] + -x.shape[2] % 4, x.dtype
    return np.zeros((spans, depth * ROW), dtype), np.zeros((spans, ROW), dtype), np.empty(GROUP * ROW, dtype)


@jit
def turn(x, inverse, y):
    """Transpose ``x[agent, feature]`` into ``y[span, feature * ROW + lane]``."""
    for p in range(y.shape[0]):
        part = x[p * SPAN : (p + 1) * SPAN]
        for f in range(x.shape[1]):
            row = y[p, f * ROW :]
            for q in range(part.shape[0]):
                row[q] = part[q, f] * inverse


@jit
def group_squares(u, rows, v, size, r):
    """``r[k * ROW + lane]``: squared distances of the first agents of ``u`` from the first lanes of ``v``."""
    for k in range(rows + rows % 2):
        r[k * ROW : k * ROW + size] = 0
    # Rows a constant apart and lanes that count from 0: only so do loops run many lanes at a time.
    for f in range(0, v.shape[0], 4 * ROW):
        y = v[f:]
        for k in range(0, rows, 2):
            x, s = u[f + k :], r[k * ROW :]
            a, b, c, e = x[0], x[ROW], x[2 * ROW], x[3 * ROW]
            g, h, i, j = x[1], x[ROW + 1], x[2 * ROW + 1], x[3 * ROW + 1]
            for q in range(size):
                ya, yb, yc, ye = y[q], y[q + ROW], y[q + 2 * ROW], y[q + 3 * ROW]
                s[q] += (a - ya) ** 2 + (b - yb) ** 2 + (c - yc) ** 2 + (e - ye) ** 2
                s[q + ROW] += (g - ya) ** 2 + (h - yb) ** 2 + (i - yc) ** 2 + (j - ye) ** 2


@jit
def sum_roots(r, w):
    """Return the sum of two agents' distances."""
    s = w.dtype.type(0)
    for q in range(w.shape[0]):
        s += w[q] * (np.sqrt(r[q]) + np.sqrt(r[q + ROW]))
    return s


@jit
def reciprocals(r, w):
    """Return the sum of an agent's distances, and replace their squares by their reciprocals."""
    s, zero, least = w.dtype.type(0), w.dtype.type(0), np.finfo(w.dtype).tiny
    for q in range(w.shape[0]):
        v = r[q]
        # The hardware's reciprocal root takes what is below the smallest normal number for 0.
        r[q] = w[q] / np.sqrt(v) if v >= least else zero
        s += v * r[q]
    return s


@jit
def group_pulls(u, rows, v, size, r, pull):
    """Add to ``pull[k]`` the derivatives of the sums of distances, from their reciprocals."""
    for f in range(0, pull.shape[1], 4):
        y = v[f * ROW :]
        for k in range(0, rows, 2):
            x, s = u[f * ROW + k :], r[k * ROW :]
            a, b, c, e = x[0], x[ROW], x[2 * ROW], x[3 * ROW]
            g, h, i, j = x[1], x[ROW + 1], x[2 * ROW + 1], x[3 * ROW + 1]
            pa = pb = pc = pe = pg = ph = pi = pj = r.dtype.type(0)
            for q in range(size):
                ya, yb, yc, ye = y[q], y[q + ROW], y[q + 2 * ROW], y[q + 3 * ROW]
                t = s[q]
                pa, pb, pc, pe = pa + (a - ya) * t, pb + (b - yb) * t, pc + (c - yc) * t, pe + (e - ye) * t
                t = s[q + ROW]
                pg, ph, pi, pj = pg + (g - ya) * t, ph + (h - yb) * t, pi + (i - yc) * t, pj + (j - ye) * t
            add_four(pull, k, f, pa, pb, pc, pe)
            add_four(pull, k + 1, f, pg, ph, pi, pj)


@inlined
def add_four(pull, k, f, a, b, c, e):
    """Add to four features of an agent."""
    for g, t in enumerate((a, b, c, e)):
        pull[k, f + g] += t


@jit
def pull_four(u, k, y, w, pull):
    """Both of these for one agent with four features: its distances need not go through memory."""
    zero, least = w.dtype.type(0), np.finfo(w.dtype).tiny
    a, b, c, e = u[k], u[k + ROW], u[k + 2 * ROW], u[k + 3 * ROW]
    s = pa = pb = pc = pe = zero
    for q in range(w.shape[0]):
        ta, tb, tc, te = a - y[q], b - y[q + ROW], c - y[q + 2 * ROW], e - y[q + 3 * ROW]
        v = ta * ta + tb * tb + tc * tc + te * te
        r = w[q] / np.sqrt(v) if v >= least else zero
        s += v * r
        pa, pb, pc, pe = pa + ta * r, pb + tb * r, pc + tc * r, pe + te * r
    add_four(pull, k, 0, pa, pb, pc, pe)
    return s


@jit
def row_slopes(norm, x, inverse, first, last, out, gradient):
    """``out[o, i]``: sum over all j, so every pair twice; ``gradient[o, i, f]``: the pull of all j on agent i."""
    n, features = x.shape[1], x.shape[2]
    left, right = np.empty((features, LANES), x.dtype), np.empty((features, LANES), x.dtype)
    gl, gr = np.empty((features, LANES), x.dtype), np.zeros((features, LANES), x.dtype)
    d, c = np.empty(LANES, x.dtype), np.zeros(LANES, x.dtype)
    for o in range(x.shape[0]):
        for b in range(0, n, LANES):
            fill(x, o, b, inverse, right)
            for q in range(LANES):
                c[q] = 1 if b + q < n else 0
            for i in range(first, last):
                for f in range(features):
                    left[f, :] = x[o, i, f] * inverse
                gl[:] = 0
                distances(norm, left, right, d)
                for q in range(LANES):
                    out[o, i] += c[q] * d[q]
                add_slopes(norm, left, right, d, c, gl, gr)
                for f in range(features):
                    s = 0.0
                    for q in range(LANES):
                        s += gl[f, q]
                    gradient[o, i, f] += s


@jit
def fill(x, o, start, inverse, out):
    """Agents ``start ..`` of one observation into ``out[feature, lane]``, the last one repeated beyond the end."""
    for f in range(x.shape[2]):
        for q in range(LANES):
            out[f, q] = x[o, min(start + q, x.shape[1] - 1), f] * inverse


@jit
def shared(norm, x, inverse, edges, coefficient, first, last, sums, out):
    """``out[o]``: sum over edges of distance, times coefficient if there are any; lanes are observations.

    Also add to ``sums[e]`` the sums over observations ``first`` to ``last``, unless it is empty.
    """
    block = new_block(x)
    d, acc, wide = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype), np.empty(LANES, np.float64)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)  # lanes beyond the last observation hold zeros, at distance 0
        wide[:] = 0
        for start in range(0, edges.shape[0], TILE * TILE):
            acc[:] = 0
            for e in range(start, min(start + TILE * TILE, edges.shape[0])):
                distances(norm, block[edges[e, 0]], block[edges[e, 1]], d)
                if coefficient.shape[0] == 0:
                    for q in range(LANES):
                        acc[q] += d[q]
                else:
                    for q in range(LANES):
                        wide[q] += coefficient[e] * d[q]
                if sums.shape[0] > 0:
                    s = 0.0
                    for q in range(LANES):
                        s += d[q]
                    sums[e] += s
            wide += acc
        out[o : o + count] = wide[:count]


@jit
def shared_backward(norm, x, inverse, edges, weight, grad, first, last, out):
    """``out``: gradient with respect to ``x`` of the sum of ``weight[o] * grad[e]`` times distance."""
    block, slopes = new_block(x), new_block(x)
    d, c = np.empty(LANES, x.dtype), np.zeros(LANES, x.dtype)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        slopes[:] = 0
        for e in range(edges.shape[0]):
            i, j = edges[e, 0], edges[e, 1]
            distances(norm, block[i], block[j], d)
            for q in range(count):
                c[q] = weight[o + q] * grad[e]
            add_slopes(norm, block[i], block[j], d, c, slopes[i], slopes[j])
        store(slopes, o, count, out)


@jit
def own(norm, x, inverse, edges, first, last, out):
    """``out[o, e]``: distance along edge ``e`` of observation ``o``; lanes are edges, gathered."""
    features, size = x.shape[2], edges.shape[1]
    left, right = np.empty((features, LANES), x.dtype), np.empty((features, LANES), x.dtype)
    d = np.empty(LANES, x.dtype)
    for o in range(first, last):
        for e in range(0, size, LANES):
            gather(x, o, edges, e, inverse, left, right)
            distances(norm, left, right, d)
            count = min(LANES, size - e)
            out[o, e : e + count] = d[:count]


@jit
def own_backward(norm, x, inverse, edges, grad, first, last, out):
    """Add to ``out`` the gradient with respect to ``x`` of ``sum(grad * own)``."""
    features, size = x.shape[2], edges.shape[1]
    left, right = np.empty((features, LANES), x.dtype), np.empty((features, LANES), x.dtype)
    gl, gr = np.empty((features, LANES), x.dtype), np.empty((features, LANES), x.dtype)
    d, c = np.empty(LANES, x.dtype), np.zeros(LANES, x.dtype)
    for o in range(first, last):
        for e in range(0, size, LANES):
            count = min(LANES, size - e)
            gather(x, o, edges, e, inverse, left, right)
            gl[:] = 0
            gr[:] = 0
            c[:count] = grad[o, e : e + count]
            distances(norm, left, right, d)
            add_slopes(norm, left, right, d, c, gl, gr)
            for q in range(count):
                for f in range(features):
                    out[o, edges[o, e + q, 0], f] += gl[f, q]
                    out[o, edges[o, e + q, 1], f] += gr[f, q]


@jit
def gather(x, o, edges, start, inverse, left, right):
    """Both ends of edges ``start ..`` of observation ``o``, the last edge repeated beyond the end."""
    for q in range(LANES):
        e = min(start + q, edges.shape[1] - 1)
        for f in range(x.shape[2]):
            left[f, q] = x[o, edges[o, e, 0], f] * inverse
            right[f, q] = x[o, edges[o, e, 1], f] * inverse
