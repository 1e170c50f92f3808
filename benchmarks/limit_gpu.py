"""The arithmetic limit of a GPU: pairs per second if it did nothing but their arithmetic.

See :mod:`benchmarks.limit_cpu`: a subtraction and a multiply-add for each feature, a square root and an addition, here
on 1024 lanes in the registers of every program.
"""

import torch
import triton
import triton.language as tl

LANES = 1024
STEPS = 80_000  # steps times features
PROGRAMS = 16  # programs for each multiprocessor


@triton.jit
def arithmetic(out, steps, FEATURES: tl.constexpr, LANES: tl.constexpr):
    """``out[program]``: sum over lanes and steps of the distance to a point that moves with the step."""
    lane = tl.arange(0, LANES).to(tl.float32) * 0.001
    acc = tl.zeros((LANES,), dtype=tl.float32)
    for k in range(steps):
        t = lane - k * 0.001
        s = t * t
        for _ in tl.static_range(FEATURES - 1):
            t += 0.25
            s += t * t
        acc += tl.sqrt(s)
    tl.store(out + tl.program_id(0), tl.sum(acc, axis=0))


class Limit:
    """The kernel on the whole of a GPU, ready to be timed."""

    def __init__(
        self, device: torch.device, features: int = 4, *, steps: int | None = None, programs: int | None = None
    ) -> None:
        if programs is None:
            programs = PROGRAMS * torch.cuda.get_device_properties(device).multi_processor_count
        self.features = features
        self.steps = steps or STEPS // features
        self.pairs = self.steps * LANES * programs
        self._out = torch.empty(programs, dtype=torch.float32, device=device)

    def __call__(self) -> torch.Tensor:
        """Return the sums of every program, ``[programs]``."""
        arithmetic[(len(self._out),)](self._out, self.steps, self.features, LANES, num_warps=4)
        return self._out
