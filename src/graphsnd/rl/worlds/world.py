"""The :class:`World` protocol, the values that pass through it, and the argument checks that all worlds share.

A world is a description and never changes. Everything that moves is in its state, a frozen dataclass of tensors whose
first dimension counts environments; ``step`` takes one state and returns the next. So a caller may split, join or fold
a batch (runs x environments in one dimension).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import MOST_AGENTS, check_integer, check_shape, check_tensor, check_type
from graphsnd.graphs.random import source

S = TypeVar("S")


@dataclass(frozen=True)
class Continuous:
    """Actions are vectors; components outside [-1, 1] are clamped to it.

    Example:
        >>> from graphsnd.rl.worlds import Navigation
        >>> Navigation(4, 2).actions
        Continuous(features=2)
    """

    features: int  # length of an action


@dataclass(frozen=True)
class Discrete:
    """Actions are the integers 0 .. count-1.

    Example:
        >>> from graphsnd.rl.worlds import SimpleSpread
        >>> SimpleSpread(4, 2).actions
        Discrete(count=5)
    """

    count: int  # number of actions


@dataclass(frozen=True, eq=False)
class Step:
    """The result of one step, for E environments of N agents.

    Example:
        >>> from graphsnd.rl.worlds import Navigation
        >>> world = Navigation(4, 2, horizon=1)
        >>> state, step = world.step(world.spawn(0), torch.zeros(2, 4, 2))
        >>> step.rewards.shape, step.terminated.tolist(), step.truncated.tolist()
        (torch.Size([2, 4]), [False, False], [True, True])
    """

    observations: Tensor  # [E, N, f], after the step
    rewards: Tensor  # [E, N]
    terminated: Tensor  # [E] bool: the task ended; the return ends here
    truncated: Tensor  # [E] bool: the horizon was reached; the return would have gone on


class World(ABC):
    """A batch of environments with N agents in each.

    ``step`` and ``observe`` take the number of environments from the state. ``environments`` is only the number that
    :meth:`spawn` makes by default.

    Example:
        >>> from graphsnd.rl.worlds import parse_world
        >>> world = parse_world("navigation", 4, 2)  # 4 agents in 2 environments
        >>> state = world.spawn(0)
        >>> world.observe(state).shape, world.step(state, torch.zeros(2, 4, 2))[1].rewards.shape
        (torch.Size([2, 4, 18]), torch.Size([2, 4]))
    """

    name: str  # as :func:`~graphsnd.rl.worlds.parse_world` reads it
    environments: int
    agents: int
    actions: Continuous | Discrete  # what an agent may do
    horizon: int | None  # steps after which an episode is truncated; None for never
    device: torch.device
    dtype: ClassVar[torch.dtype] = torch.float32
    # Whether spawn waits for the device anyway. If so, reset_done may count the finished environments too.
    spawns_on_host: ClassVar[bool] = False

    @property
    @abstractmethod
    def observation_features(self) -> int:
        """Length of one agent's observation."""

    @abstractmethod
    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> Any:
        """Return a new state. Only this method and :meth:`reset_done` may wait for the device.

        Args:
            generator: Random generator; an int is a seed. A generator on the world's device saves a copy.
            environments: Number of environments; ``self.environments`` when None.
        """

    @abstractmethod
    def observe(self, state: Any) -> Tensor:
        """Return the observation of every agent, ``[E, N, f]``."""

    @abstractmethod
    def step(self, state: Any, actions: Tensor) -> tuple[Any, Step]:
        """Let all agents act once.

        Args:
            state: State from :meth:`spawn`, :meth:`step` or :meth:`reset_done`; it is not changed.
            actions: ``[E, N, features]`` for continuous actions, int64 ``[E, N]`` for discrete ones. NaN is not
                checked for, because reading values would wait for the device.

        Returns:
            The next state, and the result of the step.
        """

    def reset_done(self, state: Any, done: Tensor, generator: torch.Generator | int) -> Any:
        """Start a new episode in the environments that are ``done`` and leave the others unchanged.

        Args:
            state: The state after a step.
            done: Bool ``[E]``, usually ``step.terminated | step.truncated``.
            generator: Random generator; an int is a seed.
        """
        if not self.spawns_on_host and done.device.type != "cpu":
            return merge(state, done, self.spawn(generator, len(done)))
        rows = done.nonzero()[:, 0]
        if not len(rows):
            return state
        return map_state(lambda old, new: old.index_copy(0, rows, new), state, self.spawn(generator, len(rows)))

    def solved(self, state: Any) -> Tensor | None:
        """Return which agents have reached their goal, bool ``[E, N]``; None where no agent has a goal of its own."""
        return None

    def truncated(self, steps: Tensor) -> Tensor:
        """Return which of the step counters ``[E]`` have reached the horizon."""
        return torch.zeros_like(steps, dtype=torch.bool) if self.horizon is None else steps >= self.horizon


