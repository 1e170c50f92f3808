"""All pairs on a GPU: one program holds a block of agents in registers and sweeps the others past it.

A pair of F features costs 2F FP32 instructions, one special-function square root and one multiply-add, which is
also the arithmetic limit; nothing is spent on the diagonal, the padding or the triangle, because all three are the
weight of that multiply-add.
"""

import triton
import triton.language as tl

# NORM is a code of graphsnd.kernels.autograd.CODES: 0 Euclidean, 1 half L1, 2 square-root Jensen-Shannon.


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
    elif NORM == 1:
        return tl.abs(a - b) * 0.5
    else:
        total = a + b
        t = tl.where(total > 0, (a - b) / tl.where(total > 0, total, 1.0), 0.0)
        return total * 0.5 * entropy_gap(t)


@triton.jit
def entropy_gap(t):
    """((1 + t) log(1 + t) + (1 - t) log(1 - t)) / 2, by its series where the logarithms cancel."""
    s = t * t
    h = s * 0.0
    for k in tl.static_range(14):
        h = (h + 1.0 / (2 * (14 - k) * (2 * (14 - k) - 1))) * s
    up, down = 1.0 + t, 1.0 - t
    up_log = tl.where(up > 0, up * tl.log(tl.where(up > 0, up, 1.0)), 0.0)
    down_log = tl.where(down > 0, down * tl.log(tl.where(down > 0, down, 1.0)), 0.0)
    return tl.where(s < 0.0625, h, (up_log + down_log) * 0.5)


@triton.jit
def root(s):
    """1 / sqrt(s)."""
    if s.dtype == tl.float32:
        return tl.rsqrt(s)
    else:
        return 1.0 / tl.sqrt(s)


@triton.jit
def finish(s, NORM: tl.constexpr):
    """From the sum over features to the distance.

    The approximate square root is good to an ulp and one instruction; s * rsqrt(s), with its guard at 0, is slower.
    """
    if NORM == 1:
        return s
    else:
        return tl.sqrt(s)


@triton.jit
def first_four(x, i, mi, inverse, stride_n, stride_f, F: tl.constexpr):
    """The first features of a block of agents; those beyond F repeat the first and are never used."""
    a0 = fetch(x, i, 0, mi, inverse, stride_n, stride_f)
    a1, a2, a3 = a0, a0, a0
    if F > 1:
        a1 = fetch(x, i, 1, mi, inverse, stride_n, stride_f)
    if F > 2:
        a2 = fetch(x, i, 2, mi, inverse, stride_n, stride_f)
    if F > 3:
        a3 = fetch(x, i, 3, mi, inverse, stride_n, stride_f)
    return a0, a1, a2, a3


