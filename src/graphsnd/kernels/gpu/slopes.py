"""All pairs on a GPU with their gradients, from one visit: see :mod:`graphsnd.kernels.gpu.tiles` for the tiles."""

import triton
import triton.language as tl

from graphsnd.kernels.gpu.tiles import finish_sum, first_four, in_range, scale_of, scale_of_both, summed, wide


@triton.jit
def slope(a, b, r, NORM: tl.constexpr):
    """Derivative of the distance by one feature of the first agent, given r (see :func:`pull`)."""
    if NORM == 0:
        return (a - b) * r
    else:
        return tl.where(a > b, r, tl.where(a < b, -r, 0.0))


@triton.jit
def root(s):
    """1 / sqrt(s)."""
    if s.dtype == tl.float32:
        return tl.rsqrt(s)
    else:
        return 1.0 / tl.sqrt(s)


@triton.jit
def pull(s, mask, NORM: tl.constexpr):
    """The factor common to all features of a pair, 0 outside the mask, finite at distance 0, where slopes are 0.

    For the Euclidean norm, one maximum does all three: with a tiny number at distance 0, with infinity outside.
    """
    if NORM == 0:
        tiny = 1e-37 if s.dtype == tl.float32 else 1e-300
        return root(tl.maximum(s, tl.where(mask, tiny, float("inf")).to(s.dtype)))
    else:
        return tl.where(mask, 0.5, 0.0).to(s.dtype)


@triton.jit
def length(s, r, NORM: tl.constexpr):
    """The distance, from the sum under the root and the factor of :func:`pull`, which is 0 outside."""
    return s * r * (1.0 if NORM == 0 else 2.0)