def merge(state: S, done: Tensor, fresh: S) -> S:
    """Take ``fresh`` where ``done`` and ``state`` elsewhere, for every tensor of a state.

    Nothing is read back from the device, so it can be captured in a CUDA graph.

    Args:
        state: A dataclass of tensors with leading dimension E.
        done: Bool ``[E]``.
        fresh: Another state of the same type and shapes.

    Example:
        >>> from graphsnd.rl.worlds import Dispersion
        >>> world = Dispersion(2, 3)
        >>> old, new = world.spawn(0), world.spawn(1)
        >>> mixed = merge(old, torch.tensor([False, True, False]), new)
        >>> [bool((mixed.food[e] == new.food[e]).all()) for e in range(3)]
        [False, True, False]
    """
    return map_state(lambda old, new: torch.where(done.view(-1, *[1] * (old.dim() - 1)), new, old), state, fresh)


def map_state(function: Callable[..., Tensor], state: S, *others: S) -> S:
    """Apply ``function`` to the tensors of the same name in all given states, and return the results as a state."""
    parts = {name: function(part, *(getattr(o, name) for o in others)) for name, part in state_tensors(state).items()}
    return dataclasses.replace(state, **parts)  # type: ignore[type-var]


def state_tensors(state: Any) -> dict[str, Tensor]:
    """Return the tensors of a state by name."""
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}


def check_counts(agents: int, environments: int, horizon: int | None) -> dict[str, Any]:
    """Return the three counts as plain integers by name; a horizon of None is no limit.

    Raises:
        InputError: For no agent, no environment, more agents than are supported, or a horizon below 1.
    """
    agents = check_integer("agents", agents, f"to be an integer in 1 .. {MOST_AGENTS}", low=1, high=MOST_AGENTS)
    environments = check_integer("environments", environments, "to be an integer, at least 1", low=1)
    if horizon is not None:
        horizon = check_integer("horizon", horizon, "to be an integer, at least 1, or None for no limit", low=1)
    return {"agents": agents, "environments": environments, "horizon": horizon}


def check_flags(options: object, *names: str) -> None:
    """Raise unless options are True or False: the text ``"false"`` of a configuration would count as True."""
    for name in names:
        check_type(name, getattr(options, name), (bool, np.bool_), "to be True or False")


def store(options: object, **values: Any) -> None:
    """Set checked values of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(options, name, value)


def check_moves(actions: Tensor, shape: tuple[int, ...], *, integers: bool = False) -> Tensor:
    """Return ``actions``, or raise unless they have the shape that the state requires. Reads no value of the tensor."""
    actions = check_tensor("actions", actions, 0, str(shape))
    check_shape("actions", actions, shape, dtype="int64" if integers else "")
    return actions


def draw_uniform(generator: torch.Generator | int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Draw from [-1, 1) on the generator's device, and move the result to ``device``."""
    rng, _ = source(generator, None)
    return torch.rand(shape, generator=rng, device=rng.device).mul_(2).sub_(1).to(device)
