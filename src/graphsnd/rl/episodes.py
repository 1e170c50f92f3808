"""Starts of episodes: a bank of fresh states, so that a reset selects between tensors.

Placing things at random needs the host, which a loop on a GPU must not wait for. So states are spawned before the
rollout, each run's from its own stream, and a finished environment takes the next one of its run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphsnd.rl.streams import Streams
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import map_state, merge, state_tensors

LENGTH = 16  # steps of an episode below which a bank may run dry within one rollout; its states are then used again


class Bank:
    """Episodes of a world.

    Args:
        world: The world.
        environments: Number of environments of each run.
        steps: Steps of a rollout; the bank is sized for episodes of 16 steps.
        streams: Random stream of each run.

    Attributes:
        state: ``[runs * environments]``, between two rollouts.
        observations: ``[runs * environments, agents, features]``, of that state.
    """

    def __init__(self, world: World, environments: int, steps: int, streams: Sequence[Streams]) -> None:
        self.world, self.environments, self.streams = world, environments, streams
        self.size = environments * (1 + -(-steps // LENGTH))
        spawned = [world.spawn(each.episodes, self.size) for each in streams]
        self.fresh = map_state(lambda *parts: torch.cat(parts), *spawned)
        self.seen = world.observe(self.fresh)
        self.taken = torch.zeros(len(streams), dtype=torch.long, device=world.device)
        self.refilled = torch.zeros(len(streams), dtype=torch.long)
        self.state, self.observations = self.restart()
        self.state = map_state(torch.clone, self.state)

    def restart(self) -> tuple[Any, Tensor]:
        """Start new episodes everywhere; return states and observations."""
        return self._take(torch.ones(len(self.streams), self.environments, dtype=torch.bool, device=self.world.device))

    def replace(self, state: Any, observations: Tensor, done: Tensor) -> tuple[Any, Tensor]:
        """Start new episodes where ``done``, bool ``[runs * environments]``; return states and observations."""
        fresh, seen = self._take(done.view(len(self.streams), self.environments))
        return merge(state, done, fresh), torch.where(done.view(-1, 1, 1), seen, observations)

    def keep(self, state: Any, observations: Tensor) -> None:
        """Remember where a rollout ended, in the same tensors, because a captured rollout goes on reading them."""
        map_state(lambda old, new: old.copy_(new), self.state, state)
        self.observations.copy_(observations)

    def refill(self) -> None:
        """Replace the states that were taken, for each run from its own stream; waits for the device."""
        taken = self.taken.tolist()
        for run, each in enumerate(self.streams):
            first = int(self.refilled[run])
            count = min(taken[run] - first, self.size)
            if count:
                places = (torch.arange(first, first + count) % self.size + run * self.size).to(self.world.device)
                spawned = self.world.spawn(each.episodes, count)
                map_state(lambda old, new, at=places: old.index_copy_(0, at, new), self.fresh, spawned)
                self.seen.index_copy_(0, places, self.world.observe(spawned))
            self.refilled[run] = taken[run]

    def tensors(self) -> dict[str, Tensor]:
        """Return states, observations and counters, by reference: copying into these tensors restores them."""
        parts = {"observations": self.observations, "seen": self.seen, "taken": self.taken, "refilled": self.refilled}
        for kind, state in (("state", self.state), ("fresh", self.fresh)):
            parts |= {f"{kind}.{name}": part for name, part in state_tensors(state).items()}
        return parts

    def _take(self, wanted: Tensor) -> tuple[Any, Tensor]:
        """Return a state of the bank, and its observations, for each environment: a new one where ``wanted``."""
        order = wanted.cumsum(1) - 1 + self.taken.unsqueeze(1)
        first = torch.arange(len(self.streams), device=wanted.device).unsqueeze(1) * self.size
        self.taken += wanted.sum(1)
        rows = (order.remainder(self.size) + first).view(-1)
        return map_state(lambda part: part.index_select(0, rows), self.fresh), self.seen.index_select(0, rows)
