"""What a step of learning does element by element: Triton programs."""

import triton
import triton.language as tl


@triton.jit
def _tanh(x):
    """Good to a rounding step of 1."""
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _read_action(common, deviations, actions, scale, shift, floor, row, mask, a: tl.constexpr, A: tl.constexpr):
    """Of action a: before its squashing, the squashed part of the mean, the raw scale, the scale, and the residual."""
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
    """Losses of a block of one run's rows, added up, and slopes at the outputs of both networks, row by row.

    A run has ``rows`` rows, ``each`` of which after each other belong to one agent and its scale.
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
    """Squared distance from [-1, 1]^A of the mean that is furthest outside in each frame of a run, and whose it is."""
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
    """A network has ``length`` numbers here and ``pitch`` in ``g``; ``each`` networks after each other are one run's.

    ``sizes`` holds the learning rate over the first moment's correction, and the root of the second's. What a beta
    leaves of 1 comes from the host: a difference of float32 numbers would lose digits.
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
