"""The compiled loops of the CPU backend.

Most of them keep 16 or 32 observations side by side, ``block[agent, feature, lane]``: an edge is then a few loads of
whole cache lines, and its distances at these observations are one value of :class:`Lanes`, which never leaves the
registers. Loops over single numbers, which LLVM has to turn into vectors by itself, took two to five times as long,
because it often did not: not where their number is small and known, nor where they mix single and double precision.
Features are padded to multiples of four with zeros, so one compiled function serves every number of them.

Euclidean distances of many features have loops of their own, where up to 512 agents are the lanes:
``euclidean_totals``. Edges that each observation has for itself are loops over single numbers, ``own``.

All loops live in this one file because numba's disk cache notices a change only in the file of the function it
caches, not in those that function calls.
"""

from __future__ import annotations

import operator

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

# Observations: two registers of single precision. Four would not leave room for the features of an agent.
LANES = 32 if "+avx512f" in get_host_cpu_features() else 16
FOUR = 4 * LANES  # numbers of an agent that are worked on together
LINE = 64  # bytes of a cache line, at which blocks begin
SPAN = 512  # agents side by side, where they are the lanes
TILE = 16  # whose multiples loops over them take: no more than there are unused places in a ROW
ROW = SPAN + 16  # between their features: at a power of two these would compete for lines of the cache
GROUP = 8  # agents that meet a span
EUCLIDEAN = 0  # any other norm is half L1

# No nnan/ninf: a NaN that slipped past validate=False must come out as NaN.
FLAGS = ("contract", "reassoc", "nsz", "arcp")
jit = numba.njit(nogil=True, cache=True, fastmath=set(FLAGS), error_model="numpy")
inlined = numba.njit(nogil=True, cache=True, fastmath=set(FLAGS), error_model="numpy", inline="always")


class Lanes(types.Type):
    """LANES numbers as one value, a vector of LLVM."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, kind):
        number = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, LANES))


def _define_operator(symbol, instruction):
    @infer_global(symbol)
    class _Typing(AbstractTemplate):
        key = symbol

        def generic(self, args, kws):
            return signature(args[0], *args) if isinstance(args[0], Lanes) and args[0] == args[-1] else None

    @lower_builtin(symbol, Lanes, Lanes)
    def _lower(context, builder, sig, args):
        return getattr(builder, instruction)(*args, flags=("contract",))  # in the order in which they are written


_define_operator(operator.add, "fadd")
_define_operator(operator.iadd, "fadd")
_define_operator(operator.sub, "fsub")
_define_operator(operator.mul, "fmul")
_define_operator(operator.truediv, "fdiv")


def _call(builder, name, result, *args):
    """Call an intrinsic of LLVM on vectors."""
    bits = 32 if args[-1].type.element == ir.FloatType() else 64
    kind = ir.FunctionType(result, [arg.type for arg in args])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f{bits}")
    return builder.call(function, args, fastmath=FLAGS)


def _pick(builder, a, b, places):
    """A vector of some numbers of two vectors."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places)))


def _place(context, builder, array, values, at, size):
    """Where some numbers of an array begin."""
    data = context.make_array(array)(context, builder, values).data
    kind = ir.VectorType(context.get_data_type(array.dtype), size)
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


