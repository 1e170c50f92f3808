"""Partial shuffles, compiled."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(nogil=True, cache=True)
def bits(state):
    """The next state and 32 random bits (splitmix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, (z ^ (z >> np.uint64(31))) >> np.uint64(32)


@numba.njit(nogil=True, cache=True)
def shuffles(n, seed, out):
    """Fill every row of ``out`` with a uniformly random ordered subset of 0 .. n-1."""
    deck = np.arange(n)
    size = out.shape[1]
    swapped = np.empty(size, np.int64)
    state = np.uint64(seed)
    for row in range(out.shape[0]):
        for i in range(size):
            span = np.uint64(n - i)
            # A multiplication maps 32 bits to a range; the few values that would favour some agents are drawn again.
            least = (np.uint64(1 << 32) - span) % span
            while True:
                state, word = bits(state)
                product = word * span
                if (product & np.uint64(0xFFFFFFFF)) >= least:
                    break
            j = i + np.int64(product >> np.uint64(32))
            deck[i], deck[j] = deck[j], deck[i]
            swapped[i] = j
            out[row, i] = deck[i]
        for i in range(size):
            deck[swapped[i]] = swapped[i]
            deck[i] = i
