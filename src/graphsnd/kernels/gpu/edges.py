"""Edge lists on a GPU.

A random edge list has no tiles to keep in registers, so its cost is the traffic of the gathers. Where only the total
for each observation is wanted, :func:`totals` lays observations along the lanes, so that a gather reads whole cache
lines (:func:`turn`); takes edges in an order in which a stretch of them touches few agents, which then stay in the
first-level cache; and shares each first agent among four edges (:func:`fill`).
"""

import triton
import triton.language as tl

from graphsnd.kernels.gpu.slopes import pull, slope
from graphsnd.kernels.gpu.tiles import finish, in_range, scale_of, term


@triton.jit
def own(
    x, scale, edges, out, size, blocks, stride_o, stride_n, stride_f, edges_o, edges_e, edges_k,
    F: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """``out[o, e]``, float64: the distance along edge e of observation o."""
    pid = tl.program_id(0)
    o, e = (pid // blocks).to(tl.int64), (pid % blocks) * B + tl.arange(0, B)
    mask = e < size
    at = edges + o * edges_o + e * edges_e
    i, j = tl.load(at, mask=mask, other=0), tl.load(at + edges_k, mask=mask, other=0)
    inverse = 1.0 / tl.load(scale)
    x += o * stride_o
    s = tl.zeros((B,), dtype=x.dtype.element_ty)
    for f in range(F):
        a = tl.load(x + i * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        b = tl.load(x + j * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        s += term(a, b, NORM)
    tl.store(out + o * size + e, finish(s, NORM).to(tl.float64), mask=mask)


@triton.jit
def sums(
    x, scale, edges, weight, out, observations, size, per_split, stride_o, stride_n, stride_f,
    F: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Add to ``out[e]``, float64, the weighted sum over a share of the observations."""
    e = tl.program_id(0) * B + tl.arange(0, B)
    mask = e < size
    i, j = tl.load(edges + 2 * e, mask=mask, other=0), tl.load(edges + 2 * e + 1, mask=mask, other=0)
    inverse = 1.0 / tl.load(scale)
    acc = tl.zeros((B,), dtype=tl.float64)
    first = (tl.program_id(1) * per_split).to(tl.int64)
    for o in range(first, tl.minimum(first + per_split, observations)):
        at = x + o * stride_o
        s = tl.zeros((B,), dtype=x.dtype.element_ty)
        for f in range(F):
            a = tl.load(at + i * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
            b = tl.load(at + j * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
            s += term(a, b, NORM)
        acc += finish(s, NORM).to(tl.float64) * tl.load(weight + o)
    tl.atomic_add(out + e, acc, mask=mask)


@triton.jit(do_not_specialize=["jump", "size", "observations"])
def turn(
    x, jump, out, size, observations, stride_o, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, LANES: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """``out[o / LANES, k, LANES]``: feature ``k % F`` of agent ``k // F``, 0 beyond the last observation.

    A transposition of ``[LANES, size]``, where features from FX on are ``jump`` away.
    """
    row, k, lane = tl.program_id(1).to(tl.int64), tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, LANES)
    o, f = row * LANES + lane, k % F
    at = x + o[:, None] * stride_o + (k // F * stride_n + f * stride_f + tl.where(f < FX, 0, jump))[None, :]
    values = tl.load(at, mask=(o < observations)[:, None] & (k < size)[None, :], other=0.0)
    out += (row * size + k)[:, None] * LANES + lane[None, :]
    tl.store(out, tl.trans(values), mask=(k < size)[:, None])


@triton.jit
def first_edge(edges, size, i, j, edges_e, edges_k, STEPS: tl.constexpr):
    """How many of the sorted edges come before (i, j)."""
    low, high = i * 0, i * 0 + size
    for _ in range(STEPS):
        middle = (low + high) // 2
        at = edges + tl.minimum(middle, size - 1).to(tl.int64) * edges_e
        a, b = tl.load(at).to(tl.int32), tl.load(at + edges_k).to(tl.int32)
        below = (low < high) & ((a < i) | ((a == i) & (b < j)))
        low, high = tl.where(below, middle + 1, low), tl.where(below, high, middle)
    return low


@triton.jit(do_not_specialize=["size", "n", "segments"])
def measure_segments(
    edges, begin, length, size, n, segments, edges_e, edges_k,
    NEAR: tl.constexpr, SHARE: tl.constexpr, STEPS: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Where the edges of each segment begin, and their number, filled up to a multiple of SHARE.

    Segment ``block * n + i`` has the edges from agent i to a block of NEAR agents.
    """
    s = tl.program_id(0) * B + tl.arange(0, B)
    i, j = s % n, s // n * NEAR
    first = first_edge(edges, size, i, j, edges_e, edges_k, STEPS)
    count = first_edge(edges, size, i, j + NEAR, edges_e, edges_k, STEPS) - first
    tl.store(begin + s, first, mask=s < segments)
    tl.store(length + s, (count + SHARE - 1) // SHARE * SHARE, mask=s < segments)


@triton.jit(do_not_specialize=["size", "n"])
def fill(
    edges, begin, length, after, first, second, place, size, n, edges_e, edges_k,
    NEAR: tl.constexpr, SHARE: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Put edges in groups of SHARE with one first agent, segment by segment; ``after`` is where each segment ends."""
    e = tl.program_id(0) * B + tl.arange(0, B)
    mask = e < size
    at = edges + e.to(tl.int64) * edges_e
    i, j = tl.load(at, mask=mask, other=0).to(tl.int32), tl.load(at + edges_k, mask=mask, other=0).to(tl.int32)
    s = j // NEAR * n + i
    ends, padded = tl.load(after + s, mask=mask, other=0), tl.load(length + s, mask=mask, other=0)
    slot = ends - padded + e - tl.load(begin + s, mask=mask, other=0)
    tl.store(first + slot // SHARE, i, mask=mask)
    tl.store(second + slot, j, mask=mask)
    tl.store(place + e, slot, mask=mask)


@triton.jit
def walk(
    base, inverse, first_agent, second_agent, coefficient, start, stop,
    F: tl.constexpr, NORM: tl.constexpr, G: tl.constexpr, SHARE: tl.constexpr, LANES: tl.constexpr,
    WEIGHTED: tl.constexpr,
):  # fmt: skip
    """Sum over edge groups ``start`` to ``stop``, for each lane."""
    lane = tl.arange(0, LANES)
    acc = tl.zeros((G, SHARE, LANES), dtype=base.dtype.element_ty)
    for at in range(start, stop, G):
        g = at + tl.arange(0, G)
        slots = g[:, None] * SHARE + tl.arange(0, SHARE)[None, :]
        # What no edge took is -1: agent 0 there, and what fills a group up is an edge from its agent to itself.
        i, j = tl.maximum(tl.load(first_agent + g), 0), tl.load(second_agent + slots)
        j = tl.where(j < 0, i[:, None], j)
        a_at = base + (i * (F * LANES))[:, None] + lane[None, :]
        b_at = base + (j * (F * LANES))[:, :, None] + lane[None, None, :]
        s = tl.zeros((G, SHARE, LANES), dtype=base.dtype.element_ty)
        for f in tl.static_range(F):
            a, b = tl.load(a_at + f * LANES) * inverse, tl.load(b_at + f * LANES) * inverse
            s += term(a[:, None, :], b, NORM)
        if WEIGHTED:
            acc += finish(s, NORM) * tl.load(coefficient + slots)[:, :, None]
        else:
            acc += finish(s, NORM)
    return tl.sum(tl.sum(acc, axis=1), axis=0)


@triton.jit
def totals(
    turned, first_agent, second_agent, coefficient, out, n, observations, groups, per_chunk,
    F: tl.constexpr, NORM: tl.constexpr, G: tl.constexpr, SHARE: tl.constexpr, LANES: tl.constexpr,
    WEIGHTED: tl.constexpr,
):  # fmt: skip
    """``out[chunk, o]``, float64: sum over a chunk of edge groups.

    ``turned`` comes from :func:`turn`. Group g holds the agent ``first_agent[g]`` and SHARE edges to
    ``second_agent[g]``, filled up with edges from the agent to itself, at distance 0. As in
    :func:`graphsnd.kernels.gpu.tiles.totals`, nothing is scaled until a sum shows that it must be.
    """
    chunk, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    base = turned + row * n * (F * LANES)
    start = chunk * per_chunk
    stop = tl.minimum(start + per_chunk, groups)
    total = walk(
        base, 1.0, first_agent, second_agent, coefficient, start, stop, F, NORM, G, SHARE, LANES, WEIGHTED
    ).to(tl.float64)  # fmt: skip
    if NORM == 0:
        mean = tl.sum(total, axis=0) / ((stop - start) * SHARE * LANES)
        if not in_range(mean):
            scale = scale_of(base, n * LANES, 1, n * LANES, 0, F, 1024)
            total = walk(
                base, 1.0 / scale, first_agent, second_agent, coefficient, start, stop,
                F, NORM, G, SHARE, LANES, WEIGHTED,
            ).to(tl.float64) * scale  # fmt: skip
    o = row * LANES + tl.arange(0, LANES)
    tl.store(out + chunk.to(tl.int64) * observations + o, total, mask=o < observations)


@triton.jit
def backward(
    x, scale, edges, weight, grad, out, n, size, blocks, stride_o, stride_n, stride_f,
    edges_o, edges_e, edges_k, grad_o, F: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """Add to ``out[o, i, f]`` the pull along every edge, times ``weight[o] * grad[o, e]``."""
    pid = tl.program_id(0)
    o, e = (pid // blocks).to(tl.int64), (pid % blocks) * B + tl.arange(0, B)
    mask = e < size
    at = edges + o * edges_o + e * edges_e
    i, j = tl.load(at, mask=mask, other=0), tl.load(at + edges_k, mask=mask, other=0)
    inverse = 1.0 / tl.load(scale)
    x += o * stride_o
    s = tl.zeros((B,), dtype=x.dtype.element_ty)
    for f in range(F):
        a = tl.load(x + i * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        b = tl.load(x + j * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        s += term(a, b, NORM)
    c = tl.load(grad + o * grad_o + e, mask=mask, other=0.0) * tl.load(weight + o)
    r = pull(s, mask, NORM) * c.to(s.dtype)
    out += o * n * F
    for f in range(F):
        a = tl.load(x + i * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        b = tl.load(x + j * stride_n + f * stride_f, mask=mask, other=0.0) * inverse
        tl.atomic_add(out + i * F + f, slope(a, b, r, NORM), mask=mask, sem="relaxed")
        tl.atomic_add(out + j * F + f, slope(b, a, r, NORM), mask=mask, sem="relaxed")
