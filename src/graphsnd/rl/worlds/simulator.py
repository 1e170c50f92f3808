"""Real simulators behind the protocol: the simulator owns its state, and a :class:`SimulatorState` stands for it.

A simulator changes in place. So a state is good for one step: the step returns the next one, and using an old one is an
error instead of a silent jump in time. Nothing else differs for a trainer that resets through
:meth:`World.reset_done <graphsnd.rl.worlds.world.World.reset_done>`;
:func:`merge <graphsnd.rl.worlds.world.merge>` cannot work and says so.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd.errors import InputError, check_device, check_index, check_shape, check_tensor
from graphsnd.graphs.random import integers, source
from graphsnd.rl.worlds.world import Continuous, Discrete, Step, World, check_counts


@dataclass(eq=False)
class SimulatorState:
    """The state of a simulator at one moment; opaque."""

    simulator: Any
    observations: Tensor  # [E, N, f]
    used: bool = False  # whether the simulator has moved on

    def open(self) -> Any:
        """Return the simulator, if this is its newest state.

        Raises:
            InputError: For a state of the past.
        """
        if self.used:
            fix = "A simulator cannot go back: use the state that the last step or reset returned."
            raise InputError("state", "to be the newest state of this simulator", "an older one", fix)
        return self.simulator

    def advance(self, observations: Tensor) -> SimulatorState:
        """Return the state that replaces this one."""
        self.used = True
        return SimulatorState(self.simulator, observations)


class SimulatorWorld(World):
    """Base of worlds whose state is a simulator rather than tensors; an adapter starts, steps and resets it."""

    spawns_on_host = True

    def __init__(self, name: str, agents: int | None, environments: int, horizon: int | None, device: Any) -> None:
        counts = check_counts(1 if agents is None else agents, environments, horizon)
        self.name, self.device = name, check_device(device)
        self.environments, self.horizon = counts["environments"], counts["horizon"]

    def _describe(self, argument: str, agents: int | None, observations: list[Any], actions: list[Any]) -> None:
        """Take the number of agents and their spaces from the simulator's own description.

        Args:
            argument: The constructor's argument to name in errors.
            agents: The number that the caller wants; None for any.
            observations: The observation space of each agent.
            actions: The action space of each agent.

        Raises:
            InputError: For another number of agents, or agents with different or unsupported spaces.
        """
        self.agents = len(observations)
        if agents not in (None, self.agents):
            fix = "Where its size can be set, use the simulator's own option for it."
            raise InputError("agents", f"to be {self.agents}, which {self.name} has", agents, fix)
        self._features = int(_require_alike(argument, self.name, "observations", [_length(s) for s in observations]))
        self.actions = _require_alike(argument, self.name, "actions", [_describe_actions(s) for s in actions])

    @property
    def observation_features(self) -> int:
        """Length of one agent's observation."""
        return self._features

    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> SimulatorState:
        """Return the state of a new simulator, seeded from ``generator``."""
        return SimulatorState(*self._start(self.count_environments(environments), generator))

    def observe(self, state: SimulatorState) -> Tensor:
        """Return the observation of every agent, ``[E, N, f]``."""
        return state.observations

    def step(self, state: SimulatorState, actions: Tensor) -> tuple[SimulatorState, Step]:
        """Advance the simulator; ``state`` is used up.

        Raises:
            InputError: For a state that was used before.
        """
        lead = tuple(state.observations.shape[:2])
        actions = check_tensor("actions", actions, 2, "(environments, agents, ...)")
        if isinstance(self.actions, Discrete):
            check_shape("actions", actions, lead)
            check_index("actions", actions, self.actions.count)
        else:
            check_shape("actions", actions, (*lead, self.actions.features), dtype="floating")
        step = self._advance(state.open(), actions)
        return state.advance(step.observations), step

    def reset_done(self, state: SimulatorState, done: Tensor, generator: torch.Generator | int) -> SimulatorState:
        """Reset the environments that are ``done``; ``state`` is used up unless there is none."""
        done = check_tensor("done", done, 1, "(environments,)")
        check_shape("done", done, state.observations.shape[:1], dtype="bool")
        simulator, rows = state.open(), done.nonzero()[:, 0].tolist()
        return state.advance(self._reset(simulator, rows, state.observations, generator)) if rows else state

    def positions(self, state: SimulatorState) -> Tensor | None:
        """Return the positions of the agents, ``[E, N, 2]``; None where the simulator has no plane."""
        return self._places(state.open(), "agents")

    def goals(self, state: SimulatorState) -> Tensor | None:
        """Return the positions of the landmarks, ``[E, L, 2]``; None when there are none."""
        return self._places(state.open(), "landmarks")

    @abstractmethod
    def _start(self, environments: int, generator: torch.Generator | int) -> tuple[Any, Tensor]:
        """Return a new simulator and its observations."""

    @abstractmethod
    def _advance(self, simulator: Any, actions: Tensor) -> Step:
        """Let all agents act once."""

    @abstractmethod
    def _reset(self, simulator: Any, rows: list[int], before: Tensor, generator: torch.Generator | int) -> Tensor:
        """Reset the environments ``rows`` and return all observations; ``before`` are the current ones."""

    @abstractmethod
    def _places(self, simulator: Any, kind: str) -> Tensor | None:
        """Return the positions of the ``agents`` or the ``landmarks``, if there are any."""


def draw_seeds(generator: torch.Generator | int, count: int) -> list[int]:
    """Draw seeds below 2**31, for libraries that keep their own random state."""
    rng, _ = source(generator, None)
    return integers(count, 2**31, rng).tolist()


def _length(space: Any) -> Any:
    shape = getattr(space, "shape", None)
    return shape[0] if shape is not None and len(shape) == 1 else repr(space)


def _describe_actions(space: Any) -> Any:
    if hasattr(space, "n"):
        return Discrete(int(space.n))
    if space.low.ndim == 1 and len({*space.low.tolist()}) == len({*space.high.tolist()}) == 1:
        return Continuous(space.shape[0], float(space.low[0]), float(space.high[0]))
    return repr(space)


def _require_alike(argument: str, name: str, what: str, values: list[Any]) -> Any:
    """Return the one value of all agents; a string stands for a space that is not supported."""
    if len(set(values)) > 1 or isinstance(values[0], str):
        listed = ", ".join(sorted({str(value) for value in values}))
        raise InputError(argument, f"whose agents have the same flat {what}", f"{name} with {listed}")
    return values[0]
