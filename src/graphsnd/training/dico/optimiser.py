"""Adam for stacked runs, with a gradient norm for each."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphsnd.kernels.dispatch import available


class Optimiser:
    """Adam, which works element by element, after gradients are cut run by run: runs learn as they would alone.

    Args:
        parameters: Each ``[runs, ...]``.
        learning_rate: Of Adam.
        epsilon: Of Adam.
        longest: Norm of a run's gradient that is left alone.

    Example:
        >>> weight = nn.Parameter(torch.zeros(2, 3))
        >>> Optimiser([weight], learning_rate=0.1, epsilon=1e-8, longest=5.0).step((weight * torch.ones(3)).sum())
        >>> weight.detach()[0]
        tensor([-0.1000, -0.1000, -0.1000])
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], *, learning_rate: float, epsilon: float, longest: float
    ) -> None:
        self.parameters, self.longest = list(parameters), longest
        on_gpu = self.parameters[0].is_cuda  # where a step may be recorded
        self.adam = torch.optim.Adam(self.parameters, lr=learning_rate, eps=epsilon, fused=True, capturable=on_gpu)
        for each in self.parameters:
            # Adam makes these in its first step; a checkpoint needs them before.
            zeros = {name: torch.zeros_like(each) for name in ("exp_avg", "exp_avg_sq")}
            self.adam.state[each] = {"step": torch.zeros((), device=each.device), **zeros}
        self.fused = on_gpu and all(map(_dense, self.parameters)) and available()["gpu"] is None

    def step(self, loss: Tensor) -> None:
        """Go against the gradient of ``loss``, a sum over runs."""
        gradients = torch.autograd.grad(loss, self.parameters)
        norms = torch.stack([_norms(each) for each in gradients])
        factors = self.longest / torch.linalg.vector_norm(norms, dim=0).clamp_min(self.longest)
        if self.fused:
            self._step(gradients, factors)
            return
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient * factors.view(-1, *[1] * (gradient.dim() - 1))
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    @torch.no_grad()
    def _step(self, gradients: Sequence[Tensor], factors: Tensor) -> None:
        """The same without a pass for the factors."""
        from graphsnd.kernels.gpu.learning import adam

        states = [self.adam.state[each] for each in self.parameters]
        self.rest()
        moments = [(state["exp_avg"], state["exp_avg_sq"]) for state in states]
        options = self.adam.param_groups[0]
        adam(
            self.parameters, gradients, moments, factors, states[0]["step"],
            learning_rate=options["lr"], betas=options["betas"], epsilon=options["eps"],
        )  # fmt: skip

    def idle(self) -> None:
        """A step without a gradient: Adam goes on in the direction it had."""
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)

    def rest(self) -> None:
        """Count a step, which is all that it does without a gradient while all moments are 0."""
        for each in self.parameters:
            self.adam.state[each]["step"] += 1

    def tensors(self) -> dict[str, Tensor]:
        """The state, by reference."""
        found: dict[str, Tensor] = {}
        for place, each in enumerate(self.parameters):
            found |= {f"{place}.{name}": part for name, part in self.adam.state[each].items()}
        return found

    def at_rest(self) -> bool:
        """Whether it has never had a gradient other than 0; waits for the device."""
        return not any(bool(self.adam.state[each]["exp_avg_sq"].any()) for each in self.parameters)


def _dense(parameter: Tensor) -> bool:
    """Whether it is stacked networks in the form that the fused step reads."""
    return parameter.dim() > 1 and parameter.dtype == torch.float32 and parameter.is_contiguous()


def _norms(gradient: Tensor) -> Tensor:
    """Of every run, ``[runs]``."""
    inner = tuple(range(1, gradient.dim()))
    return torch.linalg.vector_norm(gradient, dim=inner) if inner else gradient.abs()
