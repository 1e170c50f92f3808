"""A rollout as frames, minibatches of it, and the few observations that are shown to all networks."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from graphsnd.teams.engine import PLAIN, Engine, rows_of
from graphsnd.training.advantages import advantages
from graphsnd.training.dico.rollout import Memory
from graphsnd.training.dico.settings import ControlSettings


@dataclass(frozen=True, eq=False)
class Frames:
    """S frames of R runs and N agents, agents first: a minibatch is then gathered in the order that networks read."""

    observations: Tensor  # [R, N, S, f], as the engine of the networks reads them
    places: Tensor  # [R, N, S, 2], first two features of the observations
    actions: Tensor  # [R, N, S, k], or int64 [R, N, S]
    log_probs: Tensor  # [R, N, S]
    advantages: Tensor  # [R, N, S]
    returns: Tensor  # [R, N, S]

    @classmethod
    def of(cls, memory: Memory, settings: ControlSettings, engine: Engine = PLAIN) -> Frames:
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
        seen = by_agent(memory.observations)
        rest = (memory.actions, memory.log_probs, found, found + memory.values[:, :-1])
        return cls(
            engine.prepare(seen).contiguous(),
            seen[..., :2].contiguous(),
            *(by_agent(part).contiguous() for part in rest),
        )

    def copy_(self, other: Frames) -> None:
        """Become another rollout, in the same memory."""
        for part in fields(self):
            getattr(self, part.name).copy_(getattr(other, part.name))

    def take(self, index: Tensor, engine: Engine = PLAIN) -> Frames:
        """Some frames of every run, ``[R, N, m, ...]``; ``index`` is int64 ``[R, m]``."""
        rest = [rows_of(getattr(self, part.name), index) for part in fields(self)[1:]]
        return Frames(engine.take(self.observations, index), *rest)


def by_agent(part: Tensor) -> Tensor:
    """``[R, T, E, N, ...]`` as ``[R, N, T * E, ...]``."""
    return part.flatten(1, 2).transpose(1, 2)


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
