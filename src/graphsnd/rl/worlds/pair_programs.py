"""All pairs of agents on a GPU, without a tensor of pairs: Triton programs that round like their torch versions.

A program takes some agents of one environment and loops over all agents of that environment in blocks. Launched with
``enable_fp_fusion=False``: flags depend on comparisons of distances that are rounded after every operation.
"""

import triton
import triton.language as tl


@triton.jit
def _place(positions, agents, blocks, BLOCK: tl.constexpr):
    """Return the environment's positions, and of this program's agents rows, numbers, which exist, and x and y."""
    environment = (tl.program_id(0) // blocks).to(tl.int64)
    i = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    others, mask = positions + environment * agents * 2, i < agents
    x, y = tl.load(others + 2 * i, mask=mask, other=0.0), tl.load(others + 2 * i + 1, mask=mask, other=0.0)
    return others, environment * agents + i, i[:, None], mask, x[:, None], y[:, None]


@triton.jit
def _read(others, begin, agents, OTHERS: tl.constexpr):
    """Return the numbers of a block of agents, which of them exist, and their x and y."""
    j = begin + tl.arange(0, OTHERS)
    x = tl.load(others + 2 * j, mask=j < agents, other=0.0)
    y = tl.load(others + 2 * j + 1, mask=j < agents, other=0.0)
    return j[None, :], (j < agents)[None, :], x[None, :], y[None, :]


@triton.jit(do_not_specialize=["agents", "blocks"])
def contact(
    positions, forces, agents, blocks, touching, margin, stiffness, coincident,
    TAIL: tl.constexpr, BLOCK: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """Sum of the forces of soft contact on every agent: :func:`graphsnd.rl.worlds.physics.contact_dense`."""
    others, place, i, mask, x, y = _place(positions, agents, blocks, BLOCK)  # noqa: RUF059
    fx, fy = tl.zeros((BLOCK,), dtype=tl.float32), tl.zeros((BLOCK,), dtype=tl.float32)
    for begin in range(0, agents, OTHERS):
        j, there, cx, cy = _read(others, begin, agents, OTHERS)  # noqa: RUF059
        dx, dy = x - cx, y - cy
        distance = tl.sqrt_rn(dx * dx + dy * dy)
        out = distance < coincident
        if not TAIL:
            out = out | (distance > touching)
        pushed = there & (out == 0)  # so that NaN pushes
        # Few blocks have a pair in contact, and most of the cost of a pair is its logarithms.
        if tl.max(tl.max(pushed.to(tl.int32), axis=1), axis=0) > 0:
            z = (touching - distance) / margin
            depth = (tl.maximum(z, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(z)))) * margin
            size = tl.where(pushed, stiffness * depth / tl.where(pushed, distance, 1.0), 0.0)
            fx += tl.sum(size * dx, axis=1)
            fy += tl.sum(size * dy, axis=1)
    tl.store(forces + 2 * place, fx, mask=mask)
    tl.store(forces + 2 * place + 1, fy, mask=mask)


@triton.jit(do_not_specialize=["agents", "blocks"])
def touches(positions, counts, agents, blocks, radius, near, BLOCK: tl.constexpr, OTHERS: tl.constexpr):
    """Number of other agents at most ``near`` away, rim to rim: :func:`graphsnd.rl.worlds.physics.count_contacts`."""
    others, place, i, mask, x, y = _place(positions, agents, blocks, BLOCK)
    count = tl.zeros((BLOCK,), dtype=tl.int32)
    for begin in range(0, agents, OTHERS):
        j, there, cx, cy = _read(others, begin, agents, OTHERS)
        dx, dy = x - cx, y - cy
        close = tl.sqrt_rn(dx * dx + dy * dy) - radius - radius <= near
        count += tl.sum((close & there & (j != i)).to(tl.int32), axis=1)
    tl.store(counts + place, count.to(tl.int64), mask=mask)


@triton.jit(do_not_specialize=["agents", "blocks"])
def rays(
    positions, directions, readings, agents, blocks, reach, half, far, radius, squared,
    RAYS: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, OTHERS: tl.constexpr,
):  # fmt: skip
    """Least distance at which each ray of an agent meets another one: ``Lidar.dense``, operation by operation.

    No ray meets an agent further away than ``reach``, so a block without a closer pair is skipped. ``half`` is the
    middle of a ray of length ``far``.
    """
    others, place, i, mask, x, y = _place(positions, agents, blocks, BLOCK)
    q = tl.arange(0, WIDTH)[None, :]
    least = tl.zeros((BLOCK, WIDTH), dtype=tl.float32) + far
    for begin in range(0, agents, OTHERS):
        j, there, cx, cy = _read(others, begin, agents, OTHERS)
        wx, wy = cx - x, cy - y
        seen = there & (j != i) & (wx * wx + wy * wy <= reach * reach)
        if tl.max(tl.max(seen.to(tl.int32), axis=1), axis=0) > 0:
            for ray in tl.static_range(RAYS):
                u, v = tl.load(directions + 2 * ray), tl.load(directions + 2 * ray + 1)
                mx, my = x + u * half, y + v * half
                back = (mx - cx) * u + (my - cy) * v
                gx, gy = mx - back * u, my - back * v
                ax, ay = cx - gx, cy - gy
                across = tl.sqrt_rn(ax * ax + ay * ay)
                hit = seen & (across < radius) & (wx * u + wy * v > 0)
                room = squared - across * across
                bx, by = gx - x, gy - y
                reading = tl.sqrt_rn(bx * bx + by * by) - tl.sqrt_rn(tl.where(room > 0, room, 1e-8))
                nearest = tl.min(tl.where(hit, reading, far), axis=1)
                least = tl.where(q == ray, tl.minimum(least, nearest[:, None]), least)
    tl.store(readings + place[:, None] * RAYS + q, least, mask=mask[:, None] & (q < RAYS))
