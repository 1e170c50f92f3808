"""GPU programs of training: stacked networks, the PPO loss and Adam, each a drop-in for its plain-torch reference.

Only :func:`choose_engine` is imported here. The other modules need Triton and are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from graphsnd.kernels.dispatch import available
from graphsnd.teams.engine import PLAIN, Engine

WIDTHS = (64, 128, 256)
MAX_OUTPUTS = 8
SHARED_MEMORY = {False: 112 * 1024, True: 192 * 1024}  # bytes per program of the widest networks; with TF32


def choose_engine(
    sizes: Sequence[Sequence[int]], device: torch.device, *, bfloat16: bool, tf32: bool = False
) -> Engine:
    """Return the fused engine where it can run all the given networks, else plain torch.

    The fused engine needs two hidden layers of 64, 128 or 256 units, at most 8 outputs, Triton, and a GPU with
    bfloat16. A tile of the widest networks must fit into shared memory: that of an A100 or H100 is enough for bfloat16,
    TF32 needs that of an H100.

    Args:
        sizes: Features of the input, the hidden layers and the output, for each kind of network. All kinds share
            prepared observations, so there is one engine for all.
        device: Device of the weights.
        bfloat16: Whether rounding to bfloat16 is allowed.
        tf32: Whether rounding to TF32 is allowed, if rounding to bfloat16 is not.

    Example:
        >>> choose_engine([(18, 256, 256, 2)], torch.device("cpu"), bfloat16=True) is PLAIN
        True
    """
    allowed = (bfloat16 or tf32) and device.type == "cuda" and all(map(_fits, sizes))
    if not (allowed and _is_supported(device, SHARED_MEMORY[not bfloat16])):
        return PLAIN
    from graphsnd.rl.fused.engine import Fused

    return Fused(torch.bfloat16 if bfloat16 else torch.float32)


def _fits(sizes: Sequence[int]) -> bool:
    return len(sizes) == 4 and sizes[1] == sizes[2] and sizes[1] in WIDTHS and sizes[3] <= MAX_OUTPUTS


def _is_supported(device: torch.device, memory: int) -> bool:
    if available()["gpu"] is not None or torch.version.hip is not None:
        return False
    card = torch.cuda.get_device_properties(device)
    return card.major >= 8 and getattr(card, "shared_memory_per_block_optin", 0) >= memory
