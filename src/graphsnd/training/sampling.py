"""Actions from noise that was drawn before.

Noise for a whole rollout is one draw for each run. The loop over steps is then a function of tensors alone: it can be
captured, and the actions of a run do not depend on the runs beside it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.teams import ActionDistribution, CategoricalActions, CategoricalHead, Head, NormalActions
from graphsnd.teams import TanhNormalActions as Tanh
from graphsnd.worlds import Continuous, Discrete


def noise_shape(head: Head) -> tuple[int, ...]:
    """Return the shape of the noise of one action: one number per dimension, a single one when actions are discrete."""
    return () if isinstance(head, CategoricalHead) else (head.actions,)


def fill_noise(noise: Tensor, head: Head, generator: torch.Generator) -> None:
    """Draw in place: uniform where actions are discrete, normal elsewhere."""
    if isinstance(head, CategoricalHead):
        noise.uniform_(generator=generator)
    else:
        noise.normal_(generator=generator)


def act(distribution: ActionDistribution, noise: Tensor) -> Tensor:
    """Return the action that ``noise`` stands for.

    Args:
        distribution: Of the actions.
        noise: From :func:`fill_noise`, in the shape of an action, or of the batch when discrete.

    Returns:
        ``[..., actions]``, or int64 ``[...]``. It is not clipped to the world's range: the world does that itself, and
        the probability that PPO compares must be of the action that was drawn.

    Example:
        >>> act(NormalActions(torch.ones(2), torch.full((2,), 0.5)), torch.tensor([0.0, 2.0]))
        tensor([1., 2.])
    """
    if isinstance(distribution, NormalActions):
        return torch.addcmul(distribution.loc, distribution.scale, noise)
    if isinstance(distribution, Tanh):
        return Tanh._inside(torch.addcmul(distribution.loc, distribution.scale, noise).tanh_())
    if isinstance(distribution, CategoricalActions):
        # Inverse of the distribution function; the last bin takes what rounding leaves of the sum.
        steps = torch.softmax(distribution.logits, -1).cumsum(-1)[..., :-1]
        return (steps <= noise.unsqueeze(-1)).sum(-1)
    raise _unknown(distribution)


def likeliest(distribution: ActionDistribution) -> Tensor:
    """Return what an agent does when it does not explore: the mean, or the most probable action.

    Example:
        >>> likeliest(CategoricalActions(torch.tensor([[0.0, 2.0, 1.0]])))
        tensor([1])
    """
    if isinstance(distribution, NormalActions):
        return distribution.loc
    if isinstance(distribution, Tanh):
        return distribution.loc.tanh()
    if isinstance(distribution, CategoricalActions):
        return distribution.logits.argmax(-1)
    raise _unknown(distribution)


def to_world(actions: Tensor, space: Continuous | Discrete) -> Tensor:
    """Return actions of a policy, within [-1, 1], in the units of the world."""
    if isinstance(space, Discrete) or (space.low, space.high) == (-1.0, 1.0):
        return actions
    return actions * ((space.high - space.low) / 2) + (space.high + space.low) / 2


def _unknown(distribution: object) -> InputError:
    return InputError("distribution", "to be one of the teams' own", type(distribution).__name__)
