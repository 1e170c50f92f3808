"""The compiled loops of :mod:`graphsnd.kernels.projections`: places along directions, summed by sorting or counting."""

# Numba gives these functions their types.
# mypy: disallow-untyped-defs=False, disallow-untyped-decorators=False, disallow-incomplete-defs=False
# mypy: check-untyped-defs=False, disallow-untyped-calls=False

from __future__ import annotations

import numba
import numpy as np

BINS = 2048  # two tables of this many counters stay in a first-level cache
PROBE = 32  # agents that show how wide the middle half of the team is
RESOLVED = 32  # bins that the middle half must span

# No nnan/ninf: values that overflow must be seen, not assumed away.
jit = numba.njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz", "arcp"}, error_model="numpy")


@jit
def counted_totals(x, directions, dither, first, last, out):
    """``out[o, k]``: sum over pairs of the distance along direction ``k``, NaN where a sort has to do it."""
    n, features = x.shape[1], x.shape[2]
    seen, y = np.empty((features, n), x.dtype), np.empty(n, x.dtype)
    bins, counts, probe = np.empty(n, np.int32), np.empty((2, BINS + 1), np.int32), np.empty(PROBE, x.dtype)
    for o in range(first, last):
        for f in range(features):
            for i in range(n):
                seen[f, i] = x[o, i, f] - x[o, 0, f]  # from agent 0, so that a common offset costs no digits
        for k in range(directions.shape[1]):
            low, high, finite = project(seen, directions[o, k], y)
            if not finite or middle(y, probe) * BINS < RESOLVED * (high - low):
                out[o, k] = np.nan
            elif high == low:
                out[o, k] = 0
            else:
                out[o, k] = count(y, low, (BINS - 1) / (high - low), dither[o, k], bins, counts)


@jit
def projected(x, directions, first, last, out):
    """``out[o - first, k, agent]``: places along the directions, seen from agent 0."""
    n, features = x.shape[1], x.shape[2]
    for o in range(first, last):
        for k in range(directions.shape[1]):
            y, u = out[o - first, k], directions[o, k]
            a, b = x[o, 0, 0], x[o, 0, 1]
            for i in range(n):
                y[i] = u[0] * (x[o, i, 0] - a) + u[1] * (x[o, i, 1] - b)
            for f in range(2, features):
                a = x[o, 0, f]
                for i in range(n):
                    y[i] += u[f] * (x[o, i, f] - a)


@jit
def weighted(ordered, first, out):
    """``out[first + o, k]``: sums over pairs from sorted places ``[o, k, agent]``."""
    n = ordered.shape[2]
    for o in range(ordered.shape[0]):
        for k in range(ordered.shape[1]):
            # From the smallest place: equal agents then give an exact 0, and nothing large cancels.
            y, low, total = ordered[o, k], np.float64(ordered[o, k, 0]), 0.0
            for i in range(n):
                total += (2.0 * i - (n - 1)) * (np.float64(y[i]) - low)
            out[first + o, k] = total


@jit
def project(seen, direction, y):
    """Fill ``y[agent]`` with the place along the direction; its range, and whether it is finite."""
    features, n = seen.shape
    for i in range(n):
        y[i] = direction[0] * seen[0, i] + direction[1] * seen[1, i]
    for f in range(2, features):
        for i in range(n):
            y[i] += direction[f] * seen[f, i]
    low = high = size = y.dtype.type(0)
    part = y.dtype.type(1 / n)
    for i in range(n):
        low, high = min(low, y[i]), max(high, y[i])
    for i in range(n):
        size += abs(y[i]) * part  # a NaN hides from min and max, not from a sum
    return low, high, np.isfinite(size) and np.isfinite(high - low)


@jit
def middle(y, probe):
    """Width of the middle half of a few agents."""
    step = y.shape[0] // PROBE
    for q in range(PROBE):
        v, at = y[q * step], q
        while at > 0 and probe[at - 1] > v:
            probe[at] = probe[at - 1]
            at -= 1
        probe[at] = v
    return probe[3 * PROBE // 4] - probe[PROBE // 4]


@jit
def count(y, low, scale, dither, bins, counts):
    """Sum over pairs of the number of bin edges between them, in units of the bin width."""
    n = y.shape[0]
    scale, dither = y.dtype.type(scale), y.dtype.type(dither)
    for i in range(n):
        bins[i] = np.int32((y[i] - low) * scale + dither)
    counts[:] = 0
    # Unsigned, or every index would be checked for counting from the end. Two tables, so that one increment need not
    # wait for the one before it.
    at = bins.view(np.uint32)
    for i in range(n // 2):
        counts[0, at[2 * i]] += 1
        counts[1, at[2 * i + 1]] += 1
    if n % 2:
        counts[0, at[n - 1]] += 1
    below, total = np.int64(0), 0.0
    for b in range(BINS):
        below += counts[0, b] + counts[1, b]
        total += np.float64(below) * np.float64(n - below)
    return total / np.float64(scale)
