"""All pairs on a GPU: one warp takes a block of agents and sweeps the others past it.

A pair of F features costs 2F FP32 instructions, one special-function square root and one addition, which is also the
arithmetic limit; the diagonal, the padding and the triangle are weights of a column's sum. Up to four features stay in
registers (:func:`sweep`). More are read again for each tile, out of the first-level cache and feature by feature, from
a copy that has agents side by side (:func:`turn`, :func:`sweep_wide`): 16 rows are then four 16-byte loads that all
lanes share, a column is one for each lane, and no thread exchanges anything with another.
"""

import triton
import triton.language as tl

# NORM is a code of graphsnd.kernels.autograd.CODES: 0 Euclidean, 1 half L1.


@triton.jit
def fetch(x, index, feature, mask, inverse, stride_n, stride_f):
    """One feature of a set of agents, in units of the scale; 0 beyond the end, or no end if ``mask`` is None."""
    at = x + index * stride_n + feature * stride_f
    if mask is None:
        return tl.load(at) * inverse
    else:
        return tl.load(at, mask=mask, other=0.0) * inverse


@triton.jit
def term(a, b, NORM: tl.constexpr):
    """What one feature adds to the sum under the root."""
    if NORM == 0:
        t = a - b
        return t * t
    else:
        return tl.abs(a - b) * 0.5


@triton.jit
def finish(s, NORM: tl.constexpr, SINGLE: tl.constexpr = False):
    """From the sum over features to the distance, in float32 where SINGLE.

    The approximate square root is good to an ulp and one instruction; s * rsqrt(s), with its guard at 0, is slower.
    """
    if SINGLE:
        s = s.to(tl.float32)
    if NORM == 1:
        return s
    else:
        return tl.sqrt(s)


@triton.jit
def first_four(x, jump, i, mi, inverse, stride_n, stride_f, F: tl.constexpr, FX: tl.constexpr):
    """The first features of a block of agents, those from FX on ``jump`` further; those beyond F repeat the first."""
    a0 = fetch(x, i, 0, mi, inverse, stride_n, stride_f)
    a1, a2, a3 = a0, a0, a0
    if F > 1:
        a1 = fetch(x if FX > 1 else x + jump, i, 1, mi, inverse, stride_n, stride_f)
    if F > 2:
        a2 = fetch(x if FX > 2 else x + jump, i, 2, mi, inverse, stride_n, stride_f)
    if F > 3:
        a3 = fetch(x if FX > 3 else x + jump, i, 3, mi, inverse, stride_n, stride_f)
    return a0, a1, a2, a3


@triton.jit
def summed(
    x, i, j, mi, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F: tl.constexpr, NORM: tl.constexpr
):  # fmt: skip
    """The sum under the root for every pair of the tile ``[i, j]``, whose first four features are in registers."""
    s = term(a0[:, None], b0[None, :], NORM)
    if F > 1:
        s += term(a1[:, None], b1[None, :], NORM)
    if F > 2:
        s += term(a2[:, None], b2[None, :], NORM)
    if F > 3:
        s += term(a3[:, None], b3[None, :], NORM)
    for f in range(4, F):
        a, b = fetch(x, i, f, mi, inverse, stride_n, stride_f), fetch(x, j, f, mj, inverse, stride_n, stride_f)
        s += term(a[:, None], b[None, :], NORM)
    return s


@triton.jit
def column_weight(j, first, after, n):
    """Weight of the columns j of the rows ``first .. after - 1``.

    Columns before the rows belong to others. The square on the diagonal holds every pair twice, and each agent with
    itself at distance 0: half weight.
    """
    return tl.where(j < n, tl.where(j >= after, 1.0, tl.where(j >= first, 0.5, 0.0)), 0.0)


@triton.jit
def column_sums(s, row_weight, NORM: tl.constexpr, SINGLE: tl.constexpr):
    """Sums of the distances over rows; a weight of 0 or 1 for rows beyond n makes additions multiply-adds, no more."""
    d = finish(s, NORM, SINGLE)
    return tl.sum(d * row_weight[:, None], axis=0)


