"""The arithmetic limit of a CPU: pairs per second if it did nothing but their arithmetic.

A pair costs a subtraction and a multiply-add for each feature, a square root and an addition. This loop does exactly
these on 64 lanes that never leave the registers and the first-level cache, four features of four pairs at a time: what
it reaches on all threads is the limit that a real kernel, which also has to fetch the agents, is compared with.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from graphsnd.kernels.cpu.loops import jit

LANES = 64
STEPS = 400_000  # over features: some milliseconds


@jit
def arithmetic(a, steps, fours, out):
    """Fill ``out[lane]`` with the sum over steps of the distances between ``a[:, lane]`` and four points that move.

    Of more than four features the root is that of the last four; squares of the others are added.
    """
    acc, rest = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    for k in range(steps):
        # The points depend on the step, so no square root can be moved out of the loop; the sums are the result.
        b = np.float32(k) * np.float32(0.001)
        c, d, e = b + np.float32(1), b + np.float32(2), b + np.float32(3)
        for _ in range(fours - 1):
            for q in range(LANES):
                rest[q] += square(a, q, b) + square(a, q, c) + square(a, q, d) + square(a, q, e)
            b, c, d, e = b + np.float32(0.25), c + np.float32(0.25), d + np.float32(0.25), e + np.float32(0.25)
        for q in range(LANES):
            acc[q] += np.sqrt(square(a, q, b)) + np.sqrt(square(a, q, c))
            acc[q] += np.sqrt(square(a, q, d)) + np.sqrt(square(a, q, e))
    out[:] = acc + rest


@jit
def square(a, q, b):
    """Return the squared distance of a lane from a point with equal features."""
    s, t, u, v = a[0, q] - b, a[1, q] - b, a[2, q] - b, a[3, q] - b
    return s * s + t * t + u * u + v * v


class Limit:
    """The loop on every thread that torch uses on a CPU, ready to be timed."""

    def __init__(self, device: torch.device, features: int = 4, *, steps: int | None = None) -> None:
        self.fours = -(-features // 4)
        self.steps = steps or STEPS // (4 * self.fours)
        self.threads = torch.get_num_threads()
        self.pairs = 4 * self.steps * LANES * self.threads
        self._lanes = np.random.default_rng(0).random((4, LANES), dtype=np.float32)
        self._pool = ThreadPoolExecutor(self.threads)

    def __call__(self) -> torch.Tensor:
        """The sums of every thread, ``[threads, lanes]``."""
        out = np.empty((self.threads, LANES), np.float32)
        list(self._pool.map(lambda row: arithmetic(self._lanes, self.steps, self.fours, row), out))
        return torch.from_numpy(out)
