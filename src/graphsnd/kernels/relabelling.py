"""Which agents take the places of a template at each observation: a random permutation that is never listed.

Sorting random keys takes longer than the distances of a sparse template. Here an agent is computed from its place
alone, so a GPU kernel needs neither a sort nor a table. Swap-or-not (Hoang, Morris and Rogaway, 2012): in each round a
random pivot pairs place x with pivot - x modulo the agents, and a random bit of the pair swaps it or not. One round
puts an agent anywhere with probability 1/2. After 24 rounds the agents at two places, whose distance is measured, are
uniform to 1e-6 in total variation, and those at four, on which variances depend, to 1e-5.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.kernels import dispatch

ROUNDS = 24
GOLDEN, FIRST, SECOND, WORD = 0x9E3779B9, 0x7FEB352D, 0x846CA68B, 0xFFFFFFFF


def relabel(n: int, size: int, count: int, seed: int, device: torch.device) -> Tensor:
    """``count`` independent, uniformly random ordered subsets of ``size`` of ``n`` agents: int64 ``[count, size]``.

    The same for the same seed on all devices.
    """
    if device.type == "cuda" and dispatch.available()["gpu"] is None:
        from graphsnd.kernels.gpu import relabelled

        return relabelled.agents(n, size, count, seed, device)
    return reference(n, size, count, seed, device)


def reference(n: int, size: int, count: int, seed: int, device: torch.device) -> Tensor:
    """The same in plain torch, 32-bit words in int64."""
    row = torch.arange(count, device=device).unsqueeze(1)
    low, high = seed & WORD, seed >> 32
    key = scramble(scramble(row * GOLDEN + high & WORD) ^ low)
    other_key = scramble(key ^ high)
    x = torch.arange(size, device=device).expand(count, size)
    for turn in range(ROUNDS):
        word = scramble(key + turn * GOLDEN & WORD)
        partner = ((word * n >> 32) - x) % n
        top = (x * partner + scramble(word ^ other_key)) * FIRST & WORD  # the same from both
        top = (top ^ top >> 15) * SECOND & WORD
        x = torch.where(top >> 31 > 0, partner, x)
    return x


def scramble(h: Tensor) -> Tensor:
    """Hash 32-bit words, so that each bit depends on all."""
    h = (h ^ h >> 16) * FIRST & WORD
    h = (h ^ h >> 15) * SECOND & WORD
    return h ^ h >> 16
