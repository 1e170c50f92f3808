"""Proximal policy optimisation in plain torch: advantages, the clipped loss, and Adam with clipped gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.kernels.dispatch import available

BETAS = (0.9, 0.999)


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
        log_ratio: Log-probability of the action now minus the one when it was drawn, :math:`\log \rho`.
        advantages: Advantages, in the same shape.
        clip: :math:`\epsilon`.

    Example:
        >>> clipped_loss(torch.tensor([1.5, 0.5]).log(), torch.tensor([1.0, -1.0]), 0.2)
        tensor([-1.2000,  0.8000])
    """
    ratio = log_ratio.exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip, 1 + clip) * advantages)


class Adam:
    """Adam with all of its state in tensors.

    It works element by element and gradients are clipped per run or per agent, so stacked runs learn as they would
    alone. The number of steps is a tensor, because a captured CUDA graph cannot change a number in Python.

    Args:
        parameters: Each ``[runs, ...]``, or ``[runs, agents, ...]`` with ``per_agent``. Changed in place.
        learning_rate: Step size.
        anneal: Steps over which the learning rate falls linearly to 0; 0 for a constant one.
        max_norm: Largest gradient norm, over all parameters together.
        epsilon: Added to the root of the second moment.
        per_agent: Whether the norm is taken for each agent rather than over all agents of a run.

    Example:
        >>> weights = torch.zeros(1, 3)
        >>> Adam([weights], learning_rate=0.1, max_norm=10.0).step([torch.tensor([[1.0, -5.0, 0.0]])])
        >>> weights
        tensor([[-0.1000,  0.1000,  0.0000]])
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        learning_rate: float,
        max_norm: float,
        epsilon: float = 1e-8,
        per_agent: bool = False,
        anneal: int = 0,
    ) -> None:
        self.parameters, self.anneal = list(parameters), anneal
        self.learning_rate, self.max_norm, self.epsilon, self.per_agent = learning_rate, max_norm, epsilon, per_agent
        self.moments = [(torch.zeros_like(each), torch.zeros_like(each)) for each in self.parameters]
        first = self.parameters[0]
        self.steps = torch.zeros((), dtype=torch.float64, device=first.device)
        dense = all(map(_is_dense, self.parameters)) and not per_agent
        self.fused = first.is_cuda and dense and available()["gpu"] is None

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor]) -> None:
        """Clip the gradients and change the parameters in place."""
        # A tensor if it changes, because a captured CUDA graph keeps the value of a number.
        rate = self.learning_rate * (1 - self.steps / self.anneal).clamp_min(0) if self.anneal else self.learning_rate
        self.steps += 1
        if self.fused:
            from graphsnd.rl.fused.learning import adam_step

            factors = clip_factors(gradients, self.max_norm, per_agent=False)
            adam_step(
                self.parameters, gradients, self.moments, factors, self.steps,
                learning_rate=rate, betas=BETAS, epsilon=self.epsilon,
            )  # fmt: skip
            return
        corrections = [1 - beta**self.steps for beta in BETAS]
        root = corrections[1].sqrt()
        size = root / corrections[0] * rate
        clipped = clip_gradient(gradients, self.max_norm, per_agent=self.per_agent)
        for parameter, gradient, (mean, square) in zip(self.parameters, clipped, self.moments, strict=True):
            mean.lerp_(gradient, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            # The bias of both moments goes into the step; epsilon is scaled with it, as the published form has it.
            parameter.sub_(mean.div(square.sqrt().add_(self.epsilon * root)).mul_(size))

    def step_without_gradient(self) -> None:
        """Step with gradient 0: the moments decay and carry the parameters on; waits for the device."""
        if any(bool(square.any()) for _, square in self.moments):
            self.step([torch.zeros_like(each) for each in self.parameters])
        else:
            self.steps += 1  # all gradients so far were 0, and counting is all that such a step does

    def tensors(self) -> dict[str, Tensor]:
        """Return the state needed to resume, by reference."""
        state = {"steps": self.steps}
        for place, (mean, square) in enumerate(self.moments):
            state |= {f"{place}.mean": mean, f"{place}.square": square}
        return state


def clip_gradient(gradients: Sequence[Tensor], max_norm: float, *, per_agent: bool) -> list[Tensor]:
    """Scale gradients in place so that none is longer than ``max_norm``, and return them.

    Args:
        gradients: Each ``[runs, ...]``, or ``[runs, agents, ...]`` with ``per_agent``.
        max_norm: The largest norm, over all of them together.
        per_agent: Whether the norm is each agent's own rather than over all agents of a run.

    Example:
        >>> clip_gradient([torch.tensor([[[3.0, 4.0], [0.3, 0.4]]])], 1.0, per_agent=True)[0]
        tensor([[[0.6000, 0.8000],
                 [0.3000, 0.4000]]])
    """
    factors = clip_factors(gradients, max_norm, per_agent=per_agent)
    return [each.mul_(factors.view(*factors.shape, *[1] * (each.dim() - factors.dim()))) for each in gradients]


def clip_factors(gradients: Sequence[Tensor], max_norm: float, *, per_agent: bool) -> Tensor:
    """Return what :func:`clip_gradient` multiplies by: ``[runs]``, or ``[runs, agents]`` with ``per_agent``."""
    norms = torch.stack([_norms(each, 2 if per_agent else 1) for each in gradients])
    return max_norm / torch.linalg.vector_norm(norms, dim=0).clamp_min(max_norm)


def _norms(gradient: Tensor, first: int) -> Tensor:
    """Return norms over all dimensions from ``first`` on."""
    inner = tuple(range(first, gradient.dim()))
    return torch.linalg.vector_norm(gradient, dim=inner) if inner else gradient.abs()


def _is_dense(parameter: Tensor) -> bool:
    """Return whether these are stacked networks in the form that the fused step reads."""
    return parameter.dim() > 1 and parameter.dtype == torch.float32 and parameter.is_contiguous()
