"""The arithmetic limit of a CPU: pairs per second if it did nothing but their arithmetic.

A pair costs a subtraction and a multiply-add for each feature, a square root and an addition. This loop does exactly
these on 64 lanes that never leave the registers and the first-level cache, features four at a time: what it reaches on
all threads is the limit that a real kernel, which also has to fetch the agents, is compared with.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from graphsnd.kernels.cpu.loops import LANES, jit

STEPS = 1_600_000  # over features: a few hundredths of a second


@jit
def arithmetic(a, steps, fours, out):
    """Fill ``out[lane]`` with the sum over steps of the distance between ``a[:, lane]`` and a point that moves.

    Of more than four features the root is that of the last four; squares of the others are added.
    """
    acc, rest = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    for k in range(steps):
        # The point depends on the step, so no square root can be moved out of the loop; the sums are the result.
        b = np.float32(k) * np.float32(0.001)
        for _ in range(fours - 1):
            for q in range(LANES):
                s, t, u, v = a[0, q] - b, a[1, q] - b, a[2, q] - b, a[3, q] - b
                rest[q] += s * s + t * t + u * u + v * v
            b += np.float32(0.25)
        for q in range(LANES):
            s, t, u, v = a[0, q] - b, a[1, q] - b, a[2, q] - b, a[3, q] - b
            acc[q] += np.sqrt(s * s + t * t + u * u + v * v)
    out[:] = acc + rest


class Limit:
    """The loop on every thread that torch uses on a CPU, ready to be timed."""

    def __init__(self, device: torch.device, features: int = 4, *, steps: int | None = None) -> None:
        self.fours = -(-features // 4)
        self.steps = steps or STEPS // (4 * self.fours)
        self.threads = torch.get_num_threads()
        self.pairs = self.steps * LANES * self.threads
        self._lanes = np.random.default_rng(0).random((4, LANES), dtype=np.float32)
        self._pool = ThreadPoolExecutor(self.threads)

    def __call__(self) -> torch.Tensor:
        """The sums of every thread, ``[threads, lanes]``."""
        out = np.empty((self.threads, LANES), np.float32)
        list(self._pool.map(lambda row: arithmetic(self._lanes, self.steps, self.fours, row), out))
        return torch.from_numpy(out)
