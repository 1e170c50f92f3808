"""A rollout as frames, minibatches of it, and the few observations that are shown to all networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.training.advantages import advantages
from graphsnd.training.dico.rollout import Memory
from graphsnd.training.dico.settings import ControlSettings


@dataclass(frozen=True, eq=False)
class Frames:
    """S frames of R runs and N agents."""

    observations: Tensor  # [R, S, N, f]
    actions: Tensor  # [R, S, N, k], or int64 [R, S, N]
    log_probs: Tensor  # [R, S, N]
    advantages: Tensor  # [R, S, N]
    returns: Tensor  # [R, S, N]

    @classmethod
    def of(cls, memory: Memory, settings: ControlSettings) -> Frames:
        """A rollout with its advantages, which are not normalised. Every end of an episode ends the return."""
        found = advantages(
            memory.rewards,
            memory.values,
            memory.values[:, 1:],  # read where an episode was merely cut, which here is nowhere
            memory.done,
            memory.done,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
        )
        parts = (memory.observations, memory.actions, memory.log_probs, found, found + memory.values[:, :-1])
        return cls(*(part.flatten(1, 2) for part in parts))

    def take(self, index: Tensor) -> Frames:
        """Some frames of every run, agents first: each part ``[R, N, m, ...]``; ``index`` is int64 ``[R, m]``."""
        runs, count = self.log_probs.shape[:2]
        rows = (index + torch.arange(runs, device=index.device).unsqueeze(1) * count).view(-1)

        def some(part: Tensor) -> Tensor:
            return part.flatten(0, 1).index_select(0, rows).unflatten(0, index.shape).transpose(1, 2).contiguous()

        return Frames(
            some(self.observations),
            some(self.actions),
            some(self.log_probs),
            some(self.advantages),
            some(self.returns),
        )


def shown(frames: int, agents: int, count: int) -> tuple[Tensor, Tensor]:
    """Which (frame, agent) to take ``count`` observations from: as many frames and as evenly over agents as can be.

    Frames of a minibatch are in random order, so the first ones are a random sample of them.

    Returns:
        Frames and agents, int64, at most frames * agents of them.

    Example:
        >>> [part.tolist() for part in shown(3, 2, 4)]
        [[0, 1, 2, 0], [0, 1, 0, 1]]
    """
    place = torch.arange(min(count, frames * agents))
    frame = place % frames
    return frame, (place // frames + frame) % agents
