"""Proximal policy optimisation: advantages and the clipped loss, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.errors import check_number, check_shape


def compute_gae(
    rewards: Tensor,
    values: Tensor,
    final_values: Tensor,
    terminated: Tensor,
    done: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
) -> Tensor:
    r"""Return generalised advantage estimates.

    .. math:: \delta_t = r_t + \gamma V'_{t+1} - V_t, \qquad A_t = \delta_t + \gamma \lambda \, [\text{not done}_t] \,
        A_{t+1}

    V' is 0 where the task ended. Where an episode was merely truncated, by its time limit or by the end of the rollout,
    the return would have gone on and V' is the critic's value of the last observation of that episode, not of the first
    one of a new episode.

    Args:
        rewards: ``[runs, steps, environments, agents]``.
        values: ``[runs, steps + 1, environments, agents]``, of observations before every step and at the end.
        final_values: ``[runs, steps, environments, agents]``, of observations after the step; read where done.
        terminated: Bool ``[runs, steps, environments]``.
        done: Bool ``[runs, steps, environments]``, terminated or truncated.
        gamma: Discount.
        gae_lambda: 0 trusts the critic, 1 trusts the returns.

    Returns:
        ``[runs, steps, environments, agents]``.

    Example:
        >>> one, flag = torch.ones(1, 2, 1, 1), torch.zeros(1, 2, 1, dtype=torch.bool)
        >>> compute_gae(one, torch.zeros(1, 3, 1, 1), one, flag, flag, gamma=0.5, gae_lambda=1.0).flatten()
        tensor([1.5000, 1.0000])
    """
    for name, value in (("gamma", gamma), ("gae_lambda", gae_lambda)):
        check_number(name, value, low=0, high=1)
    check_shape("rewards", rewards, ("runs", "steps", "environments", "agents"), dtype="floating")
    check_shape("values", values, (len(rewards), rewards.shape[1] + 1, *rewards.shape[2:]), dtype="floating")
    check_shape("final_values", final_values, rewards.shape, dtype="floating")
    check_shape("terminated", terminated, rewards.shape[:3], dtype="bool")
    check_shape("done", done, rewards.shape[:3], dtype="bool")
    ended = done.unsqueeze(-1)
    after = torch.where(ended, final_values, values[:, 1:])
    after = torch.where(terminated.unsqueeze(-1), 0.0, after)
    advantages = torch.add(rewards, after, alpha=gamma).sub_(values[:, :-1])
    decay = (~ended).to(advantages.dtype) * (gamma * gae_lambda)
    for t in range(advantages.shape[1] - 2, -1, -1):
        advantages[:, t].addcmul_(decay[:, t].expand_as(advantages[:, t]), advantages[:, t + 1])
    return advantages


def normalise(advantages: Tensor) -> Tensor:
    """Return advantages with mean 0 and standard deviation 1 over steps and environments, per run and agent.

    Example:
        >>> normalise(torch.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([-1.1619, -0.3873,  0.3873,  1.1619])
    """
    deviation, mean = torch.std_mean(advantages, dim=(1, 2), keepdim=True)
    return (advantages - mean) / deviation.clamp_min(1e-8)


def clipped_loss(log_ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    r"""Return PPO's clipped loss of every sample, :math:`-\min(\rho A, \mathrm{clip}(\rho, 1 \pm \epsilon) A)`.

    Args:
        log_ratio: Log-probability of the action now less that when it was drawn, :math:`\log \rho`.
        advantages: Advantages, in the same shape.
        clip: :math:`\epsilon`.

    Example:
        >>> clipped_loss(torch.tensor([1.5, 0.5]).log(), torch.tensor([1.0, -1.0]), 0.2)
        tensor([-1.2000,  0.8000])
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)