@triton.jit
def drag(
    x, jump, inverse, pairs, block, n, stride_n, stride_f, F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr,
    BI: tl.constexpr, BJ: tl.constexpr, MATRIX: tl.constexpr,
):  # fmt: skip
    """Pull of all agents on a block of them in up to four features, and their summed distances."""
    i = block * BI + tl.arange(0, BI)
    mi = i < n
    a0, a1, a2, a3 = first_four(x, jump, i, mi, inverse, stride_n, stride_f, F, FX)
    total = tl.zeros((BI, BJ), dtype=x.dtype.element_ty)
    g0, g1, g2, g3 = total, total, total, total
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        mj = j < n
        b0, b1, b2, b3 = first_four(x, jump, j, mj, inverse, stride_n, stride_f, F, FX)
        s = summed(x, i, j, mi, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
        r = pull(s, mj[None, :], NORM)
        if MATRIX:
            inside = mi[:, None] & mj[None, :]
            r *= tl.load(pairs + i[:, None].to(tl.int64) * n + j[None, :], mask=inside, other=0.0)
        else:
            total += length(s, r, NORM)
        g0 += slope(a0[:, None], b0[None, :], r, NORM)
        if F > 1:
            g1 += slope(a1[:, None], b1[None, :], r, NORM)
        if F > 2:
            g2 += slope(a2[:, None], b2[None, :], r, NORM)
        if F > 3:
            g3 += slope(a3[:, None], b3[None, :], r, NORM)
    rows = tl.where(mi, tl.sum(total, axis=1), 0.0)
    return tl.sum(g0, axis=1), tl.sum(g1, axis=1), tl.sum(g2, axis=1), tl.sum(g3, axis=1), tl.sum(rows, axis=0)


@triton.jit
def put(out, more, row, g0, g1, g2, g3, mask, F: tl.constexpr, FX: tl.constexpr):
    """Store up to four features of a block of agents, those from FX on in the second tensor."""
    tl.store(out + row * FX, g0, mask=mask)
    if F > 1:
        tl.store(out + row * FX + 1 if FX > 1 else more + row * (F - FX) + (1 - FX), g1, mask=mask)
    if F > 2:
        tl.store(out + row * FX + 2 if FX > 2 else more + row * (F - FX) + (2 - FX), g2, mask=mask)
    if F > 3:
        tl.store(out + row * FX + 3 if FX > 3 else more + row * (F - FX) + (3 - FX), g3, mask=mask)


@triton.jit(do_not_specialize=["jump", "more", "n", "blocks", "count", "group"])
def totals_and_slopes(
    x, jump, out, counters, result, group, slopes, more, n, blocks, count, stride_o, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, block]``: half the distances of the block's agents to all, and their gradients, divided by ``count``.

    ``slopes[o, i, f]`` has those of the first FX features, and, ``more`` elements later, the others. One
    visit of each ordered pair gives both, at three times the arithmetic of the total alone.
    """
    pid = tl.program_id(0)
    o, block = (pid // blocks).to(tl.int64), pid % blocks
    x += o * stride_o
    g0, g1, g2, g3, total = drag(x, jump, 1.0, x, block, n, stride_n, stride_f, F, FX, NORM, BI, BJ, False)
    size = tl.full((), 1.0, x.dtype.element_ty)
    if NORM == 0:
        if not in_range(total / n):
            size = scale_of_both(x, jump, n, stride_n, stride_f, F, FX)
            g0, g1, g2, g3, total = drag(
                x, jump, 1.0 / size, x, block, n, stride_n, stride_f, F, FX, NORM, BI, BJ, False
            )  # fmt: skip
    i = block * BI + tl.arange(0, BI)
    c = (1.0 / count.to(tl.float64)).to(g0.dtype)
    put(slopes, slopes + more, o * n + i, g0 * c, g1 * c, g2 * c, g3 * c, i < n, F, FX)
    finish_sum(total.to(tl.float64) * size * 0.5 / count, out, counters, result, group)


@triton.jit
def matrix_backward(
    x, scale, weight, pairs, out, n, blocks, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, i, f]``: the pull of all agents on agent i, times ``weight[o] * pairs[i, j]``."""
    pid = tl.program_id(0)
    o, block = (pid // blocks).to(tl.int64), pid % blocks
    inverse = 1.0 / tl.load(scale)
    g0, g1, g2, g3, _ = drag(
        x + o * stride_o, 0, inverse, pairs, block, n, stride_n, stride_f, F, F, NORM, BI, BJ, True
    )  # fmt: skip
    c = tl.load(weight + o).to(g0.dtype)
    i = block * BI + tl.arange(0, BI)
    put(out, out, o * n + i, g0 * c, g1 * c, g2 * c, g3 * c, i < n, F, F)


@triton.jit
def drag_wide(x, inverse, pairs, factor, out, first, n, F, stride_f, NORM: tl.constexpr, MATRIX: tl.constexpr):
    """Write ``factor`` times the pull on the 64 agents from ``first`` on to ``out[f, j]``; return their distances.

    One lane has the same two agents throughout, so no other lane touches what it adds to memory.
    """
    j = first + tl.arange(0, 32)
    total = tl.zeros((32,), dtype=x.dtype.element_ty)
    for start in range(0, n, 16):
        i = start + tl.arange(0, 16)
        mi = (i < n)[:, None]
        s, t = wide(x, i, j, inverse, F, stride_f, NORM, True)
        r, u = pull(s, mi, NORM), pull(t, mi, NORM)
        if MATRIX:
            cell = pairs + i[:, None].to(tl.int64) * n + j[None, :]
            r *= tl.load(cell, mask=mi & (j < n)[None, :], other=0.0)
            u *= tl.load(cell + 32, mask=mi & (j + 32 < n)[None, :], other=0.0)
        else:
            total += tl.where(j < n, tl.sum(length(s, r, NORM), axis=0), 0.0)
            total += tl.where(j + 32 < n, tl.sum(length(t, u, NORM), axis=0), 0.0)
        for f in range(F):
            a = (tl.load(x + f * stride_f + i) * inverse)[:, None]
            b = (tl.load(x + f * stride_f + j) * inverse)[None, :]
            c = (tl.load(x + f * stride_f + j + 32) * inverse)[None, :]
            g = tl.sum(slope(b, a, r, NORM), axis=0) * factor
            h = tl.sum(slope(c, a, u, NORM), axis=0) * factor
            at = out + f * stride_f + j
            if start > 0:
                g += tl.load(at)
                h += tl.load(at + 32)
            tl.store(at, g)
            tl.store(at + 32, h)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["n", "blocks", "count", "F"])
def totals_and_slopes_wide(x, out, slopes, n, blocks, count, F, stride_o, stride_f, NORM: tl.constexpr):
    """The same as :func:`totals_and_slopes` for 64 agents of turned points; ``slopes`` is turned too."""
    pid = tl.program_id(0)
    o = (pid // blocks).to(tl.int64) * stride_o
    first = pid % blocks * 64
    c = (1.0 / count.to(tl.float64)).to(x.dtype.element_ty)
    total = drag_wide(x + o, 1.0, x, c, slopes + o, first, n, F, stride_f, NORM, False)
    size = tl.full((), 1.0, x.dtype.element_ty)
    if NORM == 0:
        if not in_range(total / n):
            size = scale_of(x + o, n, 1, stride_f, 0, F, 256)
            total = drag_wide(x + o, 1.0 / size, x, c, slopes + o, first, n, F, stride_f, NORM, False)
    tl.store(out + pid, total.to(tl.float64) * size * 0.5 / count)


@triton.jit(do_not_specialize=["n", "blocks", "F"])
def matrix_backward_wide(x, scale, weight, pairs, out, n, blocks, F, stride_o, stride_f, NORM: tl.constexpr):
    """The same as :func:`matrix_backward` for 64 agents of turned points; ``out`` is turned too."""
    pid = tl.program_id(0)
    o = (pid // blocks).to(tl.int64)
    c = tl.load(weight + o).to(x.dtype.element_ty)
    first, x, out = pid % blocks * 64, x + o * stride_o, out + o * stride_o
    drag_wide(x, 1.0 / tl.load(scale), pairs, c, out, first, n, F, stride_f, NORM, True)
