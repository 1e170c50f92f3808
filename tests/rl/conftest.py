from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from graphsnd.rl import Settings
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Continuous, Step


@dataclass(frozen=True, eq=False)
class LineState:
    places: Tensor  # [E, N]
    steps: Tensor  # [E] int64


class Line(World):
    """Agents on a line: the reward is where one goes, the task ends when agent 0 is beyond 1."""

    name = "line"
    spawns_on_host = True

    def __init__(self, agents: int = 2, environments: int = 3, horizon: int | None = None) -> None:
        self.agents, self.environments, self.horizon = agents, environments, horizon
        self.device = torch.device("cpu")
        self.spawned = 0

    @property
    def observation_features(self) -> int:
        return 2

    @property
    def actions(self) -> Continuous:
        return Continuous(1)

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> LineState:
        count = self.environments if environments is None else environments
        self.spawned += count
        if isinstance(generator, int):
            generator = torch.Generator().manual_seed(generator)
        places = torch.rand(count, self.agents, generator=generator) - 1
        return LineState(places, torch.zeros(count, dtype=torch.long))

    def observe(self, state: LineState) -> Tensor:
        return torch.stack([state.places, state.steps.unsqueeze(1).expand_as(state.places).float() / 10], -1)

    def step(self, state: LineState, actions: Tensor) -> tuple[LineState, Step]:
        moved = 0.6 * actions[..., 0].clamp(-1, 1)
        after = LineState(state.places + moved, state.steps + 1)
        return after, Step(self.observe(after), moved, after.places[:, 0] > 1, self.truncated(after.steps))

    def solved(self, state: LineState) -> Tensor:
        return state.places > 0


@pytest.fixture
def line() -> Line:
    return Line(horizon=7)


@pytest.fixture
def tiny() -> Settings:
    return Settings(steps=12, environments=3, minibatch=10, epochs=2, hidden=(8,), iterations=6, diversity_every=2)
