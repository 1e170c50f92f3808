"""Triton programs of training: stacked networks, and the elementwise parts of a learning step.

Networks have two hidden layers of one width, in bfloat16 or TF32 with float32 sums. A program takes a tile of rows of
one network through all layers. Hidden features stay on the chip and are written only where a backward pass will read
them. ``which`` is the network of each tile. So rows may be sorted by network and padded to whole tiles, and the host
need not know how many rows a network has.
"""

import triton
import triton.language as tl

TANH, RELU = 0, 1


@triton.jit
def activate(x, KIND: tl.constexpr, EXACT: tl.constexpr):
    """Tanh by the GPU's own instruction, good to 2^-11, which is finer than bfloat16 but not than TF32; or ReLU."""
    if KIND == 1:
        return tl.maximum(x, 0.0)
    if EXACT:
        return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)
    return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def narrow(x, WIDE: tl.constexpr, EXACT: tl.constexpr):
    """Round to bfloat16, or to TF32 if WIDE: a TF32 product would truncate the digits, which is biased."""
    if not WIDE:
        x = x.to(tl.bfloat16)
    elif not EXACT:  # the GPU has an instruction for it
        x = tl.inline_asm_elementwise("cvt.rna.tf32.f32 $0, $1;", "=r,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    return x


@triton.jit
def slope(h, KIND: tl.constexpr):
    """Derivative of an activation, from its value."""
    if KIND == 1:
        return tl.where(h > 0.0, 1.0, 0.0)
    return 1.0 - h * h


@triton.jit
def weights_at(w, network, k, h, K: tl.constexpr, H: tl.constexpr, WIDE: tl.constexpr):
    """Addresses ``[k, h]`` of a network's weights, which lie in memory as ``[h, k]`` if WIDE."""
    inside = k[:, None] + h[None, :] * K if WIDE else k[:, None] * H + h[None, :]
    return w + network * (K * H) + inside


@triton.jit(do_not_specialize=["rows", "group", "tiles"], do_not_specialize_on_alignment=["end", "b1", "b2", "b3"])
def forward(
    x, index, which, end, w1, b1, w2, b2, w3t, b3, h1, h2, out, rows, group, tiles,
    K: tl.constexpr, H: tl.constexpr, A: tl.constexpr, GATHER: tl.constexpr, KEEP: tl.constexpr,
    KIND: tl.constexpr, WIDE: tl.constexpr, EXACT: tl.constexpr, ROWS: tl.constexpr, PARTS: tl.constexpr,
    STEP: tl.constexpr, COLUMNS: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """Compute the outputs of a tile, and store both hidden layers if KEEP.

    With GATHER, row r of tile t reads row ``index[t, r]`` of ``x`` (none if negative) for network ``which[t]``, and
    tiles from ``end`` on are empty. Without, every network has ``rows`` rows in ``tiles`` tiles, and ``group``
    consecutive networks read the same rows.
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
    # The first layer in parts, because a program with fewer registers leaves room for another one beside it.
    PART: tl.constexpr = H // PARTS
    first = ()
    for part in tl.static_range(PARTS):
        h = part * PART + tl.arange(0, PART)
        acc = tl.zeros((ROWS, PART), dtype=tl.float32)
        for k in range(0, K, STEP):
            f = k + tl.arange(0, STEP)
            seen = tl.load(x + source[:, None] * K + f[None, :], mask=mask[:, None], other=0.0)
            acc = tl.dot(seen, tl.load(weights_at(w1, network, f, h, K, H, WIDE)), acc)
        acc += tl.load(b1 + network * H + h)[None, :]
        hidden = narrow(activate(acc, KIND, EXACT or WIDE), WIDE, EXACT)
        if KEEP:
            tl.store(h1 + place[:, None] * H + h[None, :], hidden, mask=mask[:, None])
        first = first + (hidden,)  # type: ignore[assignment]  # noqa: RUF005
    a = tl.arange(0, OUT)
    y = tl.zeros((ROWS, OUT), dtype=tl.float32) + tl.load(b3 + network * A + a, mask=a < A, other=0.0)[None, :]
    for begin in range(0, H, COLUMNS):
        c = begin + tl.arange(0, COLUMNS)
        total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for part in tl.static_range(PARTS):
            g = part * PART + tl.arange(0, PART)
            total = tl.dot(first[part], tl.load(weights_at(w2, network, g, c, H, H, WIDE)), total)
        second = activate(total + tl.load(b2 + network * H + c)[None, :], KIND, EXACT or WIDE)
        if KEEP:
            tl.store(h2 + place[:, None] * H + c[None, :], narrow(second, WIDE, EXACT), mask=mask[:, None])
        # As sums, because a product this narrow gives wrong numbers (Triton 3.6 on Hopper).
        for o in tl.static_range(A):
            last = tl.load(w3t + (network * A + o) * H + c).to(tl.float32)
            y += tl.where(a == o, 1.0, 0.0)[None, :] * tl.sum(second * last[None, :], axis=1)[:, None]
    tl.store(out + place[:, None] * A + a[None, :], y, mask=mask[:, None] & (a < A)[None, :])


@triton.jit(do_not_specialize=["rows", "spans"])
def backward_last(
    w3t, h2, slopes, d2, s2, s3, rows, spans, H: tl.constexpr, A: tl.constexpr, OUT: tl.constexpr,
    KIND: tl.constexpr, SPAN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Compute the gradient before the second activation, ``d2``, from the outputs' ``slopes``; for evenly spread rows.

    Also the sums over a span of rows: ``s2`` for its biases, ``s3[span, a]`` for the last weights. A program is one
    warp. Each thread has whole columns, so sums need no exchange between threads.
    """
    span = tl.program_id(0)
    network, h, a = (span // spans).to(tl.int64), tl.arange(0, H), tl.arange(0, OUT)
    total, last = tl.zeros((H,), dtype=tl.float32), tl.zeros((OUT, H), dtype=tl.float32)
    for begin in range(0, SPAN, ROWS):
        inside = (span % spans) * SPAN + begin + tl.arange(0, ROWS)
        mask, place = inside < rows, network * rows + inside
        at = place[:, None] * H + h[None, :]
        second = tl.load(h2 + at, mask=mask[:, None], other=0.0).to(tl.float32)
        part = tl.zeros((ROWS, H), dtype=tl.float32)
        for o in tl.static_range(A):
            d = tl.load(slopes + place * A + o, mask=mask, other=0.0)[:, None]
            part += d * tl.load(w3t + (network * A + o) * H + h).to(tl.float32)[None, :]
            last += tl.where(a == o, 1.0, 0.0)[:, None] * tl.sum(second * d, axis=0)[None, :]
        part *= slope(second, KIND)
        total += tl.sum(part, axis=0)
        tl.store(d2 + at, part.to(d2.dtype.element_ty), mask=mask[:, None])
    tl.store(s2 + span.to(tl.int64) * H + h, total)
    tl.store(s3 + (span.to(tl.int64) * A + a[:, None]) * H + h[None, :], last, mask=(a < A)[:, None])


@triton.jit(do_not_specialize_on_alignment=["end"])
def backward(
    index, which, end, w3t, w2, h1, h2, slopes, d1, d2, s1, s2, s3,
    H: tl.constexpr, A: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr, EXACT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients before both hidden activations, ``d2`` and ``d1``; for gathered rows.

    Also a tile's sums over rows: ``s1`` and ``s2`` for their biases, ``s3[t, a]`` for the last weights.
    """
    tile = tl.program_id(0)
    if tile >= tl.load(end):
        return
    network = tl.load(which + tile).to(tl.int64)
    place = tile.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    mask = tl.load(index + place) >= 0
    h, sums = tl.arange(0, H), tile.to(tl.int64)
    for begin in range(0, H, COLUMNS):
        c = begin + tl.arange(0, COLUMNS)
        at = place[:, None] * H + c[None, :]
        second = tl.load(h2 + at, mask=mask[:, None], other=0.0).to(tl.float32)
        part = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for a in tl.static_range(A):
            d = tl.load(slopes + place * A + a, mask=mask, other=0.0)
            part += d[:, None] * tl.load(w3t + (network * A + a) * H + c).to(tl.float32)[None, :]
            tl.store(s3 + (sums * A + a) * H + c, tl.sum(second * d[:, None], axis=0))
        part *= slope(second, KIND)
        tl.store(s2 + sums * H + c, tl.sum(part, axis=0))
        tl.store(d2 + at, narrow(part, WIDE, EXACT), mask=mask[:, None])
    tl.debug_barrier()  # the next load reads what other threads of this program wrote; it is still cached
    after = tl.load(d2 + place[:, None] * H + h[None, :], mask=mask[:, None], other=0.0)
    for begin in range(0, H, COLUMNS):
        c = begin + tl.arange(0, COLUMNS)
        at = place[:, None] * H + c[None, :]
        w = tl.load(weights_at(w2, network, h, c, H, H, not WIDE))
        first = tl.load(h1 + at, mask=mask[:, None], other=0.0).to(tl.float32)
        part = tl.dot(after, w) * slope(first, KIND)
        tl.store(s1 + sums * H + c, tl.sum(part, axis=0))
        tl.store(d1 + at, narrow(part, WIDE, EXACT), mask=mask[:, None])


@triton.jit(do_not_specialize=["rows", "tiles"])
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


@triton.jit(do_not_specialize=["blocks"])
def rounded(values, out, count, width, blocks, WIDE: tl.constexpr, EXACT: tl.constexpr, BLOCK: tl.constexpr):
    """Round rows of ``count`` numbers, and pad them with zeros to ``width``."""
    program = tl.program_id(0)
    row, at = (program // blocks).to(tl.int64), program % blocks * BLOCK + tl.arange(0, BLOCK)
    part = tl.load(values + row * count + at, mask=at < count, other=0.0).to(tl.float32)
    tl.store(out + row * width + at, narrow(part, WIDE, EXACT), mask=at < width)


@triton.jit(do_not_specialize=["rows", "taken", "agents", "parts"])
def take(x, index, out, rows, taken, agents, parts, K: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr):
    """Take the rows that ``index[block // agents]`` names from every block of ``rows`` rows."""
    program = tl.program_id(0)
    block, r = (program // parts).to(tl.int64), program % parts * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, WIDE)
    source = block * rows + tl.load(index + block // agents * taken + r, mask=r < taken, other=0)
    mask = (r < taken)[:, None] & (k < K)[None, :]
    values = tl.load(x + source[:, None] * K + k[None, :], mask=mask)
    tl.store(out + (block * taken + r)[:, None] * K + k[None, :], values, mask=mask)


@triton.jit
def products(
    x, index, d, starts, out, K: tl.constexpr, H: tl.constexpr, GATHER: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ``out[g] = sum x^T d`` over all tiles of network g: the gradients of its weights."""
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
    """Sum ``parts[t]`` over the tiles t of network g, in their order, into ``out[g]``."""
    network = tl.program_id(0)
    w = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    width = tl.num_programs(1) * WIDTH
    acc = tl.zeros((WIDTH,), dtype=tl.float32)
    for tile in range(tl.load(starts + network), tl.load(starts + network + 1)):
        acc += tl.load(parts + tile * width + w)
    tl.store(out + network.to(tl.int64) * width + w, acc)


@triton.jit
def _tanh(x):
    """Return tanh, with an error of one rounding step of 1."""
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _read_action(common, deviations, actions, scale, shift, floor, row, mask, a: tl.constexpr, A: tl.constexpr):
    """Read action a: value before squashing, squashed part of the mean, raw scale, scale, and residual."""
    edge = 1.0 - 1.1920928955078125e-07  # a rounding step
    action = tl.minimum(tl.maximum(tl.load(actions + row * A + a, mask=mask, other=0.0), -edge), edge)
    u = 0.5 * tl.log((1.0 + action) / (1.0 - action))
    shared = _tanh(tl.load(common + row * (2 * A) + a, mask=mask, other=0.0))
    loc = shared + scale * tl.load(deviations + row * A + a, mask=mask, other=0.0)
    raw = tl.load(common + row * (2 * A) + A + a, mask=mask, other=0.0) + shift
    sigma = _softplus(raw) + floor
    return u, shared, raw, sigma, (u - loc) / sigma


@triton.jit(do_not_specialize=["rows", "each"])
def clipped(
    common, deviations, actions, before, advantages, scales, totals, d_common, d_deviations,
    rows, each, clip, shift, floor,
    A: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the losses of a block of one run's rows, and store the gradients of both networks' outputs for each row.

    A run has ``rows`` rows; ``each`` consecutive rows belong to one agent and its scale.
    """
    run, inside = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = inside < rows
    row = run.to(tl.int64) * rows + inside
    scale = tl.load(scales + run * (rows // each) + inside // each, mask=mask, other=0.0)
    log_prob = -tl.load(before + row, mask=mask, other=0.0)
    for a in tl.static_range(A):
        u, shared, raw, sigma, z = _read_action(common, deviations, actions, scale, shift, floor, row, mask, a, A)
        squashing = 2.0 * (0.6931471805599453 - u - _softplus(-2.0 * u))  # log of the slope of tanh at u
        log_prob += -0.5 * z * z - tl.log(sigma) - 0.9189385332046727 - squashing
    ratio, advantage = tl.exp(log_prob), tl.load(advantages + row, mask=mask, other=0.0)
    free, bounded = ratio * advantage, tl.minimum(tl.maximum(ratio, 1.0 - clip), 1.0 + clip) * advantage
    tl.store(
        totals + run * tl.num_programs(0) + tl.program_id(0), tl.sum(tl.where(mask, -tl.minimum(free, bounded), 0.0))
    )
    weight = tl.where(free > bounded, 0.0, -free) / rows  # so that NaN stays NaN
    for a in tl.static_range(A):
        u, shared, raw, sigma, z = _read_action(common, deviations, actions, scale, shift, floor, row, mask, a, A)
        slope = weight * z / sigma
        tl.store(d_common + row * (2 * A) + a, slope * (1.0 - shared * shared), mask=mask)
        tl.store(d_common + row * (2 * A) + A + a, (slope * z - weight / sigma) / (1.0 + tl.exp(-raw)), mask=mask)
        tl.store(d_deviations + row * A + a, slope * scale, mask=mask)


@triton.jit(do_not_specialize=["agents", "frames"])
def largest_overflow(common, deviations, scales, over, agent, agents, frames, A: tl.constexpr, BLOCK: tl.constexpr):
    """Find the mean furthest outside [-1, 1]^A in each frame of a run: its squared distance, and its agent."""
    run, frame = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = frame < frames
    most, who = tl.zeros((BLOCK,), dtype=tl.float32) - 1.0, tl.zeros((BLOCK,), dtype=tl.int64)
    for i in range(agents):
        row = (run.to(tl.int64) * agents + i) * frames + frame
        scale = tl.load(scales + run * agents + i)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for a in tl.static_range(A):
            shared = _tanh(tl.load(common + row * (2 * A) + a, mask=mask, other=0.0))
            loc = shared + scale * tl.load(deviations + row * A + a, mask=mask, other=0.0)
            beyond = tl.where(tl.abs(loc) <= 1.0, 0.0, tl.abs(loc) - 1.0)
            total += beyond * beyond
        further = (total > most) | (total != total)  # NaN counts, and stays
        who, most = tl.where(further, i, who), tl.where(further, total, most)
    tl.store(over + run * frames + frame, most, mask=mask)
    tl.store(agent + run * frames + frame, who, mask=mask)


@triton.jit(do_not_specialize=["blocks", "each"])
def adam_step(
    p, g, m, v, factors, sizes, blocks, length, pitch, each, beta1, rest1, beta2, rest2, epsilon, BLOCK: tl.constexpr
):
    """Apply Adam to networks of ``length`` numbers, ``pitch`` apart in ``g``; ``each`` consecutive ones are one run's.

    ``sizes`` holds the learning rate divided by the first moment's bias correction, and the root of the second's.
    ``rest1`` and ``rest2``, 1 minus the betas, come from the host: a difference of float32 numbers would lose digits.
    """
    program = tl.program_id(0)
    network, at = (program // blocks).to(tl.int64), program % blocks * BLOCK + tl.arange(0, BLOCK)
    mask, place = at < length, network * length + at
    slope = tl.load(g + network * pitch + at, mask=mask, other=0.0) * tl.load(factors + network // each)
    mean = beta1 * tl.load(m + place, mask=mask, other=0.0) + rest1 * slope
    square = beta2 * tl.load(v + place, mask=mask, other=0.0) + rest2 * slope * slope
    tl.store(m + place, mean, mask=mask)
    tl.store(v + place, square, mask=mask)
    change = tl.load(sizes) * mean / (tl.sqrt(square) / tl.load(sizes + 1) + epsilon)
    tl.store(p + place, tl.load(p + place, mask=mask, other=0.0) - change, mask=mask)
