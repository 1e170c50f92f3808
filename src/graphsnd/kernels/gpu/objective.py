"""PPO's clipped objective for policies that share a network, and who left the box: one Triton program each."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 256  # rows of a program


@triton.jit
def _tanh(x):
    """Good to a rounding step of 1."""
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _seen(common, deviations, actions, scale, shift, row, mask, a: tl.constexpr, A: tl.constexpr):
    """Of action a: before its squashing, the squashed part of the mean, the raw scale, the scale, and the residual."""
    edge = 1.0 - 1.1920928955078125e-07  # a rounding step
    action = tl.minimum(tl.maximum(tl.load(actions + row * A + a, mask=mask, other=0.0), -edge), edge)
    u = 0.5 * tl.log((1.0 + action) / (1.0 - action))
    shared = _tanh(tl.load(common + row * (2 * A) + a, mask=mask, other=0.0))
    loc = shared + scale * tl.load(deviations + row * A + a, mask=mask, other=0.0)
    raw = tl.load(common + row * (2 * A) + A + a, mask=mask, other=0.0) + shift
    sigma = _softplus(raw) + 0.01
    return u, shared, raw, sigma, (u - loc) / sigma


@triton.jit
def clipped(
    common, deviations, actions, before, advantages, scales, totals, d_common, d_deviations, rows, each, clip, shift,
    A: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Losses of a block of one run's rows, added up, and slopes at the outputs of both networks, row by row.

    A run has ``rows`` rows, ``each`` of which after each other belong to one agent and its scale.
    """
    run, inside = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = inside < rows
    row = run.to(tl.int64) * rows + inside
    scale = tl.load(scales + run * (rows // each) + inside // each, mask=mask, other=0.0)
    log_prob = -tl.load(before + row, mask=mask, other=0.0)
    for a in tl.static_range(A):
        u, shared, raw, sigma, z = _seen(common, deviations, actions, scale, shift, row, mask, a, A)
        squashing = 2.0 * (0.6931471805599453 - u - _softplus(-2.0 * u))  # log of the slope of tanh at u
        log_prob += -0.5 * z * z - tl.log(sigma) - 0.9189385332046727 - squashing
    ratio, advantage = tl.exp(log_prob), tl.load(advantages + row, mask=mask, other=0.0)
    free, cut = ratio * advantage, tl.minimum(tl.maximum(ratio, 1.0 - clip), 1.0 + clip) * advantage
    tl.store(totals + run * tl.num_programs(0) + tl.program_id(0), tl.sum(tl.where(mask, -tl.minimum(free, cut), 0.0)))
    weight = tl.where(free <= cut, -free, 0.0) / rows
    for a in tl.static_range(A):
        u, shared, raw, sigma, z = _seen(common, deviations, actions, scale, shift, row, mask, a, A)
        slope = weight * z / sigma
        tl.store(d_common + row * (2 * A) + a, slope * (1.0 - shared * shared), mask=mask)
        tl.store(d_common + row * (2 * A) + A + a, (slope * z - weight / sigma) / (1.0 + tl.exp(-raw)), mask=mask)
        tl.store(d_deviations + row * A + a, slope * scale, mask=mask)


@triton.jit
def furthest(common, deviations, scales, over, agent, agents, frames, A: tl.constexpr, BLOCK: tl.constexpr):
    """Squared distance from [-1, 1]^A of the mean that is furthest outside in each frame of a run, and whose it is."""
    run, frame = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = frame < frames
    most, who = tl.zeros((BLOCK,), dtype=tl.float32) - 1.0, tl.zeros((BLOCK,), dtype=tl.int64)
    for i in range(agents):
        row = (run.to(tl.int64) * agents + i) * frames + frame
        scale = tl.load(scales + run * agents + i)
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for a in tl.static_range(A):
            shared = _tanh(tl.load(common + row * (2 * A) + a, mask=mask, other=0.0))
            loc = shared + scale * tl.load(deviations + row * A + a, mask=mask, other=0.0)
            beyond = tl.maximum(tl.abs(loc) - 1.0, 0.0)
            total += beyond * beyond
        who = tl.where(total > most, i, who)
        most = tl.maximum(total, most)
    tl.store(over + run * frames + frame, most, mask=mask)
    tl.store(agent + run * frames + frame, who, mask=mask)


def losses(
    common: Tensor,
    deviations: Tensor,
    actions: Tensor,
    before: Tensor,
    advantages: Tensor,
    scale: Tensor,
    *,
    clip: float,
    shift: float,
) -> Tensor:
    """PPO's clipped objective of tanh-normal policies, mean over frames and agents.

    Args:
        common: Outputs of the shared network, ``[runs, agents, frames, 2 * actions]``, float32.
        deviations: ``[runs, agents, frames, actions]``.
        actions: The same shape.
        before: Log-probabilities when the actions were drawn, ``[runs, agents, frames]``.
        advantages: The same shape.
        scale: ``[runs]`` or ``[runs, agents]``; gets no gradient.
        clip: Of the ratio.
        shift: Added to raw scales before the softplus.

    Returns:
        ``[runs]``.
    """
    return Clipped.apply(common, deviations, actions, before, advantages, _of_agents(scale, deviations), clip, shift)


def outside(common: Tensor, deviations: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """By how much the means of each frame leave [-1, 1]: the largest squared distance, and which agent's it is.

    Args:
        common: As for :func:`losses`.
        deviations: As there.
        scale: As there.

    Returns:
        Float32 and int64, each ``[runs, frames]``.
    """
    runs, agents, frames, features = deviations.shape
    over = torch.empty(runs, frames, device=common.device)
    agent = torch.empty(runs, frames, dtype=torch.int64, device=common.device)
    block = BLOCK // 2
    furthest[(triton.cdiv(frames, block), runs)](
        common.contiguous(), deviations.contiguous(), _of_agents(scale, deviations), over, agent, agents, frames,
        A=features, BLOCK=block,
    )  # fmt: skip
    return over, agent


def _of_agents(scale: Tensor, deviations: Tensor) -> Tensor:
    """``[runs, agents]``, float32."""
    spread = scale.detach().view(*scale.shape, *[1] * (2 - scale.dim())).expand(deviations.shape[:2])
    return spread.to(torch.float32).contiguous()


class Clipped(torch.autograd.Function):
    """Losses ``[runs]``; slopes are made on the way, since all that they need is at hand."""

    @staticmethod
    def forward(  # noqa: D102
        ctx: Any,
        common: Tensor,
        deviations: Tensor,
        actions: Tensor,
        before: Tensor,
        advantages: Tensor,
        scales: Tensor,
        clip: float,
        shift: float,
    ) -> Tensor:
        runs, agents, frames, features = deviations.shape
        rows = agents * frames
        common, deviations = common.contiguous(), deviations.contiguous()
        slopes = torch.empty_like(common), torch.empty_like(deviations)
        totals = common.new_empty(runs, triton.cdiv(rows, BLOCK))
        clipped[(totals.shape[1], runs)](
            common, deviations, actions.contiguous(), before.contiguous(), advantages.contiguous(), scales, totals,
            *slopes, rows, frames, clip, shift, A=features, BLOCK=BLOCK,
        )  # fmt: skip
        ctx.save_for_backward(*slopes)
        return totals.sum(1) / rows

    @staticmethod
    def backward(ctx: Any, *found: Tensor) -> Any:  # noqa: D102
        weight = found[0].view(-1, 1, 1, 1)
        return *(slope * weight for slope in ctx.saved_tensors), None, None, None, None, None, None
