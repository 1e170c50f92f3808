"""The arithmetic limit of a CPU: pairs per second if it did nothing but their arithmetic.

A pair costs a subtraction and a multiply-add for each feature, a square root and an addition. This loop does exactly
these on lanes that never leave the registers. Its rate on all threads is the limit for a real kernel, which also has to
load the agents.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from graphsnd.kernels.cpu.loops import EUCLIDEAN, LANES, apart, four, jit, put, root, spread

STEPS = 1 << 20  # over features: some milliseconds


@jit
def arithmetic(a, steps, fours, out):
    """Fill ``out[lane]`` with the sum over steps of the distances between a lane and a point that moves."""
    x, quarter, acc = four(a, 0), spread(np.float32(0.25)), spread(np.float32(0))
    for k in range(steps):
        # The point depends on the step, so no square root can be moved out of the loop; the sums are the result.
        b = spread(np.float32(k) * np.float32(0.001))
        t = apart(EUCLIDEAN, x, (b, b, b, b))
        for _ in range(fours - 1):
            b = b + quarter
            t += apart(EUCLIDEAN, x, (b, b, b, b))
        acc += root(t)
    put(out, 0, acc)


class Limit:
    """The loop on every thread that torch uses on a CPU, ready to be timed."""

    def __init__(self, device: torch.device, features: int = 4, *, steps: int | None = None) -> None:
        self.fours = -(-features // 4)
        self.steps = steps or STEPS // self.fours
        self.threads = torch.get_num_threads()
        self.pairs = self.steps * LANES * self.threads
        self._lanes = np.random.default_rng(0).random((4, LANES), dtype=np.float32)
        self._pool = ThreadPoolExecutor(self.threads)

    def __call__(self) -> torch.Tensor:
        """Return the sums of every thread, ``[threads, lanes]``."""
        out = np.empty((self.threads, LANES), np.float32)
        list(self._pool.map(lambda row: arithmetic(self._lanes, self.steps, self.fours, row), out))
        return torch.from_numpy(out)
