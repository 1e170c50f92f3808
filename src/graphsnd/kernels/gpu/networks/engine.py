"""An engine for stacked networks that takes rows through all layers on the chip."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.kernels.gpu.networks.autograd import ROWS, STEP, run, take
from graphsnd.kernels.gpu.networks.programs import RELU, TANH
from graphsnd.kernels.gpu.networks.tiling import Even, Sorted
from graphsnd.teams.engine import Engine

KINDS = {"tanh": TANH, "relu": RELU}


class Fused(Engine):
    """Products of bfloat16 numbers with float32 sums, all layers in one program; two hidden ones of equal width only.

    Weights stay float32 and are rounded at every call; gradients come back in float32. No gradient flows to inputs.
    """

    fused = True
    dtype = torch.bfloat16  # of inputs, hidden features and products

    def prepare(self, inputs: Tensor) -> Tensor:
        """Rounded to bfloat16, and padded with zeros to a width that is read without waste."""
        width = -(-inputs.shape[-1] // STEP) * STEP
        if inputs.dtype == self.dtype and inputs.shape[-1] == width:
            return inputs
        out = inputs.new_zeros(*inputs.shape[:-1], width, dtype=self.dtype)
        out[..., : inputs.shape[-1]] = inputs
        return out

    def take(self, inputs: Tensor, index: Tensor) -> Tensor:  # noqa: D102
        return take(inputs, index)

    def every(  # noqa: D102
        self, inputs: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], activation: str
    ) -> Tensor:
        networks = len(weights[0])
        tiling = Even(networks, inputs.shape[1], networks // len(inputs))
        x = self.prepare(inputs).reshape(-1, -(-inputs.shape[-1] // STEP) * STEP)
        return run(x, tiling, KINDS[activation], *_in_order(weights, biases))

    def some(  # noqa: D102
        self,
        inputs: Tensor,
        networks: Tensor,
        rows: Tensor,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        activation: str,
    ) -> Tensor:
        count, device = len(weights[0]), inputs.device
        tiling = Sorted.of(arrived(networks, device), arrived(rows, device), count, size=ROWS)
        found = run(self.prepare(inputs), tiling, KINDS[activation], *_in_order(weights, biases))
        left_out = arrived(networks, device).unsqueeze(1) >= count
        return found.index_select(0, tiling.slots).masked_fill(left_out, 0.0)


def arrived(part: Tensor, device: torch.device) -> Tensor:
    """The same on the device; from pinned memory a copy does not wait for it."""
    if part.device == device:
        return part
    return (part.pin_memory() if device.type == "cuda" else part).to(device, non_blocking=True)


def _in_order(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """Weight, bias, weight, bias, ...; biases without the axis of rows."""
    return [part for pair in zip(weights, biases, strict=True) for part in (pair[0].contiguous(), pair[1].squeeze(1))]
