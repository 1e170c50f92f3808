"""Sums whose bits do not depend on the number of threads.

On a CPU torch splits a long sum to a single number between its threads, and rounds where the parts meet. Here the
length alone decides the order. On a GPU the sums are torch's own, which no number of threads changes.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 1 << 14  # terms; torch adds fewer than 2**15 in one thread


def add_last(x: Tensor) -> Tensor:
    """Return the sum over the last dimension of ``[..., k]``, differentiable."""
    while x.shape[-1] > BLOCK and x.device.type == "cpu":
        whole = x.shape[-1] - x.shape[-1] % BLOCK
        # Each row of a block is summed by one thread, in the same way wherever it stands.
        parts = [x[..., :whole].unflatten(-1, (-1, BLOCK)).sum(dim=-1), x[..., whole:].sum(dim=-1, keepdim=True)]
        x = torch.cat(parts, dim=-1)
    return x.sum(dim=-1)


def mean_last(x: Tensor) -> Tensor:
    """Return the mean over the last dimension of ``[..., k]``, differentiable."""
    return add_last(x) / x.shape[-1]


def total(x: Tensor) -> Tensor:
    """Return the sum of all elements, differentiable."""
    return add_last(x.reshape(-1))


def mean(x: Tensor) -> Tensor:
    """Return the mean of all elements, differentiable."""
    return add_last(x.reshape(-1)) / x.numel()


def sample_variance(x: Tensor) -> Tensor:
    """Return the variance over the last dimension of ``[..., k]``, with divisor ``k - 1``; NaN for a single number."""
    return add_last((x - add_last(x).unsqueeze(-1) / x.shape[-1]).square()) / (x.shape[-1] - 1)
