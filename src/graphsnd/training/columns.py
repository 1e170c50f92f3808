"""Many small networks on CPU and GPU, with observations along the last axis.

A layer is ``W x + b`` for columns x, so the products of narrow heads have a long contiguous side. On a CPU that makes
them four times as fast as rows, in which :class:`~graphsnd.teams.StackedMLP` thinks.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

Layers = Sequence[tuple[Tensor, Tensor]]


def run(inputs: Tensor, layers: Layers, activation: str) -> Tensor:
    """Outputs of stacked networks.

    Args:
        inputs: ``[networks, in, rows]``.
        layers: Weights ``[networks, out, in]`` and biases ``[networks, out, 1]`` of every layer.
        activation: ``"tanh"`` or ``"relu"``, after every layer but the last.

    Returns:
        ``[networks, out, rows]``.

    Example:
        >>> run(torch.ones(1, 2, 5), [(torch.ones(1, 3, 2), torch.zeros(1, 3, 1))], "tanh").shape
        torch.Size([1, 3, 5])
    """
    return apply(inputs, fold(layers, activation), activation)


def apply(inputs: Tensor, folded: Layers, activation: str) -> Tensor:
    """:func:`run` with layers that went through :func:`fold`."""
    function = torch.relu_ if activation == "relu" else torch.sigmoid_ if _folds(inputs, activation) else torch.tanh_
    hidden = inputs
    for weight, bias in folded[:-1]:
        hidden = function(torch.baddbmm(bias, weight, hidden))
    return torch.baddbmm(folded[-1][1], folded[-1][0], hidden)


def fold(layers: Layers, activation: str) -> Layers:
    """On a CPU, the same network with tanh(x) = 2 sigmoid(2x) - 1 and both affine maps folded into the weights.

    There torch's sigmoid takes a third of the time of its tanh, which is a third of a training step. The fold costs
    digits of hidden features near 0, at the level of 1e-7; gradients flow through it as it stands.
    """
    if not _folds(layers[0][0], activation):
        return layers
    folded = []
    for place, (weight, bias) in enumerate(layers):
        outer = 1.0 if place == len(layers) - 1 else 2.0
        if place:
            folded.append((weight * (2 * outer), (bias - weight.sum(-1, keepdim=True)) * outer))
        else:
            folded.append((weight * outer, bias * outer))
    return folded


def _folds(tensor: Tensor, activation: str) -> bool:
    return activation == "tanh" and tensor.device.type == "cpu"


def columns(rows: Tensor) -> Tensor:
    """``[runs, rows, agents, features]`` as ``[runs * agents, features, rows]``, contiguous."""
    return rows.permute(0, 2, 3, 1).reshape(-1, rows.shape[-1], rows.shape[1])
