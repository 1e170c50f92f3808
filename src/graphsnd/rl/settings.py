"""Settings of PPO as one frozen value, for independent and for controlled policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from typing_extensions import Self

from graphsnd.control.controllers import BOOTSTRAPS, BOUNDS, check_bounds
from graphsnd.errors import InputError, check_choice, check_integer, check_number, check_type
from graphsnd.rl.worlds.world import check_flags, store

CHOICES = {
    "activation": ("tanh", "relu"), "init": ("orthogonal", "linear"), "policy": ("gaussian", "tanh-normal"),
    "critic": ("independent", "central"), "bootstrap": BOOTSTRAPS,
}  # fmt: skip
BRIEF = 2**25  # multiply-adds of a product that take a core about 1 ms, less than a time slice of the scheduler
MAY_BE_0 = ("threads", "diversity_every")  # other integers are at least 1
RANGES: dict[str, dict[str, Any]] = {
    "learning_rate": {"above": 0}, "clip": {"above": 0}, "max_gradient_norm": {"above": 0},
    "gamma": {"low": 0, "high": 1}, "gae_lambda": {"low": 0, "high": 1},
    "value_coefficient": {"low": 0}, "entropy_coefficient": {"low": 0},
    "diversity_probability": {"above": 0, "high": 1}, "actor_gain": {}, "critic_gain": {}, "log_std": {},
    "action_learning_rate": {"above": 0}, "epsilon": {"above": 0}, "tau": {"above": 0, "high": 1},
}  # fmt: skip
# Settings that only one of the two kinds of training reads.
INDEPENDENT = (
    "value_coefficient", "entropy_coefficient", "anneal", "critic", "joint", "init", "actor_gain", "critic_gain",
    "policy", "log_std", "diversity_every", "diversity_observations", "diversity_probability",
)  # fmt: skip
CONTROLLED = (
    "epsilon", "action_learning_rate", "tau", "bootstrap", "bounds", "differentiable", "observations",
    "audit_observations", "bfloat16",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Settings of PPO, or of MAPPO with a central critic, and of DiCo where diversity is controlled.

    Independent policies: the paper's run averaged losses over agents and clipped one gradient norm for all of them, so
    that an agent with a large gradient slowed the others down. Here every agent's update is its own unless ``joint``.

    Controlled policies: each of three gradients (policy, critics, means outside the box) is clipped by its norm over
    all agents of a run.

    Args:
        iterations: Rollouts, each followed by an update.
        environments: Environments of each run.
        steps: Steps of a rollout.
        epochs: Passes over a rollout.
        minibatch: Samples of a gradient step for each agent; a sample is one step of one environment.
        learning_rate: Learning rate of Adam.
        max_gradient_norm: Length to which gradients are clipped.
        gamma: Discount.
        gae_lambda: Weight of longer advantage estimates.
        clip: Largest change of the probability ratio that counts.
        normalise_advantages: Whether advantages have mean 0 and standard deviation 1 for each run and agent.
        bootstrap_time_limits: Whether the critic's value stands in for what follows a time limit. If not, time limits
            end returns as terminations do.
        restart: Whether every rollout starts new episodes. If not, episodes run on and the world's horizon ends them.
        hidden: Width of every hidden layer.
        activation: ``"tanh"`` or ``"relu"``.
        tf32: Whether a GPU may round matrix products of training to TF32. Diversity is always measured without.
        threads: Number of torch's threads while :func:`~graphsnd.rl.train` trains on a CPU. 0 chooses by the size
            of the work: :func:`~graphsnd.rl.loop.choose_threads`.
        value_coefficient: Weight of the value loss, half a mean squared error. This and the next twelve are for
            independent policies.
        entropy_coefficient: Weight of the entropy bonus.
        anneal: Whether the learning rate falls linearly to 0 over all iterations; resuming with more raises it.
        critic: ``"independent"``, one for each agent, which sees what its agent sees (IPPO), or ``"central"``, one for
            the team, which sees what all agents see (MAPPO); actors are each agent's own in any case.
        joint: Average losses over agents and clip one gradient norm over the whole team, as the paper's run did. If
            not, the norm is over each agent's actor and critic together. A central critic has a norm of its own.
        init: ``"orthogonal"`` or ``"linear"``, see :meth:`StackedMLP.create <graphsnd.teams.StackedMLP.create>`.
        actor_gain: Factor on the actor's last layer at the start.
        critic_gain: Factor on the critic's last layer at the start.
        policy: ``"gaussian"`` or ``"tanh-normal"``, where actions are continuous.
        log_std: Logarithm of the standard deviation of a Gaussian policy at the start.
        diversity_every: Iterations between two measurements of SND, with the first and the last; 0 for never.
        diversity_observations: Largest number of the rollout's pooled observations on which SND is measured.
        diversity_probability: Probability of a pair, in the sampled graph.
        epsilon: Epsilon of the two Adams of policy and critics, which both have ``learning_rate``. This and all that
            follow are for controlled policies.
        action_learning_rate: Learning rate of the third Adam, which pulls means back into [-1, 1].
        tau: Weight of a new measurement in the estimate.
        bootstrap: First estimate of a controller, ``"measured"`` or ``"target"``.
        bounds: Least and largest scale.
        differentiable: Whether gradients flow through the estimate.
        observations: Observations of each minibatch on which diversity is estimated. The reference showed every
            observation of the minibatch to every network, which was 87% of its arithmetic with 50 agents.
        audit_observations: Observations of each rollout on which it is audited.
        bfloat16: Whether a GPU may round features and weights to bfloat16 for the products of training, where the
            networks fit its programs (two hidden layers of 64, 128 or 256). Weights, sums and audits stay float32.

    Raises:
        InputError: For values out of range.

    Example:
        >>> Settings().replace(epochs=2).optimiser_steps
        16
    """

    iterations: int = 100
    environments: int = 32
    steps: int = 128
    epochs: int = 4
    minibatch: int = 512
    learning_rate: float = 3e-4
    max_gradient_norm: float = 0.5
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    normalise_advantages: bool = True
    bootstrap_time_limits: bool = True
    restart: bool = True
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    tf32: bool = True
    threads: int = 0
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.01
    anneal: bool = False
    critic: str = "independent"
    joint: bool = False
    init: str = "orthogonal"
    actor_gain: float = 0.01
    critic_gain: float = 1.0
    policy: str = "gaussian"
    log_std: float = -0.5
    diversity_every: int = 25
    diversity_observations: int = 4096
    diversity_probability: float = 0.1
    epsilon: float = 1e-5
    action_learning_rate: float = 3e-5
    tau: float = 0.05
    bootstrap: str = "measured"
    bounds: tuple[float, float] = BOUNDS
    differentiable: bool = False
    observations: int = 512
    audit_observations: int = 1024
    bfloat16: bool = True

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # values come from files too
            name, value = field.name, getattr(self, field.name)
            if name in RANGES:
                store(self, **{name: check_number(name, value, **RANGES[name])})
            elif type(field.default) is int:
                low = 0 if name in MAY_BE_0 else 1
                store(self, **{name: check_integer(name, value, f"to be an integer, at least {low}", low=low)})
            elif type(field.default) is bool:
                check_flags(self, name)
            elif name in CHOICES:
                check_choice(name, value, CHOICES[name])
        check_type("hidden", self.hidden, (list, tuple), "to be a list of widths")
        expected = "to hold integers, at least 1"
        store(self, hidden=tuple(check_integer("hidden", width, expected, low=1) for width in self.hidden))
        store(self, bounds=check_bounds(self.bounds))
        if self.normalise_advantages and self.samples < 2:
            fix = "The standard deviation of one advantage is not a number; use normalise_advantages=False."
            raise InputError("steps x environments", "to be at least 2", self.samples, fix)

    @property
    def samples(self) -> int:
        """Samples of every agent in a rollout."""
        return self.steps * self.environments

    @property
    def optimiser_steps(self) -> int:
        """Gradient steps of an iteration."""
        return self.epochs * -(-self.samples // self.minibatch)

    @property
    def annealing_steps(self) -> int:
        """Gradient steps over which the learning rate falls; 0 where it stays."""
        return self.iterations * self.optimiser_steps if self.anneal else 0

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some values changed.

        Raises:
            InputError: For unknown names, with those there are.
        """
        for name in changes:
            check_choice("settings", name, [field.name for field in dataclasses.fields(self)])
        return dataclasses.replace(self, **changes)


def largest_product(settings: Settings, agents: int, rows: int | None = None) -> int:
    """Return the multiply-adds of the largest product of one run, on ``rows`` of each agent or a minibatch."""
    rows = min(settings.minibatch, settings.samples) if rows is None else rows
    return agents * rows * max(settings.hidden, default=1) ** 2


def check_different(name: str, values: Collection[Any]) -> None:
    """Raise when there are no ``values``, or some are equal."""
    if not values or len(set(values)) < len(values):
        raise InputError(name, "to be different, at least one", values)
