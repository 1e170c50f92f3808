"""Copies between the host and a GPU."""

from __future__ import annotations

import torch
from torch import Tensor


def copy_without_waiting(part: Tensor, device: torch.device) -> Tensor:
    """Copy to a GPU from pinned memory, which does not wait for the device."""
    return part.pin_memory().to(device, non_blocking=True) if device.type == "cuda" and not part.is_cuda else part