@triton.jit
def four_from(x, i, feature, mi, inverse, stride_n, stride_f, F: tl.constexpr):
    """Features ``feature .. feature + 3`` of a block of agents, 0 beyond F."""
    a0 = fetch(x, i, feature, mi, inverse, stride_n, stride_f)
    a1 = fetch(x, i, feature + 1, mi & (feature + 1 < F), inverse, stride_n, stride_f)
    a2 = fetch(x, i, feature + 2, mi & (feature + 2 < F), inverse, stride_n, stride_f)
    a3 = fetch(x, i, feature + 3, mi & (feature + 3 < F), inverse, stride_n, stride_f)
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
def tile(
    x, i, j, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F: tl.constexpr, NORM: tl.constexpr
):  # fmt: skip
    """Distances between two blocks of agents, the first four features of both in registers."""
    s = summed(x, i, j, None, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
    return finish(s, NORM)


@triton.jit
def sweep(
    x, inverse, part, parts, n, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """Sum over the pairs whose first agent is in every ``parts``-th block; BJ divides BI."""
    acc = tl.zeros((BI, BJ), dtype=x.dtype.element_ty)
    for block in range(part, tl.cdiv(n, BI), parts):
        i = block * BI + tl.arange(0, BI)
        mi = i < n
        i = tl.minimum(i, n - 1)
        after = block * BI + BI
        a0, a1, a2, a3 = first_four(x, i, None, inverse, stride_n, stride_f, F)
        # The square on the diagonal holds every pair twice and each agent with itself at distance 0: half weight.
        for start in range(block * BI, tl.minimum(after, n), BJ):
            j = start + tl.arange(0, BJ)
            b0, b1, b2, b3 = first_four(x, j, j < n, inverse, stride_n, stride_f, F)
            d = tile(x, i, j, j < n, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            acc += tl.where(mi[:, None] & (j < n)[None, :], d * 0.5, 0.0)
        # Each tile is fetched while the one before it is being worked on.
        j = tl.minimum(after + tl.arange(0, BJ), n - 1)
        b0, b1, b2, b3 = first_four(x, j, None, inverse, stride_n, stride_f, F)
        for start in range(after, n - BJ + 1, BJ):
            k = tl.minimum(start + BJ + tl.arange(0, BJ), n - 1)
            c0, c1, c2, c3 = first_four(x, k, None, inverse, stride_n, stride_f, F)
            acc += tile(x, i, j, None, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            j, b0, b1, b2, b3 = k, c0, c1, c2, c3
        if after < n and n % BJ != 0:
            d = tile(x, i, j, None, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            acc += tl.where((tl.arange(0, BJ) < n % BJ)[None, :], d, 0.0)
    # A tree of float32 sums is good to 1e-7 and its rounding averages out; converting every lane costs more.
    return tl.sum(tl.sum(acc, axis=1), axis=0).to(tl.float64)


@triton.jit
def scale_of(x, n, stride_n, stride_f, F: tl.constexpr, B: tl.constexpr):
    """The power of two below the largest magnitude of one observation: dividing by it leaves equal agents equal."""
    largest = tl.zeros((B,), dtype=x.dtype.element_ty)
    for f in range(F):
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
def totals(
    x, out, n, parts, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, part]``: sum of the distances over a share of the pairs of one observation.

    Values near 1 need no scaling, so none is done until the sum shows that it was needed.
    """
    pid = tl.program_id(0)
    o, part = (pid // parts).to(tl.int64), pid % parts
    x += o * stride_o
    total = sweep(x, 1.0, part, parts, n, stride_n, stride_f, F, NORM, BI, BJ)
    if NORM == 0:
        if not in_range(total / (n * n)):
            scale = scale_of(x, n, stride_n, stride_f, F, 256)
            total = sweep(x, 1.0 / scale, part, parts, n, stride_n, stride_f, F, NORM, BI, BJ) * scale
    tl.store(out + o * parts + part, total)


@triton.jit
def totals_small(
    x, out, observations, n, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BO: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """``out[o]`` for teams that fit one tile: BO observations at a time, the whole square at half weight.

    Such teams are bound by memory, so every observation is simply divided by the size of its largest value.
    """
    o = tl.program_id(0).to(tl.int64) * BO + tl.arange(0, BO)
    k = tl.arange(0, BN)
    mask = (o < observations)[:, None] & (k < n)[None, :]
    at = x + o[:, None] * stride_o + k[None, :] * stride_n
    largest = tl.zeros((BO, BN), dtype=x.dtype.element_ty)
    if NORM == 0:
        for f in range(F):
            largest = tl.maximum(largest, tl.abs(tl.load(at + f * stride_f, mask=mask, other=0.0)))
    top = tl.full((BO,), 1.0, x.dtype.element_ty)
    if NORM == 0:
        top = power_below(tl.max(largest, axis=1))
    s = tl.zeros((BO, BN, BN), dtype=x.dtype.element_ty)
    for f in range(F):
        a = tl.load(at + f * stride_f, mask=mask, other=0.0) / top[:, None]
        s += term(a[:, :, None], a[:, None, :], NORM)
    d = tl.where(mask[:, :, None] & mask[:, None, :], finish(s, NORM), 0.0)
    sums = tl.sum(tl.sum(d, axis=2), axis=1).to(tl.float64) * top * 0.5
    tl.store(out + o, sums, mask=o < observations)


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
            a0, a1, a2, a3 = first_four(at, i, mi, inverse, stride_n, stride_f, F)
            b0, b1, b2, b3 = first_four(at, j, mj, inverse, stride_n, stride_f, F)
            s = summed(at, i, j, mi, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
            acc += finish(s, NORM).to(tl.float64) * tl.load(weight + o)
        where = out + i[:, None].to(tl.int64) * n + j[None, :]
        tl.atomic_add(where, acc, mask=mi[:, None] & mj[None, :])


@triton.jit
def slope(a, b, r, NORM: tl.constexpr):
    """Derivative of the distance by one feature of the first agent, given r (see :func:`pull`)."""
    if NORM == 0:
        return (a - b) * r
    elif NORM == 1:
        return tl.where(a > b, r, tl.where(a < b, -r, 0.0))
    else:
        total = tl.where(a + b > 0, a + b, 1.0)
        t = (a - b) / total
        # log(1 + t) loses digits for small t, where its series does not; 1 + t = 2a / (a + b) keeps those of small a.
        series = t * (1.0 - t * (0.5 - t * (1.0 / 3 - t * (0.25 - t * (0.2 - t * (1.0 / 6))))))
        log = tl.where(tl.abs(t) < 0.03, series, tl.log(tl.where(a > 0, 2.0 * a / total, 1.0)))
        return log * r


@triton.jit
def pull(s, mask, NORM: tl.constexpr):
    """The factor common to all features of a pair, 0 outside the mask, finite at distance 0, where slopes are 0.

    For the Euclidean norm, one maximum does all three: with a tiny number at distance 0, with infinity outside.
    """
    if NORM == 0:
        tiny = 1e-37 if s.dtype == tl.float32 else 1e-300
        return root(tl.maximum(s, tl.where(mask, tiny, float("inf")).to(s.dtype)))
    elif NORM == 1:
        return tl.where(mask, 0.5, 0.0).to(s.dtype)
    else:
        return tl.where(mask & (s > 0), 0.25 * root(tl.where(s > 0, s, 1.0)), 0.0)


@triton.jit
def drag(
    x, inverse, pairs, block, group, n, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr, MATRIX: tl.constexpr,
):  # fmt: skip
    """Pull of all agents on a block of them in features ``group .. group + 3``, and their summed distances.

    Wider teams visit the pairs once for each group of four features, which costs arithmetic but no memory.
    """
    i = block * BI + tl.arange(0, BI)
    mi = i < n
    a0, a1, a2, a3 = first_four(x, i, mi, inverse, stride_n, stride_f, F)
    e0, e1, e2, e3 = a0, a1, a2, a3
    if F > 4:
        e0, e1, e2, e3 = four_from(x, i, group, mi, inverse, stride_n, stride_f, F)
    total = tl.zeros((BI, BJ), dtype=x.dtype.element_ty)
    g0, g1, g2, g3 = total, total, total, total
    for start in range(0, n, BJ):
        j = start + tl.arange(0, BJ)
        mj = j < n
        b0, b1, b2, b3 = first_four(x, j, mj, inverse, stride_n, stride_f, F)
        s = summed(x, i, j, mi, mj, a0, a1, a2, a3, b0, b1, b2, b3, inverse, stride_n, stride_f, F, NORM)
        r = pull(s, mj[None, :], NORM)
        if MATRIX:
            inside = mi[:, None] & mj[None, :]
            r *= tl.load(pairs + i[:, None].to(tl.int64) * n + j[None, :], mask=inside, other=0.0)
        elif NORM == 0:
            total += s * r
        elif NORM == 1:
            total += s * r * 2.0
        else:
            total += s * r * 4.0
        if F > 4:
            b0, b1, b2, b3 = four_from(x, j, group, mj, inverse, stride_n, stride_f, F)
        g0 += slope(e0[:, None], b0[None, :], r, NORM)
        if F > 1:
            g1 += slope(e1[:, None], b1[None, :], r, NORM)
        if F > 2:
            g2 += slope(e2[:, None], b2[None, :], r, NORM)
        if F > 3:
            g3 += slope(e3[:, None], b3[None, :], r, NORM)
    rows = tl.where(mi, tl.sum(total, axis=1), 0.0)
    return tl.sum(g0, axis=1), tl.sum(g1, axis=1), tl.sum(g2, axis=1), tl.sum(g3, axis=1), tl.sum(rows, axis=0)


@triton.jit
def put(out, g0, g1, g2, g3, group, mask, F: tl.constexpr):
    """Store up to four features of a block of agents."""
    tl.store(out + group, g0, mask=mask)
    if F > 1:
        tl.store(out + group + 1, g1, mask=mask & (group + 1 < F))
    if F > 2:
        tl.store(out + group + 2, g2, mask=mask & (group + 2 < F))
    if F > 3:
        tl.store(out + group + 3, g3, mask=mask & (group + 3 < F))


@triton.jit
def totals_and_slopes(
    x, out, slopes, n, blocks, groups, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, block]``: distances of the block's agents to all, every pair twice; ``slopes[o, i, f]``: the gradient.

    One visit of each ordered pair gives both, at three times the arithmetic of the total alone.
    """
    pid = tl.program_id(0)
    o, rest = (pid // (blocks * groups)).to(tl.int64), pid % (blocks * groups)
    block, group = rest // groups, (rest % groups) * 4
    x += o * stride_o
    g0, g1, g2, g3, total = drag(x, 1.0, x, block, group, n, stride_n, stride_f, F, NORM, BI, BJ, False)
    size = tl.full((), 1.0, x.dtype.element_ty)
    if NORM == 0:
        if not in_range(total / n):
            size = scale_of(x, n, stride_n, stride_f, F, 256)
            g0, g1, g2, g3, total = drag(
                x, 1.0 / size, x, block, group, n, stride_n, stride_f, F, NORM, BI, BJ, False
            )  # fmt: skip
    i = block * BI + tl.arange(0, BI)
    put(slopes + (o * n + i) * F, g0, g1, g2, g3, group, i < n, F)
    if group == 0:
        tl.store(out + o * blocks + block, total.to(tl.float64) * size)


@triton.jit
def matrix_backward(
    x, scale, weight, pairs, out, n, blocks, groups, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr,
):  # fmt: skip
    """``out[o, i, f]``: the pull of all agents on agent i, times ``weight[o] * pairs[i, j]``."""
    pid = tl.program_id(0)
    o, rest = (pid // (blocks * groups)).to(tl.int64), pid % (blocks * groups)
    block, group = rest // groups, (rest % groups) * 4
    inverse = 1.0 / tl.load(scale)
    g0, g1, g2, g3, _ = drag(
        x + o * stride_o, inverse, pairs, block, group, n, stride_n, stride_f, F, NORM, BI, BJ, True
    )  # fmt: skip
    c = tl.load(weight + o).to(g0.dtype)
    i = block * BI + tl.arange(0, BI)
    put(out + (o * n + i) * F, g0 * c, g1 * c, g2 * c, g3 * c, group, i < n, F)