@intrinsic
def take(typing, array, at):
    """LANES numbers of a flat array."""

    def generate(context, builder, sig, args):
        return builder.load(_place(context, builder, array, *args, LANES), align=array.dtype.bitwidth // 8)

    return Lanes(array.dtype)(array, types.intp), generate


@intrinsic
def turned(typing, array, at, step):
    """Four numbers in a row at each of LANES places, ``step`` apart: the first ones, the second ones, and so on."""
    kind = Lanes(array.dtype)

    def generate(context, builder, sig, args):
        places = [builder.add(args[1], builder.mul(args[2], args[2].type(q))) for q in range(LANES)]
        rows = [
            builder.load(_place(context, builder, array, args[0], place, 4), align=array.dtype.bitwidth // 8)
            for place in places
        ]
        while len(rows) > 1:
            both = range(2 * rows[0].type.count)
            rows = [_pick(builder, rows[q], rows[q + 1], both) for q in range(0, len(rows), 2)]
        lanes = [_pick(builder, rows[0], rows[0], range(f, FOUR, 4)) for f in range(4)]
        return context.make_tuple(builder, sig.return_type, lanes)

    return types.UniTuple(kind, 4)(array, types.intp, types.intp), generate


@intrinsic
def put(typing, array, at, lanes):
    """Write LANES numbers to a flat array."""

    def generate(context, builder, sig, args):
        builder.store(args[2], _place(context, builder, array, *args[:2], LANES), align=lanes.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def spread(typing, number):
    """One number on all lanes."""

    def generate(context, builder, sig, args):
        empty = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        one = builder.insert_element(empty, args[0], ir.IntType(32)(0))
        return _pick(builder, one, one, [0] * LANES)

    return Lanes(number)(number), generate


@intrinsic
def root(typing, lanes):
    """Square roots."""
    return lanes(lanes), lambda context, builder, sig, args: _call(builder, "sqrt", args[0].type, *args)


@intrinsic
def absolute(typing, lanes):
    """Absolute values."""
    return lanes(lanes), lambda context, builder, sig, args: _call(builder, "fabs", args[0].type, *args)


@intrinsic
def convert(typing, lanes, number):
    """The same numbers in the precision of ``number``."""
    change = {(32, 64): "fpext", (64, 32): "fptrunc"}.get((lanes.dtype.bitwidth, number.bitwidth))

    def generate(context, builder, sig, args):
        kind = context.get_value_type(sig.return_type)
        return getattr(builder, change)(args[0], kind) if change else args[0]

    return Lanes(number)(lanes, number), generate


@intrinsic
def total(typing, lanes):
    """Sum of the lanes."""

    def generate(context, builder, sig, args):
        number = args[0].type.element
        return _call(builder, "vector.reduce.fadd", number, number(-0.0), args[0])

    return lanes.dtype(lanes), generate


@intrinsic
def unless_below(typing, lanes, size, least):
    """The lanes, but 0 where ``size`` is below ``least``; not where it is NaN."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered("<", *args[1:]), ir.Constant(args[0].type, None), args[0])

    return lanes(lanes, size, least), generate


@inlined
def four(block, a):
    """Four features of an agent."""
    return take(block, a), take(block, a + LANES), take(block, a + 2 * LANES), take(block, a + 3 * LANES)


@inlined
def apart(norm, x, y):
    """What four features add to a distance, under the root if there is one."""
    p, q, r, s = x[0] - y[0], x[1] - y[1], x[2] - y[2], x[3] - y[3]
    return p * p + q * q + r * r + s * s if norm == EUCLIDEAN else absolute(p) + absolute(q) + absolute(r) + absolute(s)


@inlined
def summed(norm, block, x, a, b, size):
    """The same of all features; ``x`` has the first four of agent ``a``."""
    t = apart(norm, x, four(block, b))
    for f in range(FOUR, size, FOUR):
        t += apart(norm, four(block, a + f), four(block, b + f))
    return t


@inlined
def new_block(x, z):
    """Room for LANES observations and a mean agent, its first place in a cache line, and the size of an agent."""
    size = -(-(x.shape[2] + z.shape[2]) // 4) * FOUR
    block = np.zeros((x.shape[1] + 1) * size + LINE, x.dtype)
    return block, -block.ctypes.data % LINE // block.itemsize, size


@jit
def load(x, start, count, inverse, block, at, size):
    """``block[at + agent * size + feature * LANES + lane]``: observations from ``start`` on, zero beyond ``count``."""
    features, row = x.shape[2], x.shape[1] * x.shape[2]
    whole = row - row % 4 if count == LANES else 0
    place, f, unit = at, 0, spread(inverse)
    for k in range(0, whole, 4):
        for lanes in turned(x, start * row + k, row):
            put(block, place + f * LANES, lanes * unit)
            f += 1
            if f == features:
                place, f = place + size, 0
    for k in range(whole, row):
        place = at + k // features * size + k % features * LANES
        for q in range(LANES):
            block[place + q] = x[start + q, k // features, k % features] * inverse if q < count else 0


@jit
def store(block, at, size, start, count, factor, x):
    """The reverse of :func:`load`, times the factor of each observation."""
    for i in range(x.shape[1]):
        for f in range(x.shape[2]):
            for q in range(count):
                x[start + q, i, f] = block[at + i * size + f * LANES + q] * factor[start + q]


@jit
def add_mean(block, at, size, agents):
    """Put the mean agent behind the others; that of equal agents is equal to them."""
    number = block.dtype.type(0)
    for f in range(at, at + size, LANES):
        first, s = convert(take(block, f), 0.0), spread(0.0)
        for i in range(1, agents):
            s += convert(take(block, f + i * size), 0.0) - first
        put(block, f + agents * size, convert(first + s / spread(float(agents)), number))


@jit
def visit(norm, x, z, inverse, rows, second, coefficient, weight, mean, first, last, sums, out):
    """``out[o]``: sum over edges of distance, times coefficient if there are any.

    Also add to ``sums[e]`` the weighted sums over observations ``first`` to ``last``, unless it is empty. A row
    ``i, begin, end, base`` holds the edges from agent i to ``second[begin:end]``. Edge k among these has coefficient
    and sum number ``base + k``. ``x`` has the first features and ``z`` the others. The agent after the last one is the
    mean of all, if ``mean``.
    """
    block, at, size = new_block(x, z)
    lanes, half = np.empty(LANES), spread(x.dtype.type(0.5))
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block, at, size)
        load(z, o, count, inverse, block, at + x.shape[2] * LANES, size)
        if mean:
            add_mean(block, at, size, x.shape[1])
        for q in range(LANES):
            lanes[q] = weight[o + q] if q < count else 0
        w, own = take(lanes, 0), spread(0.0)
        for r in range(rows.shape[0]):
            a, base = at + rows[r, 0] * size, rows[r, 3]
            mine = four(block, a)  # in registers for all edges of the row
            for k in range(rows[r, 1], rows[r, 2]):
                d = summed(norm, block, mine, a, at + second[k] * size, size)
                d = root(d) if norm == EUCLIDEAN else d * half
                wide = convert(d, 0.0)
                if coefficient.shape[0] > 0:
                    own += wide * spread(coefficient[base + k])
                else:
                    own += wide
                if sums.shape[0] > 0:
                    sums[base + k] += total(wide * w)
        put(lanes, 0, own)
        for q in range(count):
            out[o + q] = lanes[q]


@jit
def slopes(norm, x, z, inverse, rows, second, coefficient, factor, first, last, out, gx, gz):
    """``out[o]`` as of :func:`visit`, and its gradient times ``factor[o]`` in ``gx`` and ``gz``, in one visit."""
    block, at, size = new_block(x, z)
    pulls, lanes = np.empty_like(block), np.empty(LANES)
    c, half, least = spread(x.dtype.type(1)), spread(x.dtype.type(0.5)), spread(np.finfo(x.dtype).tiny)
    for o in range(first, last, LANES):
        count = min(LANES, last - o)
        load(x, o, count, inverse, block, at, size)
        load(z, o, count, inverse, block, at + x.shape[2] * LANES, size)
        own, pulls[:] = spread(0.0), 0
        for r in range(rows.shape[0]):
            a, base = at + rows[r, 0] * size, rows[r, 3]
            mine = four(block, a)
            for k in range(rows[r, 1], rows[r, 2]):
                b = at + second[k] * size
                d = summed(norm, block, mine, a, b, size)
                if coefficient.shape[0] > 0:
                    c = spread(x.dtype.type(coefficient[base + k]))
                # What is below the smallest normal number may have no reciprocal root.
                pull = unless_below(c / root(d), d, least) if norm == EUCLIDEAN else c * half
                own += convert(d * pull, 0.0)
                for f in range(0, size, LANES):
                    t = take(block, a + f) - take(block, b + f)
                    if norm != EUCLIDEAN:
                        t = unless_below(t / absolute(t), absolute(t), least)
                    put(pulls, a + f, take(pulls, a + f) + t * pull)
                    put(pulls, b + f, take(pulls, b + f) - t * pull)
        put(lanes, 0, own)
        for q in range(count):
            out[o + q] = lanes[q]
        store(pulls, at, size, o, count, factor, gx)
        store(pulls, at + x.shape[2] * LANES, size, o, count, factor, gz)


@jit
def own(norm, x, inverse, edges, first, last, out):
    """``out[o, e]``: distance along edge ``e`` of observation ``o``."""
    for o in range(first, last):
        for e in range(edges.shape[1]):
            out[o, e] = length(norm, x[o], inverse, edges[o, e, 0], edges[o, e, 1])


@inlined
def length(norm, x, inverse, i, j):
    """The distance between two agents."""
    s = x.dtype.type(0)
    for f in range(x.shape[1]):
        t = x[i, f] * inverse - x[j, f] * inverse
        s += t * t if norm == EUCLIDEAN else abs(t)
    return np.sqrt(s) if norm == EUCLIDEAN else s * x.dtype.type(0.5)


@jit
def own_backward(norm, x, inverse, edges, grad, first, last, out):
    """Add to ``out`` the gradient with respect to ``x`` of ``sum(grad * own)``."""
    for o in range(first, last):
        for e in range(edges.shape[1]):
            i, j, c = edges[o, e, 0], edges[o, e, 1], x.dtype.type(grad[o, e])
            if norm == EUCLIDEAN:
                d = length(norm, x[o], inverse, i, j)
                c = c / d if d > 0 else x.dtype.type(0)
            for f in range(x.shape[2]):
                t = x[o, i, f] * inverse - x[o, j, f] * inverse
                t = t * c if norm == EUCLIDEAN else np.sign(t) * c * x.dtype.type(0.5)
                out[o, i, f] += t
                out[o, j, f] -= t


@jit
def euclidean_totals(x, inverse, strips, first, last, out):
    """``out[o * strips + strip]``: sum of the distances of every ``strips``-th group of agents to those after them.

    Two agents at a time meet a span of others, four features at a time: what is loaded serves two pairs, and four
    features of a span stay in a first-level cache for a whole group of agents. Blocks of observations do not: with many
    features two tiles of them leave even a second-level one.
    """
    n, (y, w, r) = x.shape[1], new_spans(x)
    for k in range(first, last):
        o, begin, step = k // strips, k % strips * GROUP, strips * GROUP
        turn(x[o], inverse, y)
        s = 0.0
        for p in range(y.shape[0]):
            count = min(SPAN, n - p * SPAN)
            w[p, :count] = 1
            for i in range(begin, p * SPAN + count, step):
                lane, rows = max(0, i - p * SPAN), min(GROUP, n - i)
                size = count - lane + -(count - lane) % TILE
                group_squares(y[i // SPAN, i % SPAN :], rows, y[p, lane:], size, r)
                for q in range(0, rows, 2):
                    # Each pair counts once; the second agent of two is at distance 0 from itself.
                    w[p, lane : max(lane, i + q + 1 - p * SPAN)] = 0
                    s += sum_roots(r[q * ROW :], w[p, lane : lane + size])
        out[k] = s


@jit
def euclidean_slopes(x, inverse, strips, first, last, out, gradient):
    """The same as :func:`euclidean_totals`, and the gradient of those agents.

    Every pair is seen from both ends. The pull of all others on an agent is then a sum that stays in registers, which
    is faster than one visit that adds to both ends in memory.
    """
    n, features, (y, w, r) = x.shape[1], x.shape[2], new_spans(x)
    pull = np.empty((GROUP, y.shape[1] // ROW), x.dtype)
    for k in range(first, last):
        o, begin, step = k // strips, k % strips * GROUP, strips * GROUP
        turn(x[o], inverse, y)
        s = 0.0
        for i in range(begin, n, step):
            u, rows = y[i // SPAN, i % SPAN :], min(GROUP, n - i)
            pull[:] = 0
            for p in range(y.shape[0]):
                count, v = min(SPAN, n - p * SPAN), y[p]
                size = count + -count % TILE
                w[p, :count] = 1
                ones = w[p, :size]
                if features <= 4:
                    for q in range(rows):
                        s += pull_four(u, q, v, ones, pull)
                else:
                    group_squares(u, rows, v, size, r)
                    for q in range(rows):
                        s += reciprocals(r[q * ROW :], ones)
                    group_pulls(u, rows, v, size, r, pull)
            for q in range(rows):
                for f in range(features):
                    gradient[o, i + q, f] = pull[q, f]
        out[k] = s / 2


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
