"""What PPO minimises, for every agent by itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.training.columns import columns
from graphsnd.training.policies import Block


@dataclass(frozen=True, eq=False)
class Rollouts:
    """S samples for every agent of R runs, as they were made."""

    observations: Tensor  # [R, S, N, f]
    actions: Tensor  # [R, S, N, k] or int64 [R, S, N]
    log_probs: Tensor  # [R, S, N], when they were drawn
    advantages: Tensor  # [R, S, N]
    returns: Tensor  # [R, S, N]

    def take(self, index: Tensor) -> Samples:
        """Some samples of every run, the same for its agents; ``index`` is int64 ``[R, m]``."""
        runs, count = self.log_probs.shape[:2]
        first = torch.arange(runs, device=index.device).unsqueeze(1) * count
        rows = (index + first).view(-1)

        def some(part: Tensor) -> Tensor:
            return part.flatten(0, 1).index_select(0, rows).unflatten(0, index.shape)

        def by_network(part: Tensor) -> Tensor:
            return some(part).transpose(1, 2).flatten(0, 1)

        # Continuous actions lie in memory as the policies' outputs do; elementwise work on both is then one stream.
        actions = columns(some(self.actions)).mT if self.actions.dim() == 4 else by_network(self.actions)
        rest = (self.log_probs, self.advantages, self.returns)
        return Samples(columns(some(self.observations)), actions, *(by_network(part) for part in rest))


@dataclass(frozen=True, eq=False)
class Samples:
    """A minibatch of m samples for every network, run by run and agent by agent."""

    inputs: Tensor  # [networks, f, m]
    actions: Tensor  # [networks, m, k] or int64 [networks, m]
    log_probs: Tensor  # [networks, m]
    advantages: Tensor  # [networks, m]
    returns: Tensor  # [networks, m]

    def split(self, sizes: list[int]) -> list[Samples]:
        """Samples of the first so many networks, of the next, and so on."""
        parts = (self.inputs, self.actions, self.log_probs, self.advantages, self.returns)
        return [Samples(*each) for each in zip(*(part.split(sizes) for part in parts), strict=True)]


@dataclass(frozen=True, eq=False)
class Losses:
    """Means over the samples, each ``[networks]``."""

    policy: Tensor
    value: Tensor
    entropy: Tensor
    kl: Tensor  # of the old policy from the new one


def losses(block: Block, samples: Samples, clip: float) -> Losses:
    r"""PPO's clipped objective, the value error and the entropy.

    .. math:: L_\pi = -\tfrac1m \sum \min(\rho A, \mathrm{clip}(\rho, 1 \pm \epsilon) A), \qquad
        L_V = \tfrac1{2m} \sum (V - R)^2, \qquad \rho = \pi(a|o) / \pi_{\text{old}}(a|o)

    Args:
        block: Who learns.
        samples: A minibatch of the same networks.
        clip: :math:`\epsilon`.

    Returns:
        Losses and entropy for every network, and the Kullback-Leibler divergence, estimated by the mean of
        :math:`\rho - 1 - \log\rho`, which is never negative.
    """
    distribution = block.distribution(samples.inputs)
    change = distribution.log_prob(samples.actions) - samples.log_probs
    ratio, advantage = change.exp(), samples.advantages
    gained = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    error = block.values(samples.inputs) - samples.returns
    with torch.no_grad():
        kl = (ratio - 1 - change).mean(-1)
    return Losses(-gained.mean(-1), 0.5 * error.square().mean(-1), distribution.entropy().mean(-1), kl)
