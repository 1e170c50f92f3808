"""Action distributions for training: actions from given noise, log-probability, entropy.

``torch.distributions`` draws from the global generator only, which is why these exist. Noise is an argument, so that a
rollout is a function of tensors alone and can be captured. All reduce the action axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from graphsnd.teams import CategoricalHead, GaussianHead, TanhNormalHead
from graphsnd.teams.heads import Head


class ActionDistribution(Protocol):
    """Methods of a distribution that policy-gradient training needs.

    Example:
        >>> actions = CategoricalActions(torch.tensor([[0.0, 9.0, 0.0]]))
        >>> actions.mode(), actions.act(torch.tensor([0.5])), actions.entropy() < 0.01
        (tensor([1]), tensor([1]), tensor([True]))
    """

    def act(self, noise: Tensor) -> Tensor:
        """Return the action that ``noise`` stands for.

        Args:
            noise: Standard normal, in the shape of an action; uniform in [0, 1), in the shape of the batch, when
                actions are discrete.

        Returns:
            ``[..., actions]``, or int64 ``[...]``. It is not clipped to the world's range: the world does that itself,
            and the probability that PPO compares must be of the action that was drawn.
        """

    def mode(self) -> Tensor:
        """Return what an agent does when it does not explore: the mean, or the most probable action."""

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-density (log-probability when discrete) of ``actions``, shape of the batch."""

    def entropy(self) -> Tensor:
        """Entropy in nats, shape of the batch."""


@dataclass(frozen=True, eq=False)
class NormalActions:
    """Independent Gaussians.

    Example:
        >>> NormalActions(torch.ones(2), torch.full((2,), 0.5)).act(torch.tensor([0.0, 2.0]))
        tensor([1., 2.])
        >>> NormalActions(torch.zeros(3, 2), torch.ones(3, 2)).log_prob(torch.zeros(3, 2))
        tensor([-1.8379, -1.8379, -1.8379])
    """

    loc: Tensor  # [..., actions]
    scale: Tensor  # [..., actions]

    def act(self, noise: Tensor) -> Tensor:
        """Shape ``[..., actions]``."""
        return torch.addcmul(self.loc, self.scale, noise)

    def mode(self) -> Tensor:
        """Shape ``[..., actions]``."""
        return self.loc

    def log_prob(self, actions: Tensor) -> Tensor:
        """Shape ``[...]``."""
        each = -0.5 * ((actions - self.loc) / self.scale).square() - self.scale.log()
        return each.sum(-1) - 0.5 * math.log(2 * math.pi) * self.loc.shape[-1]

    def entropy(self) -> Tensor:
        """Shape ``[...]``."""
        return self.scale.log().sum(-1) + 0.5 * math.log(2 * math.pi * math.e) * self.loc.shape[-1]


@dataclass(frozen=True, eq=False)
class TanhNormalActions(NormalActions):
    r"""Independent Gaussians through tanh.

    .. math:: \log p(a) = \log N(u) - \sum \log(1 - \tanh^2 u), \qquad u = \operatorname{artanh} a.

    Samples stay one rounding step inside (-1, 1): a float32 tanh reaches 1 at 9, where the inverse is infinite. The
    entropy is that of the Gaussian *before* the tanh: the squashed one has no closed form and is smaller.

    Example:
        >>> actions = TanhNormalActions(torch.zeros(2), torch.ones(2))
        >>> actions.mode(), bool(actions.act(torch.full((2,), 20.0)).max() < 1)
        (tensor([0., 0.]), True)
    """

    def act(self, noise: Tensor) -> Tensor:
        """Shape ``[..., actions]``, inside (-1, 1)."""
        return self._inside(super().act(noise).tanh_())

    def mode(self) -> Tensor:
        """Shape ``[..., actions]``."""
        return self.loc.tanh()

    def log_prob(self, actions: Tensor) -> Tensor:
        """Shape ``[...]``; actions at or beyond ±1 count as the nearest number inside."""
        before = torch.atanh(self._inside(actions))
        # 1 - tanh^2 u = 4 / (e^u + e^-u)^2, in a form that neither overflows nor cancels.
        slope = 2 * (math.log(2.0) - before - F.softplus(-2 * before))
        return super().log_prob(before) - slope.sum(-1)

    @staticmethod
    def _inside(actions: Tensor) -> Tensor:
        edge = 1 - torch.finfo(actions.dtype).eps
        return actions.clamp(-edge, edge)


@dataclass(frozen=True, eq=False)
class CategoricalActions:
    """Discrete actions, as int64 indices.

    Example:
        >>> CategoricalActions(torch.zeros(3, 4)).entropy().exp()
        tensor([4., 4., 4.])
        >>> CategoricalActions(torch.tensor([[0.0, 2.0, 1.0]])).mode()
        tensor([1])
    """

    logits: Tensor  # [..., actions], unnormalised

    def act(self, noise: Tensor) -> Tensor:
        """int64, shape ``[...]``."""
        # Inverse of the distribution function; the last bin takes what rounding leaves of the sum.
        steps = torch.softmax(self.logits, -1).cumsum(-1)[..., :-1]
        return (steps <= noise.unsqueeze(-1)).sum(-1)

    def mode(self) -> Tensor:
        """int64, shape ``[...]``."""
        return self.logits.argmax(-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Shape ``[...]``."""
        return torch.log_softmax(self.logits, -1).gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def entropy(self) -> Tensor:
        """Shape ``[...]``."""
        log_probs = torch.log_softmax(self.logits, -1)
        return -(log_probs.exp() * log_probs).sum(-1)


def action_distribution(head: Head, output: Tensor) -> ActionDistribution:
    """Return the distribution that actions are drawn from in training.

    Args:
        head: Rule that turns outputs of a :class:`~graphsnd.teams.StackedMLP` into distributions.
        output: ``[*batch, rows, outputs]``.

    Example:
        >>> action_distribution(GaussianHead(2), torch.zeros(16, 2)).mode().shape
        torch.Size([16, 2])
    """
    if isinstance(head, CategoricalHead):
        return CategoricalActions(output)
    if isinstance(head, GaussianHead):
        return NormalActions(*head.moments(output))
    assert isinstance(head, TanhNormalHead)
    return TanhNormalActions(*head.moments(output))
