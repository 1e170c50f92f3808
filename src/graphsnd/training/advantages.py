"""Generalised advantage estimation."""

from __future__ import annotations

import torch
from torch import Tensor


def advantages(
    rewards: Tensor,
    values: Tensor,
    final_values: Tensor,
    terminated: Tensor,
    done: Tensor,
    *,
    gamma: float,
    gae_lambda: float,
) -> Tensor:
    r"""How much better than expected every action turned out.

    .. math:: \delta_t = r_t + \gamma V'_{t+1} - V_t, \qquad A_t = \delta_t + \gamma \lambda \, [\text{not done}_t] \,
        A_{t+1}

    V' is 0 where the task ended. Where an episode was merely cut, by its time limit or by the end of the rollout, the
    return would have gone on and V' is the critic's value of what was seen last in that episode, not of what a new
    episode begins with.

    Args:
        rewards: ``[runs, steps, environments, agents]``.
        values: ``[runs, steps + 1, environments, agents]``, of what was seen before every step and at the end.
        final_values: ``[runs, steps, environments, agents]``, of what was seen after the step; read where done.
        terminated: Bool ``[runs, steps, environments]``.
        done: Bool ``[runs, steps, environments]``, terminated or cut.
        gamma: Discount.
        gae_lambda: 0 trusts the critic, 1 trusts the returns.

    Returns:
        ``[runs, steps, environments, agents]``.

    Example:
        >>> one, flag = torch.ones(1, 2, 1, 1), torch.zeros(1, 2, 1, dtype=torch.bool)
        >>> advantages(one, torch.zeros(1, 3, 1, 1), one, flag, flag, gamma=0.5, gae_lambda=1.0).flatten()
        tensor([1.5000, 1.0000])
    """
    ended = done.unsqueeze(-1)
    after = torch.where(ended, final_values, values[:, 1:])
    after = torch.where(terminated.unsqueeze(-1), 0.0, after)
    found = torch.add(rewards, after, alpha=gamma).sub_(values[:, :-1])
    going_on = (~ended).to(found.dtype) * (gamma * gae_lambda)
    for t in range(found.shape[1] - 2, -1, -1):
        found[:, t].addcmul_(going_on[:, t].expand_as(found[:, t]), found[:, t + 1])
    return found


def normalise(found: Tensor) -> Tensor:
    """Mean 0 and standard deviation 1 over steps and environments, for every run and agent by itself.

    Example:
        >>> normalise(torch.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([-1.1619, -0.3873,  0.3873,  1.1619])
    """
    deviation, mean = torch.std_mean(found, dim=(1, 2), keepdim=True)
    return (found - mean) / deviation.clamp_min(1e-8)
