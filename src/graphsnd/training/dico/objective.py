"""What policies are trained on: PPO's objective, and the means that left the box; with plain torch or fused."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.control.policy import of_agents
from graphsnd.teams.heads import SCALE_FLOOR, SCALE_SHIFT
from graphsnd.training.dico.frames import Frames


class Objective:
    """Plain torch, for any kind of policy and on any device.

    Args:
        policy: Whose.
        clip: Of PPO's ratio.
    """

    def __init__(self, policy: ControlledPolicy, clip: float) -> None:
        self.policy, self.clip = policy, clip

    def losses(self, batch: Frames, scale: Tensor) -> Tensor:
        """PPO's clipped objective, mean over frames and agents: ``[runs]``."""
        distribution = self.policy.distribution(batch.observations, scale)
        ratio = (distribution.log_prob(batch.actions) - batch.log_probs).exp()
        cut = ratio.clamp(1 - self.clip, 1 + self.clip)
        return -torch.minimum(ratio * batch.advantages, cut * batch.advantages).mean((1, 2))

    @torch.no_grad()
    def furthest(self, seen: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Squared distance from the box of the mean furthest outside in every frame, and whose: ``[runs, frames]``."""
        found = beyond(self.policy.parameters_of(seen, scale)[0]).max(1)
        return found.values, found.indices


class FusedObjective(Objective):
    """The same for tanh-normal policies, in one program each; no gradient flows to the scale."""

    def losses(self, batch: Frames, scale: Tensor) -> Tensor:  # noqa: D102
        from graphsnd.kernels.gpu import learning

        outputs, scales = self.policy.outputs_of(batch.observations), of_agents(scale, *self.policy.batch)
        constants = learning.Constants(self.clip, SCALE_SHIFT, SCALE_FLOOR)
        return learning.losses(*outputs, batch.actions, batch.log_probs, batch.advantages, scales, constants)

    @torch.no_grad()
    def furthest(self, seen: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:  # noqa: D102
        from graphsnd.kernels.gpu import learning

        return learning.furthest(*self.policy.outputs_of(seen), of_agents(scale, *self.policy.batch))


def objective_for(policy: ControlledPolicy, clip: float, *, through: bool) -> Objective:
    """Fused where the networks are, unless gradients flow through the scale.

    Args:
        policy: Whose.
        clip: Of PPO's ratio.
        through: Whether gradients flow through the scale.
    """
    fused = policy.deviations.engine.fused and policy.kind == "tanh-normal" and not through
    return (FusedObjective if fused else Objective)(policy, clip)


def beyond(loc: Tensor) -> Tensor:
    """Squared distance of means ``[..., k]`` from the box [-1, 1]^k."""
    return (loc - loc.detach().clamp(-1, 1)).square().sum(-1)
