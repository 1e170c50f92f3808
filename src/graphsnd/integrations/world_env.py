"""Batched worlds as environments of TorchRL.

Needs ``torchrl`` and ``tensordict``. See ``docs/torchrl.md``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import require
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Discrete

__all__ = ["WorldEnv"]

tensordict = require("tensordict", "torchrl")
specs = require("torchrl.data", "torchrl")
EnvBase = require("torchrl.envs", "torchrl").EnvBase


class WorldEnv(EnvBase):  # type: ignore[misc, valid-type]
    """A world as a TorchRL environment: one batch, on the world's device, with all agents in the group ``agents``.

    Keys, shapes and discrete actions are those of TorchRL's ``VmasEnv``. Unlike there, an episode that reaches the
    horizon is ``truncated`` and ``done`` but not ``terminated``, so that its return goes on in the value estimate.

    Args:
        world: World of E environments of N agents.
        seed: Seed of the episodes' starts; ``set_seed`` changes it.
        discrete: Whether continuous actions are replaced by discrete ones: none, lowest or highest in each direction, 9
            for two, in the order of VMAS.

    Attributes:
        state: The world's state; None before the first reset.
        group_map: ``{"agents": ["agent_0", ...]}``.

    Example:
        >>> from graphsnd.rl.worlds import Dispersion
        >>> rollout = WorldEnv(Dispersion(4, 2)).rollout(5)
        >>> rollout["agents", "observation"].shape, rollout["next", "agents", "reward"].shape
        (torch.Size([2, 5, 4, 16]), torch.Size([2, 5, 4, 1]))
    """

    def __init__(self, world: World, *, seed: int = 0, discrete: bool = False) -> None:
        super().__init__(device=world.device, batch_size=[world.environments])
        self.world: Any = world
        self.state: Any = None
        self.group_map = {"agents": [f"agent_{agent}" for agent in range(world.agents)]}
        self._moves: Tensor | None = None  # [choices, features], where actions are made discrete
        if discrete and not isinstance(world.actions, Discrete):
            ends = torch.tensor([0.0, -1.0, 1.0], device=world.device)
            grid = torch.cartesian_prod(*[ends] * world.actions.features)
            self._moves = grid.view(-1, world.actions.features)
        self._make_specs()
        self.set_seed(seed)

    def _make_specs(self) -> None:
        shape, device, actions = (*self.batch_size, self.world.agents), self.device, self.world.actions

        def of_agents(**leaves: Any) -> Any:
            group = specs.Composite(leaves, shape=shape, device=device)
            return specs.Composite({"agents": group}, shape=self.batch_size, device=device)

        if self._moves is None and not isinstance(actions, Discrete):
            action = specs.Bounded(-1.0, 1.0, (*shape, actions.features), device, self.world.dtype)
        else:
            count = actions.count if isinstance(actions, Discrete) else len(self._moves)  # type: ignore[arg-type]
            action = specs.Categorical(count, shape, device, torch.long)
        features = self.world.observation_features
        flag = specs.Categorical(2, (*self.batch_size, 1), device, torch.bool)
        self.action_spec = of_agents(action=action)
        self.observation_spec = of_agents(observation=specs.Unbounded((*shape, features), device, self.world.dtype))
        self.reward_spec = of_agents(reward=specs.Unbounded((*shape, 1), device, self.world.dtype))
        flags = {name: flag.clone() for name in ("done", "terminated", "truncated")}
        self.done_spec = specs.Composite(flags, shape=self.batch_size, device=device)

    def _set_seed(self, seed: int | None) -> None:
        self._start = seed or 0
        device = "cpu" if self.world.spawns_on_host else self.world.device
        self._generator = torch.Generator(device).manual_seed(self._start)

    def _reset(self, given: Any = None, **_: Any) -> Any:
        chosen = None if given is None else given.get("_reset", None)
        if self.state is None or chosen is None:
            self.state = self.world.spawn(self._generator)
        else:
            self.state = self.world.reset_done(self.state, chosen.squeeze(-1), self._generator)
        none = torch.zeros(*self.batch_size, dtype=torch.bool, device=self.device)
        return self._pack(none, none, observation=self.world.observe(self.state))

    def _step(self, given: Any) -> Any:
        actions = given.get(("agents", "action"))
        actions = actions if self._moves is None else self._moves[actions]
        self.state, step = self.world.step(self.state, actions)
        outputs = {"observation": step.observations, "reward": step.rewards.unsqueeze(-1)}
        return self._pack(step.terminated, step.truncated, **outputs)

    def _pack(self, terminated: Tensor, truncated: Tensor, **outputs: Tensor) -> Any:
        agents = tensordict.TensorDict(outputs, (*self.batch_size, self.world.agents), device=self.device)
        flags = {"done": terminated | truncated, "terminated": terminated, "truncated": truncated}
        columns = {name: flag.unsqueeze(-1) for name, flag in flags.items()}
        return tensordict.TensorDict({"agents": agents, **columns}, self.batch_size, device=self.device)

    def to(self, device: Any) -> Any:
        """Move the environment, which starts over from its seed: reset it before the next step."""
        device = torch.empty(0, device=device).device  # numbered, as torch compares devices literally
        if device != self.world.device:
            self.world, self.state = dataclasses.replace(self.world, device=device), None
            self._moves = None if self._moves is None else self._moves.to(device)
            self._set_seed(self._start)
        return super().to(device)