@triton.jit
def sweep(
    x, jump, inverse, part, parts, n, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """Sum over the pairs whose first agent is in every ``parts``-th block, for up to four features."""
    acc = tl.zeros((BJ,), dtype=x.dtype.element_ty)
    for block in range(part, tl.cdiv(n, BI), parts):
        first = block * BI
        i, j = first + tl.arange(0, BI), first // BJ * BJ + tl.arange(0, BJ)
        row_weight = tl.where(i < n, 1.0, 0.0).to(acc.dtype)
        a0, a1, a2, a3 = first_four(x, jump, tl.minimum(i, n - 1), None, inverse, stride_n, stride_f, F, FX)
        b0, b1, b2, b3 = first_four(x, jump, tl.minimum(j, n - 1), None, inverse, stride_n, stride_f, F, FX)
        for _ in range(first // BJ * BJ, n, BJ):
            # Each tile is fetched while the one before it is being worked on.
            k = tl.minimum(j + BJ, n - 1)
            c0, c1, c2, c3 = first_four(x, jump, k, None, inverse, stride_n, stride_f, F, FX)
            s = summed(x, i, j, None, None, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            weight = column_weight(j, first, first + BI, n).to(acc.dtype)
            acc += column_sums(s, row_weight, NORM, False) * weight
            j += BJ
            b0, b1, b2, b3 = c0, c1, c2, c3
    # A tree of float32 sums is good to 1e-7 and its rounding averages out; converting every lane costs more.
    return tl.sum(acc, axis=0).to(tl.float64)


@triton.jit
def turn(
    x, jump, out, n, blocks, stride_o, stride_n, stride_f, F, FX, rows, columns, B: tl.constexpr, BF: tl.constexpr
):  # fmt: skip
    """``out[o, f, i]``, ``rows`` x ``columns`` for each observation: the points, with zeros beyond F and n."""
    pid = tl.program_id(0)
    o, i = (pid // blocks).to(tl.int64), pid % blocks * B + tl.arange(0, B)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    at = x + o * stride_o + (f * stride_f + tl.where(f < FX, 0, jump))[None, :] + i[:, None] * stride_n
    values = tl.load(at, mask=(i < n)[:, None] & (f < F)[None, :], other=0.0)
    out += (o * rows + f[:, None]) * columns + i[None, :]
    tl.store(out, tl.trans(values), mask=(f < rows)[:, None])


@triton.jit
def wide(x, i, j, inverse, F, stride_f, NORM: tl.constexpr, BOTH: tl.constexpr):
    """Sums under the root for 16 rows i and 32 columns j, and for the next 32 columns; F a multiple of four."""
    s = tl.zeros((16, 32), dtype=x.dtype.element_ty)
    t = s
    row, column = x + i, x + j
    for _ in range(0, F, 4):
        for k in tl.static_range(4):
            a = (tl.load(row + k * stride_f) * inverse)[:, None]
            s += term(a, (tl.load(column + k * stride_f) * inverse)[None, :], NORM)
            if BOTH:
                t += term(a, (tl.load(column + k * stride_f + 32) * inverse)[None, :], NORM)
        row += 4 * stride_f
        column += 4 * stride_f
    return s, t


@triton.jit
def sweep_wide(x, inverse, first, n, F, stride_f, NORM: tl.constexpr, SINGLE: tl.constexpr):
    """Sum over the pairs whose first agent is among the 16 from ``first`` on."""
    i, after = first + tl.arange(0, 16), first + 16
    acc = tl.zeros((32,), dtype=tl.float32 if SINGLE else x.dtype.element_ty)
    row_weight = tl.where(i < n, 1.0, 0.0).to(acc.dtype)
    j = first // 32 * 32 + tl.arange(0, 32)
    groups = tl.cdiv(n - first // 32 * 32, 32)
    if groups % 2 == 1:
        s, _ = wide(x, i, j, inverse, F, stride_f, NORM, False)
        acc += column_sums(s, row_weight, NORM, SINGLE) * column_weight(j, first, after, n).to(acc.dtype)
        j += 32
    for _ in range(groups // 2):
        s, t = wide(x, i, j, inverse, F, stride_f, NORM, True)
        acc += column_sums(s, row_weight, NORM, SINGLE) * column_weight(j, first, after, n).to(acc.dtype)
        acc += column_sums(t, row_weight, NORM, SINGLE) * column_weight(j + 32, first, after, n).to(acc.dtype)
        j += 64
    return tl.sum(acc, axis=0).to(tl.float64)


@triton.jit
def scale_of(x, n, stride_n, stride_f, begin, end, B: tl.constexpr):
    """The power of two below the largest magnitude of features ``begin .. end - 1`` of one observation.

    Dividing by it leaves equal agents equal.
    """
    largest = tl.zeros((B,), dtype=x.dtype.element_ty)
    for f in range(begin, end):
        for start in range(0, n, B):
            k = start + tl.arange(0, B)
            largest = tl.maximum(largest, tl.abs(tl.load(x + k * stride_n + f * stride_f, mask=k < n, other=0.0)))
    return power_below(tl.max(largest, axis=0))


@triton.jit
def power_below(top):
    """The power of two below each number: dividing by it, unlike by the number itself, rounds nothing."""
    if top.dtype == tl.float32:
        power = (top.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
        return tl.maximum(power, 2.0**-122)
    else:
        power = (top.to(tl.int64, bitcast=True) & 0x7FF0000000000000).to(tl.float64, bitcast=True)
        return tl.maximum(power, 2.0**-996)


@triton.jit
def in_range(mean):
    """Whether squares neither overflowed nor lost digits to underflow; NaN is not in range."""
    return (mean > 1e-9) & (mean < 1e18)


@triton.jit
def scale_of_both(x, jump, n, stride_n, stride_f, F: tl.constexpr, FX: tl.constexpr):
    """The same of points in one or two tensors."""
    scale = scale_of(x, n, stride_n, stride_f, 0, FX, 256)
    if FX < F:
        scale = tl.maximum(scale, scale_of(x + jump, n, stride_n, stride_f, FX, F, 256))
    return scale


@triton.jit
def added(values, size):
    """The sum of ``values[size]``, float64."""
    acc = tl.zeros((256,), dtype=tl.float64)
    for start in range(0, size, 256):
        k = start + tl.arange(0, 256)
        acc += tl.load(values + k, mask=k < size, other=0.0, cache_modifier=".cg")
    return tl.sum(acc, axis=0)


@triton.jit
def finish_sum(share, out, counters, result, group):
    """Store a program's share in ``out``, or, with counters, the sum of all in ``result``.

    The last program of each group adds the shares of its group, and the last of these the sums of the groups, in a
    fixed order. That saves the launches of a second kernel. Counters are 0 before and after.
    """
    pid, programs = tl.program_id(0), tl.num_programs(0)
    tl.store(out + pid, share)
    if counters is not None:
        mine, groups = pid // group, tl.cdiv(programs, group)
        size = tl.minimum(group, programs - mine * group)
        if tl.atomic_add(counters + 1 + mine, 1, sem="acq_rel") == size - 1:
            tl.store(counters + 1 + mine, 0)
            tl.store(out + programs + mine, added(out + mine * group, size))
            if tl.atomic_add(counters, 1, sem="acq_rel") == groups - 1:
                tl.store(counters, 0)
                tl.store(result, added(out + programs, groups))


@triton.jit(do_not_specialize=["jump", "n", "count", "group"])
def totals(
    x, jump, out, counters, result, group, n, parts, count, stride_o, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, part]``: sum of the distances over a share of the pairs of one observation, divided by ``count``.

    With counters, ``result[]`` is the sum of all, see :func:`finish_sum`; so in kernels below.

    Values near 1 need no scaling, so none is done until the sum shows that it was needed.
    """
    pid = tl.program_id(0)
    o, part = (pid // parts).to(tl.int64), pid % parts
    x += o * stride_o
    total = sweep(x, jump, 1.0, part, parts, n, stride_n, stride_f, F, FX, NORM, BI, BJ)
    if NORM == 0:
        if not in_range(total / (n * n)):
            scale = scale_of_both(x, jump, n, stride_n, stride_f, F, FX)
            total = sweep(x, jump, 1.0 / scale, part, parts, n, stride_n, stride_f, F, FX, NORM, BI, BJ) * scale
    finish_sum(total / count, out, counters, result, group)


@triton.jit(do_not_specialize=["n", "blocks", "count", "F"])
def totals_wide(x, out, n, blocks, count, F, stride_o, stride_f, NORM: tl.constexpr, SINGLE: tl.constexpr):
    """``out[o, block]``, the same for 16 agents of turned points, for any number of features."""
    pid = tl.program_id(0)
    x += (pid // blocks).to(tl.int64) * stride_o
    first = pid % blocks * 16
    total = sweep_wide(x, 1.0, first, n, F, stride_f, NORM, SINGLE)
    if NORM == 0:
        if not in_range(total / (16 * n)):
            scale = scale_of(x, n, 1, stride_f, 0, F, 256)
            total = sweep_wide(x, 1.0 / scale, first, n, F, stride_f, NORM, SINGLE) * scale
    tl.store(out + pid, total / count)


@triton.jit(do_not_specialize=["jump", "observations", "n", "count", "group"])
def totals_small(
    x, jump, out, counters, result, group, observations, n, count, stride_o, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr, BO: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """``out[o]``, divided by ``count``, for teams that fit one tile: BO observations at a time, all pairs twice.

    Such teams are bound by memory, so every observation is simply divided by the size of its largest value.
    """
    o = tl.program_id(0).to(tl.int64) * BO + tl.arange(0, BO)
    k = tl.arange(0, BN)
    mask = (o < observations)[:, None] & (k < n)[None, :]
    at = x + o[:, None] * stride_o + k[None, :] * stride_n
    largest = tl.zeros((BO, BN), dtype=x.dtype.element_ty)
    if NORM == 0:
        for f in range(F):
            values = tl.load(at + f * stride_f + tl.where(f < FX, 0, jump), mask=mask, other=0.0)
            largest = tl.maximum(largest, tl.abs(values))
    top = tl.full((BO,), 1.0, x.dtype.element_ty)
    if NORM == 0:
        top = power_below(tl.max(largest, axis=1))
    s = tl.zeros((BO, BN, BN), dtype=x.dtype.element_ty)
    for f in range(F):
        a = tl.load(at + f * stride_f + tl.where(f < FX, 0, jump), mask=mask, other=0.0) / top[:, None]
        s += term(a[:, :, None], a[:, None, :], NORM)
    d = tl.where(mask[:, :, None] & mask[:, None, :], finish(s, NORM), 0.0)
    sums = tl.sum(tl.sum(d, axis=2), axis=1).to(tl.float64) * top * 0.5
    if counters is None:
        tl.store(out + o, sums / count, mask=o < observations)
    else:
        finish_sum(tl.sum(tl.where(o < observations, sums, 0.0), axis=0) / count, out, counters, result, group)


@triton.jit
def matrix(
    x, scale, weight, out, observations, n, blocks, per_split, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Add to ``out[i, j]``, float64, the weighted sum over a share of the observations; upper tiles only."""
    tile, split = tl.program_id(0), tl.program_id(1)
    row, column = tile // blocks, tile % blocks
    if row <= column:
        inverse = 1.0 / tl.load(scale)
        i, j = row * B + tl.arange(0, B), column * B + tl.arange(0, B)
        mi, mj = i < n, j < n
        acc = tl.zeros((B, B), dtype=tl.float64)
        first = (split * per_split).to(tl.int64)
        for o in range(first, tl.minimum(first + per_split, observations)):
            at = x + o * stride_o
            a0, a1, a2, a3 = first_four(at, 0, i, mi, inverse, stride_n, stride_f, F, F)
            b0, b1, b2, b3 = first_four(at, 0, j, mj, inverse, stride_n, stride_f, F, F)
            s = summed(at, i, j, mi, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            acc += finish(s, NORM).to(tl.float64) * tl.load(weight + o)
        where = out + i[:, None].to(tl.int64) * n + j[None, :]
        tl.atomic_add(where, acc, mask=mi[:, None] & mj[None, :])
