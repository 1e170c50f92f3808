"""The PPO loss of controlled policies, the largest overflow of their means, and Adam: one program each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd.kernels.gpu.ahead import launch
from graphsnd.rl.fused import programs
from graphsnd.teams.heads import SCALE_FLOOR, SCALE_SHIFT

BLOCK = 256  # rows per program
ADAM_BLOCK = 2048  # numbers per program


def clipped_losses(
    common: Tensor, deviations: Tensor, actions: Tensor, before: Tensor, advantages: Tensor, scales: Tensor, clip: float
) -> Tensor:
    """Return the clipped PPO loss of tanh-normal policies, mean over samples and agents.

    Args:
        common: Outputs of the shared network, ``[runs, agents, samples, 2 * actions]``, float32.
        deviations: ``[runs, agents, samples, actions]``.
        actions: The same shape.
        before: Log-probabilities when the actions were drawn, ``[runs, agents, samples]``.
        advantages: The same shape.
        scales: ``[runs, agents]``; they get no gradient.
        clip: Largest change of the probability ratio that counts.

    Returns:
        ``[runs]``.
    """
    return ClippedLoss.apply(clip, common, deviations, actions, before, advantages, _to_float32(scales))


def largest_overflow(common: Tensor, deviations: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest squared distance of a mean from [-1, 1] in each sample, and the agent it belongs to.

    Args:
        common: Outputs of the shared network, ``[runs, agents, samples, 2 * actions]``, float32.
        deviations: ``[runs, agents, samples, actions]``.
        scales: ``[runs, agents]``.

    Returns:
        Float32 and int64, each ``[runs, samples]``.
    """
    runs, agents, samples, features = deviations.shape
    # Zeros, because these are used as indices even where the program is only compiled.
    over = torch.zeros(runs, samples, device=common.device)
    agent = torch.zeros(runs, samples, dtype=torch.int64, device=common.device)
    block = BLOCK // 2
    launch(
        programs.largest_overflow, (triton.cdiv(samples, block), runs),
        common.contiguous(), deviations.contiguous(), _to_float32(scales), over, agent, agents, samples,
        A=features, BLOCK=block,
    )  # fmt: skip
    return over, agent


def _to_float32(scales: Tensor) -> Tensor:
    return scales.detach().to(torch.float32).contiguous()


class ClippedLoss(torch.autograd.Function):
    """Losses ``[runs]``; the forward pass computes the gradients too, because it has all they need."""

    @staticmethod
    def forward(ctx: Any, clip: float, *parts: Tensor) -> Tensor:  # noqa: D102
        common, deviations, *rest = (part.contiguous() for part in parts)
        runs, agents, samples, features = deviations.shape
        rows = agents * samples
        slopes = torch.empty_like(common), torch.empty_like(deviations)
        totals = common.new_empty(runs, triton.cdiv(rows, BLOCK))
        launch(
            programs.clipped, (totals.shape[1], runs),
            common, deviations, *rest, totals, *slopes, rows, samples, clip, SCALE_SHIFT, SCALE_FLOOR,
            A=features, BLOCK=BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(*slopes)
        return totals.sum(1) / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes_of_losses: Tensor) -> Any:  # noqa: D102
        weight = slopes_of_losses[0].view(-1, 1, 1, 1)
        return None, *(slope * weight for slope in ctx.saved_tensors), None, None, None, None


def adam_step(
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    moments: Sequence[tuple[Tensor, Tensor]],
    factors: Tensor,
    steps: Tensor,
    *,
    learning_rate: float | Tensor,
    betas: tuple[float, float],
    epsilon: float,
) -> None:
    """Update the parameters and moments in place, in one pass.

    Args:
        parameters: ``[runs, networks, ...]`` each, float32 and contiguous.
        gradients: Gradients of the same shapes; copied unless each network's numbers are contiguous.
        moments: First and second moments of the same shapes, contiguous.
        factors: ``[runs]``, multiplied with the gradients.
        steps: Number of steps including this one, on the device.
        learning_rate: Adam's learning rate.
        betas: Adam's betas.
        epsilon: Adam's epsilon.
    """
    first, second = (1 - beta ** steps.double() for beta in betas)
    sizes = torch.stack([learning_rate / first, second.sqrt()]).float()
    weights = [part for beta in betas for part in (beta, 1 - beta)]
    for parameter, gradient, (mean, square) in zip(parameters, gradients, moments, strict=True):
        runs, each = parameter.shape[:2]
        given = gradient if _is_pitched(gradient) else gradient.contiguous()
        length, pitch = parameter[0, 0].numel(), given.stride(1 if each > 1 else 0)
        blocks = triton.cdiv(length, ADAM_BLOCK)
        launch(
            programs.adam_step, (runs * each * blocks,),
            parameter, given, mean, square, factors, sizes, blocks, length, pitch, each, *weights, epsilon,
            BLOCK=ADAM_BLOCK,
        )  # fmt: skip


def _is_pitched(gradient: Tensor) -> bool:
    """Return whether each network's numbers are contiguous, and networks lie at equal distances in memory."""
    runs, each = gradient.shape[:2]
    even = runs == 1 or each == 1 or gradient.stride(0) == each * gradient.stride(1)
    return even and gradient[0, 0].is_contiguous()
