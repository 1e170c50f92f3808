"""The four objects of a training: policy, critic, learner and companion.

The trainer's loop is the same for all of them. MAPPO is one more critic, which reads the inputs of all agents side by
side.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from graphsnd.control.actions import ActionDistribution
from graphsnd.teams.engine import PLAIN, Engine
from graphsnd.teams.team import Team

if TYPE_CHECKING:
    from graphsnd.rl.cuda import Stopwatch
    from graphsnd.rl.log import Outcome, Row, Run
    from graphsnd.rl.rollout import Minibatch, RolloutBuffer


class Policy:
    """A policy for every agent of all runs."""

    engine: Engine = PLAIN  # prepares and gathers observations

    def prepare(self, observations: Tensor) -> Tensor:
        """Return observations ``[runs, agents, rows, features]`` as the networks read them, critics too."""
        return self.engine.prepare(observations)

    def distribution(self, inputs: Tensor) -> ActionDistribution:
        """Return the action distribution for prepared inputs, batch ``[runs, agents, rows]``."""
        raise NotImplementedError

    def frozen(self) -> AbstractContextManager[None]:
        """Return a context in which parameters do not change, so that they are prepared only once."""
        return nullcontext()


class Critic:
    """A value for every agent of all runs."""

    def values(self, inputs: Tensor) -> Tensor:
        """Return values for inputs that the policy prepared, ``[runs, agents, rows]``."""
        raise NotImplementedError

    def frozen(self) -> AbstractContextManager[None]:
        """Return a context in which parameters do not change, so that they are prepared only once."""
        return nullcontext()


class Learner:
    """How policies and critics learn from a minibatch."""

    capturable: bool = True  # whether learn() may be captured as a CUDA graph
    statistics: tuple[str, ...]  # names of columns in the log
    sums: Tensor  # [statistics, runs], of these, added up over gradient steps

    def update(self) -> AbstractContextManager[None]:
        """Return a context for the gradient steps after a rollout."""
        return nullcontext()

    def learn(self, minibatch: Minibatch, scale: Tensor | None = None) -> None:
        """Take one gradient step, at the scale that the companion chose."""
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """Return the state needed to resume learning, by reference."""
        raise NotImplementedError


class Companion:
    """Controls diversity beside learning, or measures it every few iterations."""

    runs: Sequence[Run]

    def team(self, run: int, *, about: dict[str, Any] | None = None) -> Team:
        """Return a copy of the policies of one run, to measure and to save."""
        raise NotImplementedError

    def choose(self, part: Tensor) -> Tensor:
        """Return what diversity is measured on, of a rollout's ``[runs, steps, environments, agents, ...]``.

        Returns:
            ``[runs, observations, ...]``.
        """
        raise NotImplementedError

    def before_rollout(self) -> None:
        """Set what policies act with."""

    def scale(self) -> Tensor | None:
        """Return the present scale of all runs; None where there is none."""
        return None

    def after_rollout(self, buffer: RolloutBuffer, iteration: int) -> None:
        """Inspect the policies that acted, before they learn."""

    def before_step(self, samples: Minibatch, buffer: RolloutBuffer, index: Tensor, watch: Stopwatch) -> Tensor | None:
        """Return the scale at which a minibatch is learnt from; None where there is none."""
        return None

    def rows(self, outcome: Outcome) -> Sequence[Row]:
        """Return what is logged, a row for each run."""
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        """Return its state, by reference."""
        return {}


class Method(NamedTuple):
    """The four together."""

    policy: Policy
    critic: Critic
    learner: Learner
    companion: Companion
