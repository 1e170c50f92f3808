"""What PPO is told, as a value."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, TypeVar

from graphsnd.errors import InputError, check_choice, check_inclusion, check_integer, number

COUNTS = ("steps", "environments", "epochs", "minibatch", "iterations", "diversity_observations")
POSITIVE = ("learning_rate", "clip", "max_gradient_norm")
SHARES = ("gamma", "gae_lambda")
POLICIES = ("gaussian", "tanh-normal")


@dataclass(frozen=True)
class Settings:
    """Independent PPO; the defaults are the paper's table for 100 agents.

    The paper's run averaged losses over agents and clipped one gradient norm for all of them, so that an agent with
    a large gradient slowed the others down. Here every agent's update is its own unless ``joint``.

    Args:
        steps: Steps of a rollout.
        environments: Environments of each run.
        gamma: Discount.
        gae_lambda: Weight of longer advantage estimates.
        clip: How far the probability ratio may count.
        learning_rate: Of Adam.
        epochs: Passes over a rollout.
        minibatch: Samples of a gradient step, for each agent.
        value_coefficient: Weight of the value loss, half a mean squared error.
        entropy_coefficient: Weight of the entropy bonus.
        max_gradient_norm: Length to which a gradient is cut, over an agent's actor and critic together.
        joint: Average losses over agents and cut one gradient norm over the whole team, as the paper's run did.
        hidden: Width of every hidden layer.
        activation: ``"tanh"`` or ``"relu"``.
        init: ``"orthogonal"`` or ``"linear"``, see :meth:`StackedMLP.create <graphsnd.teams.StackedMLP.create>`.
        actor_gain: Factor on the actor's last layer at the start.
        critic_gain: Factor on the critic's last layer at the start.
        policy: ``"gaussian"`` or ``"tanh-normal"``, where actions are continuous.
        log_std: Of a Gaussian policy at the start.
        restart: Whether every rollout begins with new episodes. If not, episodes run on and the world's horizon ends
            them.
        iterations: Rollouts, each followed by an update.
        diversity_every: Iterations between two measurements of SND, with the first and the last; 0 for never.
        diversity_observations: At most so many of the rollout's pooled observations are shown to all policies.
        diversity_probability: Of a pair, in the sampled graph.
        tf32: Whether a GPU may round matrix products of training to TF32. Diversity is always measured without.

    Raises:
        InputError: For values out of range.

    Example:
        >>> Settings.from_json(Settings(epochs=2).to_json()) == Settings(epochs=2)
        True
    """

    steps: int = 128
    environments: int = 32
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    learning_rate: float = 3e-4
    epochs: int = 4
    minibatch: int = 512
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    max_gradient_norm: float = 0.5
    joint: bool = False
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    init: str = "orthogonal"
    actor_gain: float = 0.01
    critic_gain: float = 1.0
    policy: str = "gaussian"
    log_std: float = -0.5
    restart: bool = True
    iterations: int = 500
    diversity_every: int = 25
    diversity_observations: int = 4096
    diversity_probability: float = 0.1
    tf32: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        for name in COUNTS:
            check_integer(name, getattr(self, name), "to be an integer, at least 1", low=1)
        check_integer("diversity_every", self.diversity_every, "to be an integer, at least 0", low=0)
        for width in self.hidden:
            check_integer("hidden", width, "to hold integers, at least 1", low=1)
        for name in POSITIVE:
            if not number(getattr(self, name)) > 0:
                raise InputError(name, "to be above 0", getattr(self, name))
        for name in SHARES:
            if not 0 <= number(getattr(self, name)) <= 1:
                raise InputError(name, "in [0, 1]", getattr(self, name))
        for name in ("value_coefficient", "entropy_coefficient"):
            if not number(getattr(self, name)) >= 0:
                raise InputError(name, "to be at least 0", getattr(self, name))
        check_inclusion("diversity_probability", self.diversity_probability)
        check_choice("policy", self.policy, POLICIES)

    @property
    def samples(self) -> int:
        """Samples of every agent in a rollout."""
        return self.steps * self.environments

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Settings from what :meth:`to_json` wrote.

        Raises:
            InputError: For something else than an object, and for unknown names.
        """
        try:
            found = json.loads(text)
        except ValueError as error:
            raise InputError("settings", "in JSON", str(error)) from None
        if not isinstance(found, dict):
            raise InputError("settings", "to be a JSON object", type(found).__name__)
        return cls().replace(**found)

    def replace(self, **changes: Any) -> Settings:
        """A copy with some values changed.

        Raises:
            InputError: For unknown names, with those there are.
        """
        return with_changes(self, changes)


Told = TypeVar("Told")


def with_changes(settings: Told, changes: dict[str, Any]) -> Told:
    """A copy of settings with some values changed.

    Raises:
        InputError: For unknown names, with those there are.
    """
    known = [field.name for field in dataclasses.fields(settings)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            raise InputError("settings", f"to be among {', '.join(known)}", repr(name))
    return dataclasses.replace(settings, **changes)  # type: ignore[type-var]
