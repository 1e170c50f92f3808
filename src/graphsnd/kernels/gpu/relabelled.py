"""Templates over random agents, other ones at each observation; see :mod:`graphsnd.kernels.relabelling`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsnd.behavior.points import Norm
from graphsnd.kernels import relabelling
from graphsnd.kernels.autograd import CODES, Parts
from graphsnd.kernels.gpu.launch import locate
from graphsnd.kernels.gpu.tiles import finish, in_range, scale_of, term

ROUNDS, GOLDEN = tl.constexpr(relabelling.ROUNDS), tl.constexpr(relabelling.GOLDEN)
FIRST, SECOND = tl.constexpr(relabelling.FIRST), tl.constexpr(relabelling.SECOND)

RESIDENT = 8192  # warps at a time, about what a GPU can hold, so that the chosen points stay in its cache


@triton.jit
def scramble(h):
    """Hash 32-bit words."""
    h = (h ^ (h >> 16)) * FIRST
    h = (h ^ (h >> 15)) * SECOND
    return h ^ (h >> 16)


@triton.jit
def agent_at(place, row, n, low, high):
    """The agents at places, uint32, of one observation."""
    n, high = n.to(tl.uint32), high.to(tl.uint32)
    key = scramble(scramble(tl.cast(row, tl.uint32) * GOLDEN + high) ^ low.to(tl.uint32))
    other_key = scramble(key ^ high)
    x = place.to(tl.uint32)
    for _ in range(ROUNDS):
        word = scramble(key)
        key += GOLDEN
        partner = ((word.to(tl.uint64) * n) >> 32).to(tl.uint32) - x
        partner = tl.minimum(partner, partner + n)  # of a negative number, which is a large one here
        top = (x * partner + scramble(word ^ other_key)) * FIRST
        top = (top ^ (top >> 15)) * SECOND
        x = tl.where((top >> 31) > 0, partner, x)
    return x.to(tl.int32)


@triton.jit(do_not_specialize=["n", "size", "low", "high"])
def list_agents(out, n, size, low, high, B: tl.constexpr):
    """``out[row, place]``."""
    row, place = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
    agent = agent_at(place, row, n, low, high)
    tl.store(out + row.to(tl.int64) * size + place, agent.to(tl.int64), mask=place < size)


@triton.jit
def visit(y, inverse, neighbours, size, degree, F: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr):
    """Sums over places of the distances to their neighbours, of the squares, and of the squared sums."""
    sums, squares, touching = tl.zeros((B,), tl.float64), tl.zeros((B,), tl.float64), tl.zeros((B,), tl.float64)
    for start in range(0, size, B):
        place = start + tl.arange(0, B)
        mask = place < size
        at = tl.zeros((B,), tl.float64)
        for k in range(degree):
            other = tl.load(neighbours + k * size + place, mask=mask, other=0)
            s = tl.zeros((B,), dtype=y.dtype.element_ty)
            for f in range(F):
                a = tl.load(y + f * size + place, mask=mask, other=0.0) * inverse
                b = tl.load(y + f * size + other, mask=mask, other=0.0) * inverse
                s += term(a, b, NORM)
            d = tl.where(mask, finish(s, NORM), 0.0).to(tl.float64)
            at += d
            squares += d * d
        sums += at
        touching += at * at
    return tl.sum(sums, axis=0), tl.sum(squares, axis=0), tl.sum(touching, axis=0)


@triton.jit(do_not_specialize=["jump", "rows", "n", "size", "degree", "low", "high"])
def regular_sums(
    x, jump, index, neighbours, scratch, out, rows, n, size, degree, low, high, stride_o, stride_n, stride_f,
    F: tl.constexpr, FX: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    """``out[row]``: the three sums over edges, programs taking turns.

    The points of the chosen agents go to ``scratch[program, f, place]`` first. There neighbours on a ring are side by
    side, and an agent is gathered once, not once for each edge.
    """
    y = scratch + tl.program_id(0).to(tl.int64) * F * size
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        base = x + tl.load(index + row).to(tl.int64) * stride_o
        for start in range(0, size, B):
            place = start + tl.arange(0, B)
            agent = agent_at(place, row, n, low, high)
            for f in range(F):
                at = base + agent * stride_n + f * stride_f + tl.where(f < FX, 0, jump)
                tl.store(y + f * size + place, tl.load(at, mask=place < size, other=0.0), mask=place < size)
        tl.debug_barrier()
        sums, squares, touching = visit(y, 1.0, neighbours, size, degree, F, NORM, B)
        if NORM == 0:
            if not in_range(sums / size / degree):
                scale = scale_of(y, size, 1, size, 0, F, B)
                sums, squares, touching = visit(y, 1.0 / scale, neighbours, size, degree, F, NORM, B)
                wide = scale.to(tl.float64)
                sums, squares, touching = sums * wide, squares * wide * wide, touching * wide * wide
        at_row = out + row * 3
        tl.store(at_row, sums / 2)  # each edge was visited from both ends
        tl.store(at_row + 1, squares / 2)
        tl.store(at_row + 2, touching)
        tl.debug_barrier()


def agents(n: int, size: int, count: int, seed: int, device: torch.device) -> Tensor:
    """See :func:`graphsnd.kernels.relabelling.relabel`."""
    out = torch.empty(count, size, dtype=torch.int64, device=device)
    block, warps = _block(size)
    if out.numel():
        low, high = _signed(seed)
        list_agents[(count, triton.cdiv(size, block))](out, n, size, low, high, block, num_warps=warps)
    return out


def sums(parts: Parts, norm: Norm, index: Tensor, neighbours: Tensor, seed: int) -> Tensor:
    """See :func:`graphsnd.kernels.relabelling.regular_sums`."""
    x, jump, fx, f = locate(parts)
    degree, size = neighbours.shape
    out = torch.empty(len(index), 3, dtype=torch.float64, device=x.device)
    block, warps = _block(size)
    programs = min(len(index), RESIDENT // warps)
    scratch = torch.empty(programs, f, size, dtype=x.dtype, device=x.device)
    regular_sums[(programs,)](
        x, jump, index, neighbours, scratch, out, len(index), x.shape[1], size, degree, *_signed(seed), *x.stride(),
        f, fx, CODES[norm], block, num_warps=warps,
    )  # fmt: skip
    return out


def _block(size: int) -> tuple[int, int]:
    """Places at a time, and warps."""
    if size > 4096:
        return 2048, 16
    block = min(512, max(16, triton.next_power_of_2(size)))
    return block, max(1, block // 128)


def _signed(seed: int) -> tuple[int, int]:
    """Both words of a seed, as numbers of int32."""
    return tuple((word & relabelling.WORD ^ 1 << 31) - (1 << 31) for word in (seed, seed >> 32))  # type: ignore[return-value]
