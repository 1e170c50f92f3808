"""Templates over random agents, other ones at each observation; see :mod:`graphsnd.kernels.relabelling`."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from graphsnd.kernels import relabelling

ROUNDS, GOLDEN = tl.constexpr(relabelling.ROUNDS), tl.constexpr(relabelling.GOLDEN)
FIRST, SECOND = tl.constexpr(relabelling.FIRST), tl.constexpr(relabelling.SECOND)


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


def agents(n: int, size: int, count: int, seed: int, device: torch.device) -> Tensor:
    """See :func:`graphsnd.kernels.relabelling.relabel`."""
    out = torch.empty(count, size, dtype=torch.int64, device=device)
    block, warps = _block(size)
    if out.numel():
        low, high = _signed(seed)
        list_agents[(count, triton.cdiv(size, block))](out, n, size, low, high, block, num_warps=warps)
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
