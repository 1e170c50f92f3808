"""Adam for stacked runs, with gradients clipped by the norm of each run or of each agent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.kernels.dispatch import available

BETAS = (0.9, 0.999)


class Adam:
    """Adam on some tensors, all of whose state is tensors.

    It works element by element and gradients are clipped per run or per agent, so stacked runs learn as they would
    alone. The number of steps is a tensor because captured work cannot count.

    Args:
        parameters: Each ``[runs, ...]``, or ``[runs, agents, ...]`` with ``per_agent``. Changed in place.
        learning_rate: Step size.
        anneal: Steps over which it falls to 0 along a line; 0 where it stays.
        max_norm: Gradient norm that is not exceeded, over all parameters together.
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
        # A tensor where it changes, because captured work cannot count.
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
        """Return the state, by reference."""
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
