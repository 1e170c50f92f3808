"""The engine that computes all layers of stacked networks in one GPU program."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.rl.fused.networks import ROWS, STEP, round_rows, run_networks, take_rows
from graphsnd.rl.fused.programs import RELU, TANH
from graphsnd.rl.fused.tiling import Even, Sorted
from graphsnd.teams.engine import Engine, Tensors, copy_without_waiting

KINDS = {"tanh": TANH, "relu": RELU}


class Fused(Engine):
    """All layers in one program, products with float32 sums; only for two hidden layers of equal width.

    Weights stay float32 and are rounded at every call; gradients come back in float32. No gradient flows to inputs.

    Args:
        dtype: Type of inputs and hidden features: bfloat16, or float32 for products in TF32.
    """

    fused = True

    def __init__(self, dtype: torch.dtype = torch.bfloat16) -> None:
        self.dtype = dtype

    def prepare(self, inputs: Tensor) -> Tensor:
        """Return inputs rounded, and padded with zeros to a multiple of ``STEP`` features."""
        width = -(-inputs.shape[-1] // STEP) * STEP
        if inputs.dtype == self.dtype and inputs.shape[-1] == width:
            return inputs.contiguous()  # programs read rows one after the other
        return round_rows(inputs, width, self.dtype)

    def take_rows(self, inputs: Tensor, index: Tensor) -> Tensor:  # noqa: D102
        return take_rows(inputs, index)

    def run_all(self, inputs: Tensor, weights: Tensors, biases: Tensors, activation: str) -> Tensor:  # noqa: D102
        networks = len(weights[0])
        tiling = Even(networks, inputs.shape[1], networks // len(inputs))
        x = self.prepare(inputs).reshape(-1, -(-inputs.shape[-1] // STEP) * STEP)
        return run_networks(x, tiling, KINDS[activation], *_interleave(weights, biases))

    def run_requests(  # noqa: D102
        self, inputs: Tensor, networks: Tensor, rows: Tensor, weights: Tensors, biases: Tensors, activation: str
    ) -> Tensor:
        count, device = len(weights[0]), inputs.device
        # From pinned memory, so that the host does not wait.
        networks, rows = (copy_without_waiting(part, device) for part in (networks, rows))
        tiling = Sorted.sort(networks, rows, count, size=ROWS)
        outputs = run_networks(self.prepare(inputs), tiling, KINDS[activation], *_interleave(weights, biases))
        return outputs.index_select(0, tiling.slots).masked_fill(networks.unsqueeze(1) >= count, 0.0)


def _interleave(weights: Tensors, biases: Tensors) -> list[Tensor]:
    """Return weight, bias, weight, bias, ...; biases without the axis of rows."""
    return [part for pair in zip(weights, biases, strict=True) for part in (pair[0].contiguous(), pair[1].squeeze(1))]
