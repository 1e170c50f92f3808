"""Stacked networks with two hidden layers of one width, in bfloat16 with float32 sums: Triton programs.

A program takes a tile of rows of one network through both hidden layers. The first one's features stay in registers and
are written only where a backward pass will read them, the second one's are also read by the last layer's product, which
is elsewhere unless rows are gathered. ``which`` says whose tile it is, so that rows may be sorted by network and
padded to whole tiles: how many rows a network has need not be known on the host.
"""

import triton
import triton.language as tl

TANH, RELU = 0, 1


@triton.jit
def activate(x, KIND: tl.constexpr, EXACT: tl.constexpr):
    """Tanh by the GPU's own instruction, good to 2^-11, which is finer than bfloat16; or ReLU."""
    if KIND == 1:
        return tl.maximum(x, 0.0)
    if EXACT:  # where there is no such instruction
        return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def slope(h, KIND: tl.constexpr):
    """Derivative of an activation, from its value."""
    if KIND == 1:
        return tl.where(h > 0.0, 1.0, 0.0)
    return 1.0 - h * h


@triton.jit
def forward(
    x, index, which, end, w1, b1, w2, b2, w3, b3, h1, h2, out, rows, group, tiles,
    K: tl.constexpr, H: tl.constexpr, A: tl.constexpr, GATHER: tl.constexpr, KEEP: tl.constexpr,
    KIND: tl.constexpr, EXACT: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr,
    COLUMNS: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """The second hidden layer of a tile, the first one too where KEEP, and where GATHER the outputs.

    Where GATHER, row r of tile t reads row ``index[t, r]`` of ``x`` (none below 0) for network ``which[t]``, and tiles
    from ``end`` on are empty. Else every network has ``rows`` rows, in ``tiles`` tiles, and ``group`` networks after
    each other read the same ones.
    """
    tile = tl.program_id(0)
    r = tl.arange(0, ROWS)
    if GATHER:
        if tile >= tl.load(end):
            return
        network = tl.load(which + tile).to(tl.int64)
        place = tile.to(tl.int64) * ROWS + r
        source = tl.load(index + place)
        mask = source >= 0
    else:
        network = (tile // tiles).to(tl.int64)
        inside = (tile % tiles) * ROWS + r
        mask = inside < rows
        source = network // group * rows + inside
        place = network * rows + inside
    h = tl.arange(0, H)
    acc = tl.zeros((ROWS, H), dtype=tl.float32)
    for k in range(0, K, STEP):
        f = k + tl.arange(0, STEP)
        seen = tl.load(x + source[:, None] * K + f[None, :], mask=mask[:, None], other=0.0)
        acc = tl.dot(seen, tl.load(w1 + network * (K * H) + f[:, None] * H + h[None, :]), acc)
    acc += tl.load(b1 + network * H + h)[None, :]
    first = activate(acc, KIND, EXACT).to(x.dtype.element_ty)
    at = place[:, None] * H + h[None, :]
    if KEEP:
        tl.store(h1 + at, first, mask=mask[:, None])
    a = tl.arange(0, OUT)
    y = tl.zeros((ROWS, OUT), dtype=tl.float32) + tl.load(b3 + network * A + a, mask=a < A, other=0.0)[None, :]
    for begin in range(0, H, COLUMNS):
        c = begin + tl.arange(0, COLUMNS)
        w = tl.load(w2 + network * (H * H) + h[:, None] * H + c[None, :])
        part = tl.dot(first, w) + tl.load(b2 + network * H + c)[None, :]
        second = activate(part, KIND, EXACT).to(x.dtype.element_ty)
        if KEEP or not GATHER:
            tl.store(h2 + place[:, None] * H + c[None, :], second, mask=mask[:, None])
        if GATHER:
            # As sums: a product this narrow comes out wrong (Triton 3.6 on Hopper).
            last = tl.load(w3 + (network * H + c[:, None]) * A + a[None, :], mask=(a < A)[None, :], other=0.0)
            y += tl.sum(second.to(tl.float32)[:, :, None] * last.to(tl.float32)[None, :, :], axis=1)
    if GATHER:
        tl.store(out + place[:, None] * A + a[None, :], y, mask=mask[:, None] & (a < A)[None, :])


@triton.jit
def backward_last(
    index, which, end, w3t, h2, slopes, d2, s2, s3, rows, tiles,
    H: tl.constexpr, A: tl.constexpr, GATHER: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):  # fmt: skip
    """From the outputs' ``slopes`` those of the second layer before its activation, ``d2``.

    Also a tile's sums over rows: ``s2`` for its biases, ``s3[t, a]`` for the last weights.
    """
    tile = tl.program_id(0)
    r = tl.arange(0, ROWS)
    if GATHER:
        if tile >= tl.load(end):
            return
        network = tl.load(which + tile).to(tl.int64)
        place = tile.to(tl.int64) * ROWS + r
        mask = tl.load(index + place) >= 0
    else:
        network = (tile // tiles).to(tl.int64)
        inside = (tile % tiles) * ROWS + r
        mask = inside < rows
        place = network * rows + inside
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at = place[:, None] * H + c[None, :]
    second = tl.load(h2 + at, mask=mask[:, None], other=0.0).to(tl.float32)
    acc = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for a in tl.static_range(A):
        d = tl.load(slopes + place * A + a, mask=mask, other=0.0)
        acc += d[:, None] * tl.load(w3t + (network * A + a) * H + c).to(tl.float32)[None, :]
        tl.store(s3 + (tile.to(tl.int64) * A + a) * H + c, tl.sum(second * d[:, None], axis=0))
    acc *= slope(second, KIND)
    tl.store(s2 + tile.to(tl.int64) * H + c, tl.sum(acc, axis=0))
    tl.store(d2 + at, acc.to(h2.dtype.element_ty), mask=mask[:, None])


@triton.jit
def backward_first(
    index, which, end, w2t, h1, d2, d1, s1,
    H: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Gathered rows: from ``d2`` the slopes ``d1`` of the first layer before its activation, and their sums ``s1``."""
    tile = tl.program_id(0)
    if tile >= tl.load(end):
        return
    network = tl.load(which + tile).to(tl.int64)
    place = tile.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask = tl.load(index + place) >= 0
    h = tl.arange(0, H)
    after = tl.load(d2 + place[:, None] * H + h[None, :], mask=mask[:, None], other=0.0)
    for begin in range(0, H, COLUMNS):
        c = begin + tl.arange(0, COLUMNS)
        w = tl.load(w2t + network * (H * H) + h[:, None] * H + c[None, :])
        at = place[:, None] * H + c[None, :]
        first = tl.load(h1 + at, mask=mask[:, None], other=0.0).to(tl.float32)
        part = tl.dot(after, w) * slope(first, KIND)
        tl.store(s1 + tile.to(tl.int64) * H + c, tl.sum(part, axis=0))
        tl.store(d1 + at, part.to(h1.dtype.element_ty), mask=mask[:, None])


@triton.jit
def through_activation(
    h, d, sums, rows, tiles, H: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Multiply ``d`` by the slope of the activation whose values are ``h``, in place; ``sums`` over a tile's rows."""
    tile = tl.program_id(0)
    inside = (tile % tiles) * ROWS + tl.arange(0, ROWS)
    mask = (inside < rows)[:, None]
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    at = ((tile // tiles).to(tl.int64) * rows + inside)[:, None] * H + c[None, :]
    part = tl.load(d + at, mask=mask, other=0.0).to(tl.float32)
    part *= slope(tl.load(h + at, mask=mask, other=0.0).to(tl.float32), KIND)
    tl.store(sums + tile.to(tl.int64) * H + c, tl.sum(part, axis=0))
    tl.store(d + at, part.to(d.dtype.element_ty), mask=mask)


@triton.jit
def products(
    x, index, d, starts, out, K: tl.constexpr, H: tl.constexpr, GATHER: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``out[g] = sum x^T d`` over the tiles of network g, however many: gradients of weights."""
    network = tl.program_id(0)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    h, r = tl.arange(0, H), tl.arange(0, ROWS)
    acc = tl.zeros((BLOCK, H), dtype=tl.float32)
    for tile in range(tl.load(starts + network), tl.load(starts + network + 1)):
        place = tile * ROWS + r
        source = tl.load(index + place)
        mask = source >= 0
        at = source if GATHER else place
        a = tl.load(x + at[None, :] * K + k[:, None], mask=mask[None, :] & (k < K)[:, None], other=0.0)
        b = tl.load(d + place[:, None] * H + h[None, :], mask=mask[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(out + (network.to(tl.int64) * K + k[:, None]) * H + h[None, :], acc, mask=(k < K)[:, None])


@triton.jit
def fold(parts, starts, out, WIDTH: tl.constexpr):
    """``out[g]``, the sum over the tiles of network g of ``parts[t]``, in their order."""
    network = tl.program_id(0)
    w = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    width = tl.num_programs(1) * WIDTH
    acc = tl.zeros((WIDTH,), dtype=tl.float32)
    for tile in range(tl.load(starts + network), tl.load(starts + network + 1)):
        acc += tl.load(parts + tile * width + w)
    tl.store(out + network.to(tl.int64) * width + w, acc)
