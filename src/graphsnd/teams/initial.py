"""Initial weights for many networks at once, each a function of the generator alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def orthogonal(
    count: int, fan_in: int, fan_out: int, generator: torch.Generator, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Uniformly random matrices with orthonormal rows or columns, whichever are fewer; biases 0.

    The Q of a Gaussian matrix, with the signs of R's diagonal moved into it: without that step Q would not be uniform.

    Returns:
        Weights ``[count, fan_in, fan_out]`` and biases ``[count, 1, fan_out]``.

    Example:
        >>> weight, _ = orthogonal(2, 8, 3, torch.Generator().manual_seed(0), torch.float64)
        >>> torch.allclose(weight.mT @ weight, torch.eye(3).double())
        True
    """
    device = generator.device
    tall = (count, max(fan_in, fan_out), min(fan_in, fan_out))
    q, r = torch.linalg.qr(torch.randn(tall, generator=generator, dtype=dtype, device=device))
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    weight = q if fan_in >= fan_out else q.mT
    return weight.contiguous(), torch.zeros(count, 1, fan_out, dtype=dtype, device=device)


def linear(
    count: int, fan_in: int, fan_out: int, generator: torch.Generator, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """What ``torch.nn.Linear`` starts from: uniform in ±1/sqrt(fan_in), biases too.

    Returns:
        Weights ``[count, fan_in, fan_out]`` and biases ``[count, 1, fan_out]``.

    Example:
        >>> weight, bias = linear(2, 16, 3, torch.Generator().manual_seed(0), torch.float32)
        >>> bool(weight.abs().max() <= 0.25)
        True
    """
    limit = fan_in**-0.5
    weight = torch.empty(count, fan_in, fan_out, dtype=dtype, device=generator.device)
    bias = torch.empty(count, 1, fan_out, dtype=dtype, device=generator.device)
    return weight.uniform_(-limit, limit, generator=generator), bias.uniform_(-limit, limit, generator=generator)


INITIAL: dict[str, Callable[[int, int, int, torch.Generator, torch.dtype], tuple[Tensor, Tensor]]] = {
    "orthogonal": orthogonal,
    "linear": linear,
}
