"""What PPO and the controller are told, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphsnd.control import Bootstrap
from graphsnd.control.dico import BOUNDS, check_bounds
from graphsnd.errors import InputError, check_choice, check_integer, number
from graphsnd.training.settings import with_changes

COUNTS = ("steps", "environments", "passes", "minibatch", "iterations", "observations", "audit_observations")
POSITIVE = ("learning_rate", "action_learning_rate", "epsilon", "clip", "max_gradient_norm")
SHARES = ("gamma", "gae_lambda")
BOOTSTRAPS = tuple(each.value for each in Bootstrap)


@dataclass(frozen=True)
class ControlSettings:
    """DiCo's own PPO settings; the defaults are the paper's study with 10 agents (with 50 it has 120 environments).

    Args:
        iterations: Rollouts, each followed by an update.
        environments: Environments of each run.
        steps: Steps of a rollout.
        passes: Over a rollout.
        minibatch: Frames of a gradient step; a frame is one step of one environment, with all its agents.
        learning_rate: Of the two Adams of policy and critics.
        epsilon: Of those two.
        action_learning_rate: Of the third Adam, which pulls means back into [-1, 1].
        max_gradient_norm: Length to which each of the three gradients is cut, over all agents of a run.
        gamma: Discount.
        gae_lambda: Weight of longer advantage estimates.
        clip: How far the probability ratio may count.
        hidden: Width of every hidden layer.
        activation: ``"tanh"`` or ``"relu"``.
        tau: Weight of a new measurement in the estimate.
        bootstrap: ``"measured"`` or ``"target"``.
        bounds: Least and largest scale.
        through: Whether gradients flow through the estimate.
        observations: Of each minibatch that an estimate looks at. The reference showed every observation of the
            minibatch to every network, which was 87% of its arithmetic with 50 agents.
        audit_observations: Of each rollout that the audit looks at.
        tf32: Whether a GPU may round matrix products of training to TF32. Audits are always without.
        bfloat16: Whether a GPU may round features and weights to bfloat16 for the products of training, where the
            networks fit its programs (two hidden layers of 64, 128 or 256). Weights, sums and audits stay float32.

    Raises:
        InputError: For values out of range.

    Example:
        >>> ControlSettings(environments=8).replace(passes=3).frames
        800
    """

    iterations: int = 167
    environments: int = 600
    steps: int = 100
    passes: int = 45
    minibatch: int = 4096
    learning_rate: float = 5e-5
    epsilon: float = 1e-5
    action_learning_rate: float = 3e-5
    max_gradient_norm: float = 5.0
    gamma: float = 0.9
    gae_lambda: float = 0.9
    clip: float = 0.2
    hidden: tuple[int, ...] = (256, 256)
    activation: str = "tanh"
    tau: float = 0.01
    bootstrap: str = "measured"
    bounds: tuple[float, float] = BOUNDS
    through: bool = False
    observations: int = 2048
    audit_observations: int = 4096
    tf32: bool = True
    bfloat16: bool = True

    def __post_init__(self) -> None:
        for name in ("hidden", "bounds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in COUNTS:
            check_integer(name, getattr(self, name), "to be an integer, at least 1", low=1)
        for width in self.hidden:
            check_integer("hidden", width, "to hold integers, at least 1", low=1)
        for name in POSITIVE:
            if not number(getattr(self, name)) > 0:
                raise InputError(name, "to be above 0", getattr(self, name))
        for name in SHARES:
            if not 0 <= number(getattr(self, name)) <= 1:
                raise InputError(name, "in [0, 1]", getattr(self, name))
        if not 0 < number(self.tau) <= 1:
            raise InputError("tau", "in (0, 1]", self.tau)
        check_choice("bootstrap", self.bootstrap, BOOTSTRAPS)
        check_bounds(self.bounds, lowest=0.0)

    @property
    def frames(self) -> int:
        """Frames of a rollout."""
        return self.steps * self.environments

    @property
    def optimiser_steps(self) -> int:
        """Gradient steps of an iteration, each with one estimate."""
        return self.passes * -(-self.frames // self.minibatch)

    def replace(self, **changes: Any) -> ControlSettings:
        """A copy with some values changed.

        Raises:
            InputError: For unknown names, with those there are.
        """
        return with_changes(self, changes)


PRESETS = {
    "paper": ControlSettings(),
    # For a CPU: a hundredth of the work of an iteration, with steps that are larger in return.
    "small": ControlSettings(
        environments=32, passes=30, minibatch=800, learning_rate=1e-4, hidden=(64, 64), observations=512,
        audit_observations=1024, iterations=40,
    ),
}  # fmt: skip
