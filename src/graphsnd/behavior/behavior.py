"""The contract of a behaviour: what every agent would do on every observation."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from graphsnd.behavior.points import Points
from graphsnd.errors import InputError, check_rank, shape_of


class Behavior(ABC):
    """Action distributions of ``n`` agents on the same observations.

    The first tensor a subclass takes has shape ``[..., agents, features]``. The leading dimensions are the
    observations; equation (1) pools them, so their order and grouping do not matter.

    SND compares agents on the *same* observations, and a tensor does not show whether that is so: outputs of a
    rollout, where each agent answered its own observation, have the same shape. :func:`graphsnd.evaluate` shows all
    observations to all policies; outputs on own observations belong into :func:`graphsnd.own_observations`.
    """

    def __init__(self, shape: torch.Size) -> None:
        """Take the shape ``[..., agents, features]``."""
        self.batch_shape = shape[:-2]  # how the observations are laid out
        self.agents = shape[-2]

    @abstractmethod
    def wasserstein_points(self) -> Points:
        """Embed for the 2-Wasserstein distance."""

    @property
    def observations(self) -> int:
        """Number of observations."""
        return self.batch_shape.numel()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(agents={self.agents}, observations={self.observations})"


def check_layout(name: str, tensor: torch.Tensor, trailing: str) -> torch.Tensor:
    """Return a tensor or array as a tensor, or raise unless it is floating, has an agents axis, and is not empty.

    Args:
        name: Argument name for the message.
        tensor: Shape ``[..., agents, features]``.
        trailing: The symbolic shape for the message.
    """
    tensor = check_rank(name, tensor, 2, trailing, fix="The agents axis comes before the last one.")
    if not tensor.is_floating_point():
        # Cast to float, indices of discrete actions would be compared as if action 3 were nearer to 2 than to 0.
        discrete = "For discrete actions pass their probabilities: graphsnd.Categorical(probs=...) or (logits=...)."
        fix = discrete if name == "actions" else f"Use {name}.float()."
        raise InputError(name, "to have a floating dtype", tensor.dtype, fix)
    if tensor.shape[-1] == 0 or tensor.shape[-2] == 0:
        raise InputError(name, f"with shape {trailing} and no empty axis", shape_of(tensor))
    if tensor.shape[:-2].numel() == 0:
        raise InputError(name, "to hold at least one observation", shape_of(tensor), "Collect a rollout first.")
    return tensor


def broadcast(name: str, tensor: torch.Tensor, shape: torch.Size | tuple[int, ...], target: str) -> torch.Tensor:
    """Expand ``tensor`` to ``shape``, or raise an error that calls that shape ``target``."""
    try:
        return tensor.expand(shape)
    except RuntimeError:
        raise InputError(name, f"to broadcast to {target}", shape_of(tensor)) from None


def flatten(tensor: torch.Tensor) -> torch.Tensor:
    """Pool the observations: ``[..., agents, features]`` to ``[observations, agents, features]``.

    Half precision is widened to float32 here, because a mean over thousands of observations is not
    representable in it; float32 and float64 pass through.
    """
    flat = tensor.reshape(-1, tensor.shape[-2], tensor.shape[-1])
    return flat.float() if flat.dtype in (torch.float16, torch.bfloat16) else flat
