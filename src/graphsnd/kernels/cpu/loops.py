"""The compiled loops of the CPU backend.

Everything the CPU does is a stream of blocks of 64 lanes, ``x[feature, lane]`` against ``y[feature, lane]``: 64
observations of one pair of agents, or 64 pairs of one observation. Sixty-four lanes fill eight AVX2 registers, and
two tiles of 16 agents by 4 features stay in a first-level cache. Features are taken four at a time so that the
running sum goes through memory once per four; one compiled function serves every number of features.

All loops live in this one file because numba's disk cache notices a change only in the file of the function it
caches, not in those that function calls.
"""

from __future__ import annotations

import math

import numba
import numpy as np

LANES = 64
TILE = 16  # agents
EUCLIDEAN, HALF_L1, SQRT_JS = 0, 1, 2

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
    elif norm == HALF_L1:
        absolutes(x, y, d)
    else:
        divergences(x, y, d)


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


@jit
def divergences(x, y, d):
    """Square roots of Jensen-Shannon divergences, by the series of ``pairfunctions`` where the logarithms cancel."""
    for q in range(LANES):
        total = 0.0
        for f in range(x.shape[0]):
            p, r = float(x[f, q]), float(y[f, q])
            if p + r != 0:  # NaN too must reach the sum
                total += (p + r) / 2 * entropy_gap((p - r) / (p + r))
        d[q] = math.sqrt(total)


@jit
def entropy_gap(t):
    """((1 + t) log(1 + t) + (1 - t) log(1 - t)) / 2."""
    s = t * t
    if s < 0.0625:
        h = 0.0
        for k in range(14, 0, -1):
            h = (h + 1.0 / (2 * k * (2 * k - 1))) * s
        return h
    h = 0.0
    if t > -1:
        h += (1 + t) * math.log(1 + t)
    if t < 1:
        h += (1 - t) * math.log(1 - t)
    return h / 2


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
    elif norm == HALF_L1:
        for f in range(x.shape[0]):
            for q in range(LANES):
                t = np.sign(x[f, q] - y[f, q]) * c[q] * d.dtype.type(0.5)
                gx[f, q] += t
                gy[f, q] -= t
    else:
        divergence_slopes(x, y, d, c, gx, gy)


@jit
def divergence_slopes(x, y, d, c, gx, gy):
    """D sqrt(J) = dJ / (2 sqrt(J)), dJ/dp = log(1 + t)/2, and 0 for impossible actions."""
    for q in range(LANES):
        if d[q] > 0:
            r = float(c[q]) / (4 * float(d[q]))
            for f in range(x.shape[0]):
                p, s = float(x[f, q]), float(y[f, q])
                if p > 0:
                    gx[f, q] += r * math.log1p((p - s) / (p + s))
                if s > 0:
                    gy[f, q] += r * math.log1p((s - p) / (p + s))


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
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
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
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
    pulls = np.empty((n, features, LANES), x.dtype)
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
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n - first, features, LANES), x.dtype)
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
def matrix_backward(norm, x, inverse, weight, grad, first, last, out):
    """``out``: gradient with respect to ``x``; ``grad`` is the symmetric gradient of the matrix."""
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
    slopes = np.empty((n, features, LANES), x.dtype)
    d, c = np.empty(LANES, x.dtype), np.zeros(LANES, x.dtype)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        slopes[:] = 0
        for a in range(0, n, TILE):
            for b in range(a, n, TILE):
                for i in range(a, min(a + TILE, n)):
                    for j in range(max(b, i + 1), min(b + TILE, n)):
                        distances(norm, block[i], block[j], d)
                        for q in range(count):
                            c[q] = weight[o + q] * grad[i, j]
                        add_slopes(norm, block[i], block[j], d, c, slopes[i], slopes[j])
        store(slopes, o, count, out)


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
def shared(norm, x, inverse, edges, weight, first, last, out):
    """Add to ``out[e]`` the weighted sums over observations ``first`` to ``last``; lanes are observations."""
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
    d, w = np.empty(LANES, x.dtype), np.zeros(LANES, np.float64)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        w[:] = 0
        w[:count] = weight[o : o + count]
        for e in range(edges.shape[0]):
            distances(norm, block[edges[e, 0]], block[edges[e, 1]], d)
            s = 0.0
            for q in range(LANES):
                s += w[q] * d[q]
            out[e] += s


@jit
def shared_totals(norm, x, inverse, edges, coefficient, first, last, out):
    """``out[o]``: sum over edges of distance, times coefficient if there are any; lanes are observations."""
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
    d, acc, sums = np.empty(LANES, x.dtype), np.empty(LANES, x.dtype), np.empty(LANES, np.float64)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block)
        sums[:] = 0
        for start in range(0, edges.shape[0], TILE * TILE):
            stop = min(start + TILE * TILE, edges.shape[0])
            if coefficient.shape[0] == 0:
                acc[:] = 0
                for e in range(start, stop):
                    add_distances(norm, block[edges[e, 0]], block[edges[e, 1]], d, acc)
                sums += acc
            else:
                for e in range(start, stop):
                    distances(norm, block[edges[e, 0]], block[edges[e, 1]], d)
                    for q in range(LANES):
                        sums[q] += coefficient[e] * d[q]
        out[o : o + count] = sums[:count]


@jit
def shared_backward(norm, x, inverse, edges, weight, grad, first, last, out):
    """``out``: gradient with respect to ``x`` of ``sum(grad * shared)``."""
    n, features = x.shape[1], x.shape[2]
    block = np.empty((n, features, LANES), x.dtype)
    slopes = np.empty((n, features, LANES), x.dtype)
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
