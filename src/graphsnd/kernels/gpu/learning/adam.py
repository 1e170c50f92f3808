"""Adam on stacked networks whose gradients are cut run by run, in one pass over parameters and moments."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
from torch import Tensor

from graphsnd.kernels.gpu.learning import programs

BLOCK = 2048


def adam(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    moments: Sequence[tuple[Tensor, Tensor]],
    factors: Tensor,
    steps: Tensor,
    *,
    learning_rate: float,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """One step, in place.

    Args:
        parameters: ``[runs, networks, ...]`` each, float32 and contiguous.
        gradients: Of the same shapes; each network's numbers next to each other, or it is copied.
        moments: Of the same shapes, first and second, contiguous.
        factors: ``[runs]``, on the gradients.
        steps: How many steps were done, this one counted; a number on the device.
        learning_rate: Of Adam.
        betas: Of Adam.
        epsilon: Of Adam.
    """
    first, second = (1 - beta ** steps.double() for beta in betas)
    sizes = torch.stack([learning_rate / first, second.sqrt()]).float()
    weights = [part for beta in betas for part in (beta, 1 - beta)]
    for parameter, gradient, (mean, square) in zip(parameters, gradients, moments, strict=True):
        runs, each = parameter.shape[:2]
        given = gradient if _pitched(gradient) else gradient.contiguous()
        length, pitch = parameter[0, 0].numel(), given.stride(1 if each > 1 else 0)
        blocks = triton.cdiv(length, BLOCK)
        programs.adam_step[(runs * each * blocks,)](
            parameter, given, mean, square, factors, sizes, blocks, length, pitch, each, *weights, epsilon, BLOCK=BLOCK
        )


def _pitched(gradient: Tensor) -> bool:
    """Whether networks follow each other at equal distances, each one's numbers next to each other."""
    runs, each = gradient.shape[:2]
    even = runs == 1 or each == 1 or gradient.stride(0) == each * gradient.stride(1)
    return even and gradient[0, 0].is_contiguous()
