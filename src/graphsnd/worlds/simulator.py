"""Real simulators behind the protocol: their state is theirs, and what passes around is a handle.

A simulator changes in place. So its handle is good for one step: the step gives the next handle, and using an old one
is an error instead of a silent jump in time. Nothing else differs for a trainer that resets through
:meth:`World.reset_done <graphsnd.worlds.world.World.reset_done>`; :func:`merge <graphsnd.worlds.world.merge>` cannot
work and says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from graphsnd.errors import InputError
from graphsnd.graphs.draws import integers, source


class Simulator:
    """The one mutable thing: environments, and how often they were advanced."""

    def __init__(self, environments: Any) -> None:
        self.environments = environments
        self.age = 0


@dataclass(frozen=True, eq=False)
class Handle:
    """The state of a simulator at one moment; opaque."""

    simulator: Simulator
    age: int
    observations: Tensor  # [E, N, f]

    def open(self) -> Any:
        """The environments, if nobody has advanced them since.

        Raises:
            InputError: For a handle of the past.
        """
        if self.age != self.simulator.age:
            got = f"one from {self.simulator.age - self.age} steps or resets ago"
            fix = "A simulator cannot go back: use the state that the last step or reset returned."
            raise InputError("state", "to be the newest state of this simulator", got, fix)
        return self.simulator.environments

    def advance(self, observations: Tensor) -> Handle:
        """The handle that replaces this one."""
        self.simulator.age += 1
        return Handle(self.simulator, self.simulator.age, observations)


def seeds(generator: Any, count: int) -> list[int]:
    """Seeds below 2**31 from a generator or a seed, for libraries that keep their own random state."""
    drawn_from, _ = source(generator, None)
    found: list[int] = integers(count, 2**31, drawn_from).tolist()
    return found
