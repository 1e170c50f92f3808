"""What a trainer may ask of an environment: the :class:`World` protocol and the values that pass through it.

A world is a description and never changes. Everything that moves is in its state, a frozen dataclass of tensors whose
first dimension counts environments; ``step`` takes one state and gives the next. So a batch may be cut, joined or
folded (runs x environments in one dimension) by whoever holds it.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from graphsnd.errors import InputError, shape_of

S = TypeVar("S")


@dataclass(frozen=True)
class Continuous:
    """Actions are vectors; components outside the range are clamped to it."""

    features: int
    low: float = -1.0
    high: float = 1.0


@dataclass(frozen=True)
class Discrete:
    """Actions are the integers 0 .. count-1."""

    count: int


@dataclass(frozen=True, eq=False)
class Step:
    """What came of one step, for E environments of N agents."""

    observations: Tensor  # [E, N, f], after the step
    rewards: Tensor  # [E, N]
    terminated: Tensor  # [E] bool: the task ended; the return ends here
    truncated: Tensor  # [E] bool: the horizon was reached; the return would have gone on


class World(ABC):
    """A batch of environments that all agents share, with N agents in each.

    The number of environments in ``step`` and ``observe`` is that of the state, not ``environments``, which only
    says how many :meth:`spawn` makes by default.
    """

    environments: int
    agents: int
    horizon: int | None  # steps after which an episode is cut; None for never
    device: torch.device
    dtype: ClassVar[torch.dtype] = torch.float32
    # Whether spawn reads the device anyway. If so, reset_done may count the finished environments too.
    spawns_on_host: ClassVar[bool] = False

    @property
    @abstractmethod
    def name(self) -> str:
        """As :func:`~graphsnd.worlds.parse.parse_world` reads it, where it can."""

    @property
    @abstractmethod
    def observation_features(self) -> int:
        """Length of what one agent sees."""

    @property
    @abstractmethod
    def actions(self) -> Continuous | Discrete:
        """What an agent may do."""

    @abstractmethod
    def spawn(self, generator: torch.Generator | int, environments: int | None = None) -> Any:
        """A fresh state. The only method, with :meth:`reset_done`, that may wait for the device.

        Args:
            generator: Where the randomness comes from; an int is a seed. One on the world's device saves the copy.
            environments: How many; ``self.environments`` when None.
        """

    @abstractmethod
    def observe(self, state: Any) -> Tensor:
        """What every agent sees, ``[E, N, f]``."""

    @abstractmethod
    def step(self, state: Any, actions: Tensor) -> tuple[Any, Step]:
        """Let all agents act once.

        Args:
            state: From :meth:`spawn`, :meth:`step` or :meth:`reset_done`; it is not changed.
            actions: ``[E, N, features]`` for continuous actions, int64 ``[E, N]`` for discrete ones. NaN is not
                looked for, because looking would wait for the device.

        Returns:
            The next state, and what came of the step.
        """

    def reset_done(self, state: Any, done: Tensor, generator: torch.Generator | int) -> Any:
        """Begin a new episode in the environments that are ``done`` and leave the others alone.

        Args:
            state: The state after a step.
            done: Bool ``[E]``, usually ``step.terminated | step.truncated``.
            generator: Where the randomness comes from; an int is a seed.
        """
        if not self.spawns_on_host and done.device.type != "cpu":
            return merge(state, done, self.spawn(generator, len(done)))
        rows = done.nonzero()[:, 0]
        if not len(rows):
            return state
        return _put_rows(state, rows, self.spawn(generator, len(rows)))

    def positions(self, state: Any) -> Tensor | None:
        """Where the agents are, ``[E, N, 2]``; None where the world has no plane."""
        return None

    def goals(self, state: Any) -> Tensor | None:
        """Where the landmarks are, ``[E, L, 2]``, for pictures."""
        return None

    def solved(self, state: Any) -> Tensor | None:
        """Which agents have done their part, bool ``[E, N]``; None where no agent has a part of its own."""
        return None

    def truncated(self, steps: Tensor) -> Tensor:
        """Which of the step counters ``[E]`` have reached the horizon."""
        return torch.zeros_like(steps, dtype=torch.bool) if self.horizon is None else steps >= self.horizon


def merge(state: S, done: Tensor, fresh: S) -> S:
    """Take ``fresh`` where ``done`` and ``state`` elsewhere, for every tensor of a state.

    Nothing is read back from the device, so it can stand in a CUDA graph.

    Args:
        state: A dataclass of tensors with leading dimension E.
        done: Bool ``[E]``.
        fresh: Another state of the same type and shapes.

    Raises:
        InputError: For a state that is not a dataclass of tensors (the handle of a real simulator), or a ``done``
            of another length.

    Example:
        >>> from graphsnd.worlds import Dispersion
        >>> world = Dispersion(2, 3)
        >>> old, new = world.spawn(0), world.spawn(1)
        >>> mixed = merge(old, torch.tensor([False, True, False]), new)
        >>> [bool((mixed.food[e] == new.food[e]).all()) for e in range(3)]
        [False, True, False]
    """
    chosen = {}
    for name, old in _tensors(state).items():
        if done.shape != old.shape[:1]:
            raise InputError("done", f"with shape ({old.shape[0]},), one flag for each environment", shape_of(done))
        where = done.view(-1, *[1] * (old.dim() - 1))
        chosen[name] = torch.where(where, getattr(fresh, name), old)
    return dataclasses.replace(state, **chosen)  # type: ignore[type-var]


def _put_rows(state: S, rows: Tensor, fresh: S) -> S:
    put = {name: old.index_copy(0, rows, getattr(fresh, name)) for name, old in _tensors(state).items()}
    return dataclasses.replace(state, **put)  # type: ignore[type-var]


def _tensors(state: object) -> dict[str, Tensor]:
    fields = {f.name: getattr(state, f.name) for f in dataclasses.fields(state)} if _is_value(state) else {}  # type: ignore[arg-type]
    if not fields or not all(isinstance(value, Tensor) for value in fields.values()):
        fix = "A simulator keeps its state to itself: use world.reset_done(state, done, generator)."
        raise InputError("state", "to be a dataclass of tensors", type(state).__name__, fix)
    return fields


def _is_value(state: object) -> bool:
    return dataclasses.is_dataclass(state) and not isinstance(state, type)
