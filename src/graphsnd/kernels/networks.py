"""Which engine runs stacked networks of some shape on some device."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from graphsnd.kernels.dispatch import available
from graphsnd.teams.engine import PLAIN, Engine

WIDTHS = (64, 128, 256)
MOST_OUTPUTS = 8
SHARED_MEMORY = 104 * 1024  # bytes that a program of the widest networks takes


def engine_for(sizes: Sequence[Sequence[int]], device: torch.device, *, bfloat16: bool) -> Engine:
    """The fused engine where it can run all of some networks, else plain torch.

    It takes two hidden layers of 64, 128 or 256 each, at most 8 outputs, Triton, and a GPU with bfloat16 and the memory
    of an A100 or H100; smaller cards have too little for a tile of the widest networks.

    Args:
        sizes: For each kind of network, features of the input, the hidden layers and the output. They share what the
            engine makes of observations, so there is one engine for all.
        device: Where the weights are.
        bfloat16: Whether rounding to bfloat16 is allowed.

    Example:
        >>> engine_for([(18, 256, 256, 2)], torch.device("cpu"), bfloat16=True) is PLAIN
        True
    """
    if not (bfloat16 and device.type == "cuda" and all(map(_fits, sizes)) and _able(device)):
        return PLAIN
    from graphsnd.kernels.gpu.networks import Fused

    return Fused()


def _fits(sizes: Sequence[int]) -> bool:
    return len(sizes) == 4 and sizes[1] == sizes[2] and sizes[1] in WIDTHS and sizes[3] <= MOST_OUTPUTS


def _able(device: torch.device) -> bool:
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if available()["gpu"] is not None or torch.version.hip is not None or release < (2, 8):
        return False  # before 2.8 torch has no products of bfloat16 numbers with float32 results
    card = torch.cuda.get_device_properties(device)
    return card.major >= 8 and getattr(card, "shared_memory_per_block_optin", 0) >= SHARED_MEMORY
