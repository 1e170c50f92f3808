"""A stock VMAS environment whose state can be written and read, to hold a world against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.rl.worlds import Dispersion, Navigation
from graphsnd.rl.worlds.dispersion import DispersionState
from graphsnd.rl.worlds.navigation import NavigationState
from graphsnd.rl.worlds.world import Step


def _vmas(scenario: str, world: Navigation | Dispersion, options: dict[str, Any]) -> Any:
    import vmas

    return vmas.make_env(
        scenario,
        num_envs=world.environments,
        device="cpu",
        seed=0,
        max_steps=world.horizon,
        clamp_actions=True,
        terminated_truncated=True,
        n_agents=world.agents,
        **options,
    )


def _column(entities: list[Any], name: str) -> Tensor:
    return torch.stack([getattr(entity.state, name) for entity in entities], 1).clone()


def _step(env: Any, actions: Tensor) -> Step:
    observations, rewards, terminated, truncated, _ = env.step(list(actions.unbind(1)))
    return Step(torch.stack(observations, 1), torch.stack(rewards, 1), terminated, truncated)


@dataclass
class NavigationTwin:
    env: Any

    @classmethod
    def of(cls, world: Navigation, **options: Any) -> NavigationTwin:
        return cls(_vmas("navigation", world, options))

    def write(self, state: NavigationState) -> None:
        for i, agent in enumerate(self.env.world.agents):
            agent.set_pos(state.positions[:, i].clone(), batch_index=None)
            agent.set_vel(state.velocities[:, i].clone(), batch_index=None)
            agent.goal.set_pos(state.targets[:, i].clone(), batch_index=None)
            agent.pos_shaping = state.shaping[:, i].clone()
        self.env.steps = state.steps.float()

    def read(self) -> NavigationState:
        agents = self.env.world.agents
        return NavigationState(
            _column(agents, "pos"),
            _column(agents, "vel"),
            _column([agent.goal for agent in agents], "pos"),
            torch.stack([agent.pos_shaping for agent in agents], 1).clone(),
            self.env.steps.long(),
        )

    def observe(self) -> Tensor:
        return torch.stack(self.env.get_from_scenario(True, False, False, False)[0], 1)

    def step(self, actions: Tensor) -> Step:
        return _step(self.env, actions)


@dataclass
class DispersionTwin:
    env: Any

    @classmethod
    def of(cls, world: Dispersion, **options: Any) -> DispersionTwin:
        return cls(_vmas("dispersion", world, options))

    def write(self, state: DispersionState) -> None:
        for i, agent in enumerate(self.env.world.agents):
            agent.set_pos(state.positions[:, i].clone(), batch_index=None)
            agent.set_vel(state.velocities[:, i].clone(), batch_index=None)
        for f, food in enumerate(self.env.world.landmarks):
            food.set_pos(state.food[:, f].clone(), batch_index=None)
            food.eaten = state.eaten[:, f].clone()
            food.just_eaten = torch.zeros_like(food.eaten)
        self.env.steps = state.steps.float()

    def read(self) -> DispersionState:
        agents, food = self.env.world.agents, self.env.world.landmarks
        eaten = torch.stack([one.eaten for one in food], 1).clone()
        return DispersionState(
            _column(agents, "pos"), _column(agents, "vel"), _column(food, "pos"), eaten, self.env.steps.long()
        )

    def observe(self) -> Tensor:
        return torch.stack(self.env.get_from_scenario(True, False, False, False)[0], 1)

    def step(self, actions: Tensor) -> Step:
        return _step(self.env, actions)
