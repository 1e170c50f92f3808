"""Learning: some epochs of minibatch steps on one rollout."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.training.advantages import advantages, normalise
from graphsnd.training.loss import Rollouts, Samples, losses
from graphsnd.training.policies import Policies
from graphsnd.training.rollout import Memory
from graphsnd.training.settings import Settings

FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Adam on one tensor, all of whose state is tensors.

    It works element by element, so stacked runs and agents learn as they would alone. The number of steps is a tensor
    because a captured program cannot count.

    Args:
        like: The parameters.

    Example:
        >>> weights = torch.zeros(3)
        >>> Adam(weights).step(weights, torch.tensor([1.0, -5.0, 0.0]), 0.1)
        >>> weights
        tensor([-0.1000,  0.1000,  0.0000])
    """

    def __init__(self, like: Tensor) -> None:
        self.mean, self.square = torch.zeros_like(like), torch.zeros_like(like)
        self.steps = torch.zeros((), dtype=torch.float64, device=like.device)

    def step(self, parameters: Tensor, gradient: Tensor, learning_rate: float) -> None:
        """Change ``parameters`` in place."""
        self.steps += 1
        self.mean.lerp_(gradient, 1 - FIRST)
        self.square.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        size = (1 - SECOND**self.steps).sqrt_() / (1 - FIRST**self.steps) * learning_rate
        # The bias of both moments goes into the step; epsilon is scaled with it, as the published form has it.
        scaled = self.square.sqrt().add_(EPSILON * (1 - SECOND**self.steps).sqrt_())
        parameters.sub_(self.mean.div(scaled).mul_(size))

    def tensors(self) -> dict[str, Tensor]:
        """The state, by reference."""
        return {"mean": self.mean, "square": self.square, "steps": self.steps}


def cut(gradient: Tensor, longest: float, *, joint: bool) -> Tensor:
    """Shorten gradients that are longer than ``longest``, in place.

    Args:
        gradient: ``[runs, agents, parameters]``.
        longest: The norm that is left alone.
        joint: Whether the norm is over all agents of a run, rather than each agent's own.

    Example:
        >>> cut(torch.tensor([[[3.0, 4.0], [0.3, 0.4]]]), 1.0, joint=False)
        tensor([[[0.6000, 0.8000],
                 [0.3000, 0.4000]]])
    """
    norms = torch.linalg.vector_norm(gradient, dim=(1, 2) if joint else 2, keepdim=True)
    return gradient.mul_(longest / norms.clamp_min(longest))


def rollouts_of(memory: Memory, settings: Settings) -> Rollouts:
    """A rollout as samples: steps and environments in one axis, advantages normalised."""
    found = advantages(
        memory.rewards,
        memory.values,
        memory.final_values,
        memory.terminated,
        memory.done,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
    )
    returns = found + memory.values[:, :-1]
    parts = (memory.observations, memory.actions, memory.log_probs, normalise(found), returns)
    return Rollouts(*(part.flatten(1, 2) for part in parts))


def update(policies: Policies, adam: Adam, memory: Memory, shuffles: Tensor, stats: Tensor, settings: Settings) -> None:
    """Learn from one rollout. A function of tensors alone, which are changed in place.

    Args:
        policies: Who learns.
        adam: Their optimiser.
        memory: The rollout.
        shuffles: int64 ``[runs, epochs, samples]``, a permutation for each run and epoch, the same for its agents.
        stats: ``[runs, 4]``, set to policy loss, value loss, entropy and KL, means over agents and steps.
        settings: The rest.
    """
    rollouts = rollouts_of(memory, settings)
    stats.zero_()
    batches = [part for epoch in shuffles.unbind(1) for part in epoch.split(settings.minibatch, 1)]
    for index in batches:
        gradient, found = gradients(policies, rollouts.take(index), settings)
        with torch.no_grad():
            cut(gradient, settings.max_gradient_norm, joint=settings.joint)
            adam.step(policies.flat, gradient, settings.learning_rate)
            stats += found.mean(1) / len(batches)


def gradients(policies: Policies, samples: Samples, settings: Settings) -> tuple[Tensor, Tensor]:
    """Derivatives of the losses, summed over runs and agents so that none weighs on another.

    With ``settings.joint`` the mean over agents, as in the paper's run. Runs are summed in any case.

    Returns:
        ``[runs, agents, parameters]``, and policy loss, value loss, entropy and KL as ``[runs, agents, 4]``.
    """
    share = 1 / policies.batch[1] if settings.joint else 1.0
    parts, numbers = [], []
    sizes = [len(block.flat) for block in policies.blocks]
    for block, some in zip(policies.blocks, samples.split(sizes), strict=True):
        with torch.enable_grad():
            found = losses(block, some, settings.clip)
            each = found.policy + settings.value_coefficient * found.value
            parts.append(block.gradient((each - settings.entropy_coefficient * found.entropy).sum() * share))
        numbers.append(torch.stack([found.policy, found.value, found.entropy, found.kl], -1).detach())
    return torch.cat(parts).view_as(policies.flat), torch.cat(numbers).view(*policies.batch, 4)
