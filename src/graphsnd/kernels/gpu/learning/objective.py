"""PPO's clipped objective for policies that share a network, and who left the box: one program each."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from graphsnd.kernels.gpu.learning import programs

BLOCK = 256  # rows of a program


class Constants(NamedTuple):
    """Of the objective: the standard deviation is ``softplus(raw + shift) + floor``."""

    clip: float  # of the ratio
    shift: float
    floor: float


def losses(
    common: Tensor,
    deviations: Tensor,
    actions: Tensor,
    before: Tensor,
    advantages: Tensor,
    scales: Tensor,
    constants: Constants,
) -> Tensor:
    """PPO's clipped objective of tanh-normal policies, mean over frames and agents.

    Args:
        common: Outputs of the shared network, ``[runs, agents, frames, 2 * actions]``, float32.
        deviations: ``[runs, agents, frames, actions]``.
        actions: The same shape.
        before: Log-probabilities when the actions were drawn, ``[runs, agents, frames]``.
        advantages: The same shape.
        scales: ``[runs, agents]``; get no gradient.
        constants: Of the objective.

    Returns:
        ``[runs]``.
    """
    return Clipped.apply(constants, common, deviations, actions, before, advantages, _rounded(scales))


def furthest(common: Tensor, deviations: Tensor, scales: Tensor) -> tuple[Tensor, Tensor]:
    """By how much the means of each frame leave [-1, 1]: the largest squared distance, and which agent's it is.

    Args:
        common: As for :func:`losses`.
        deviations: As there.
        scales: As there.

    Returns:
        Float32 and int64, each ``[runs, frames]``.
    """
    runs, agents, frames, features = deviations.shape
    over = torch.empty(runs, frames, device=common.device)
    agent = torch.empty(runs, frames, dtype=torch.int64, device=common.device)
    block = BLOCK // 2
    programs.furthest[(triton.cdiv(frames, block), runs)](
        common.contiguous(), deviations.contiguous(), _rounded(scales), over, agent, agents, frames,
        A=features, BLOCK=block,
    )  # fmt: skip
    return over, agent


def _rounded(scales: Tensor) -> Tensor:
    return scales.detach().to(torch.float32).contiguous()


class Clipped(torch.autograd.Function):
    """Losses ``[runs]``; slopes are made on the way, since all that they need is at hand."""

    @staticmethod
    def forward(ctx: Any, constants: Constants, *parts: Tensor) -> Tensor:  # noqa: D102
        common, deviations, *rest = (part.contiguous() for part in parts)
        runs, agents, frames, features = deviations.shape
        rows = agents * frames
        slopes = torch.empty_like(common), torch.empty_like(deviations)
        totals = common.new_empty(runs, triton.cdiv(rows, BLOCK))
        programs.clipped[(totals.shape[1], runs)](
            common, deviations, *rest, totals, *slopes, rows, frames, *constants, A=features, BLOCK=BLOCK
        )
        ctx.save_for_backward(*slopes)
        return totals.sum(1) / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *found: Tensor) -> Any:  # noqa: D102
        weight = found[0].view(-1, 1, 1, 1)
        return None, *(slope * weight for slope in ctx.saved_tensors), None, None, None, None
