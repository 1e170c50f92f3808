"""The arithmetic limit of a GPU: pairs per second if it did nothing but their arithmetic.

See :mod:`benchmarks.limit_cpu`: the same four subtractions, four multiply-adds, square root and addition, here
on 1024 lanes in the registers of every program.
"""

import torch
import triton
import triton.language as tl

LANES = 1024
STEPS = 20_000
PROGRAMS = 16  # for each multiprocessor


@triton.jit
def arithmetic(out, steps, LANES: tl.constexpr):
    """``out[program]``: sum over lanes and steps of the distance to a point that moves with the step."""
    lane = tl.arange(0, LANES).to(tl.float32) * 0.001
    a0, a1, a2, a3 = lane, lane + 0.25, lane + 0.5, lane + 0.75
    acc = tl.zeros((LANES,), dtype=tl.float32)
    for k in range(steps):
        b = k * 0.001
        s, t, u, v = a0 - b, a1 - b, a2 - b, a3 - b
        acc += tl.sqrt(s * s + t * t + u * u + v * v)
    tl.store(out + tl.program_id(0), tl.sum(acc, axis=0))


class Limit:
    """The kernel on the whole of a GPU, ready to be timed."""

    def __init__(self, device: torch.device, steps: int = STEPS, programs: int | None = None) -> None:
        if programs is None:
            programs = PROGRAMS * torch.cuda.get_device_properties(device).multi_processor_count
        self.steps = steps
        self.pairs = steps * LANES * programs
        self._out = torch.empty(programs, dtype=torch.float32, device=device)

    def __call__(self) -> torch.Tensor:
        """The sums of every program, ``[programs]``."""
        arithmetic[(len(self._out),)](self._out, self.steps, LANES, num_warps=4)
        return self._out
