"""Which engine runs stacked networks of some shape on some device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from graphsnd.teams.engine import PLAIN, Engine

WIDTHS = (64, 128, 256)
MOST_OUTPUTS = 8


def engine_for(sizes: Sequence[int], device: torch.device, *, bfloat16: bool) -> Engine:
    """The fused engine where there is one: two hidden layers of 64, 128 or 256 each, on a GPU with bfloat16.

    Args:
        sizes: Features of the input, the hidden layers and the output.
        device: Where the weights are.
        bfloat16: Whether rounding to bfloat16 is allowed.

    Example:
        >>> engine_for((18, 256, 256, 2), torch.device("cpu"), bfloat16=True) is PLAIN
        True
    """
    fits = len(sizes) == 4 and sizes[1] == sizes[2] and sizes[1] in WIDTHS and sizes[3] <= MOST_OUTPUTS
    if not (bfloat16 and fits and device.type == "cuda" and torch.cuda.is_bf16_supported()):
        return PLAIN
    from graphsnd.kernels.gpu.networks import Fused

    return Fused()
