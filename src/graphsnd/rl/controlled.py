"""Learning of controlled policies, shared + scale x deviation: three optimisers, as in DiCo."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.control import ControlledPolicy
from graphsnd.control.actions import ActionDistribution
from graphsnd.control.policy import draw_runs
from graphsnd.rl.fused import choose_engine
from graphsnd.rl.method import Critic, Learner, Policy
from graphsnd.rl.ppo import Adam, clipped_loss
from graphsnd.rl.rollout import Minibatch
from graphsnd.rl.settings import Settings
from graphsnd.rl.streams import Streams
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Discrete
from graphsnd.teams import StackedMLP


class ScaledPolicy(Policy):
    """Controlled policies that act at a scale which stays the same within a rollout.

    Args:
        controlled: Policies of all runs.

    Attributes:
        scale: float64 ``[runs]``, written before each rollout.
    """

    def __init__(self, controlled: ControlledPolicy) -> None:
        self.controlled, self.engine = controlled, controlled.deviations.engine
        device = controlled.shared.weights[0].device
        self.scale = torch.ones(controlled.batch[0], dtype=torch.float64, device=device)

    def distribution(self, inputs: Tensor) -> ActionDistribution:
        """Return the action distribution, batch ``[runs, agents, rows]``."""
        return self.controlled.distribution(inputs, self.scale)


class StackedCritic(Critic):
    """A critic for every agent, run by the same engine as the policies.

    Args:
        network: Networks with batch ``(runs, agents)`` and one output.
    """

    def __init__(self, network: StackedMLP) -> None:
        self.network = network

    def values(self, inputs: Tensor) -> Tensor:
        """Return values for prepared inputs, ``[runs, agents, rows]``."""
        return self.network(inputs).squeeze(-1)


def make_networks(world: World, settings: Settings, streams: Sequence[Streams]) -> tuple[ScaledPolicy, StackedCritic]:
    """Draw the networks of all runs, and choose the engine that runs them."""
    space = world.actions
    kind, actions = ("categorical", space.count) if isinstance(space, Discrete) else ("tanh-normal", space.features)
    sources, device = [each.weights for each in streams], world.device
    policy = ControlledPolicy.create(
        world.agents,
        world.observation_features,
        actions,
        generators=sources,
        hidden=settings.hidden,
        activation=settings.activation,
        kind=kind,
        device=device,
    )
    sizes = (world.observation_features, *settings.hidden, 1)
    critic = draw_runs((world.agents,), sizes, sources, settings.activation, device)
    networks = (policy.shared, policy.deviations, critic)
    engine = choose_engine([each.sizes for each in networks], device, bfloat16=settings.bfloat16, tf32=settings.tf32)
    for network in networks:
        network.engine = engine
    return ScaledPolicy(policy), StackedCritic(critic)


class ControlledLearner(Learner):
    """An Adam for the policies, one for the critics, and one that pulls means back into the box of actions.

    Args:
        policy: Policies of all runs.
        critic: Critics of all runs.
        settings: Learning rates and the rest.

    Attributes:
        sums: ``[len(statistics), runs]``, added up over gradient steps.
    """

    statistics = ("value_loss", "overflow")

    def __init__(self, policy: ScaledPolicy, critic: StackedCritic, settings: Settings) -> None:
        self.policy, self.critic, self.clip = policy.controlled, critic.network, settings.clip
        actors, critics = list(self.policy.parameters()), list(self.critic.parameters())
        rate, epsilon, norm = settings.learning_rate, settings.epsilon, settings.max_gradient_norm
        self.actor_adam = Adam(actors, learning_rate=rate, max_norm=norm, epsilon=epsilon)
        self.critic_adam = Adam(critics, learning_rate=rate, max_norm=norm, epsilon=epsilon)
        self.box_adam = Adam(actors, learning_rate=settings.action_learning_rate, max_norm=norm)
        self.sums = torch.zeros(
            len(self.statistics), self.policy.batch[0], dtype=torch.float64, device=actors[0].device
        )
        # If gradients flow through the estimate, it would have to be captured too.
        self.capturable = not settings.differentiable
        self.fused = can_fuse(self.policy, differentiable=settings.differentiable)

    def learn(self, minibatch: Minibatch, scale: Tensor | None = None) -> None:
        """Take one step of each optimiser: policies, critics, and means that left the box."""
        assert scale is not None
        loss = policy_losses(self.policy, minibatch, scale, self.clip, fused=self.fused).sum()
        self.actor_adam.step(torch.autograd.grad(loss, self.actor_adam.parameters))
        errors = (self.critic(minibatch.observations).squeeze(-1) - minibatch.returns).square().mean((1, 2))
        self.sums[0] += errors.detach()
        self.critic_adam.step(torch.autograd.grad(errors.sum(), self.critic_adam.parameters))
        if self.policy.kind != "categorical":
            self.pull_inside(minibatch.observations, scale.detach())

    def pull_inside(self, seen: Tensor, scale: Tensor) -> None:
        """Minimise the square of the largest distance by which an agent's mean left [-1, 1], mean over samples.

        Only one agent of a sample has a gradient, and only where it is outside. So all agents are evaluated without
        gradients, and then only those agents with gradients: a hundredth of all or less.
        """
        if seen.is_cuda and not self.policy.deviations.engine.fused:
            self.pull_all_inside(seen, scale)  # plain torch would have to wait for the number of rows
            return
        over, agent = largest_overflow(self.policy, seen, scale, fused=self.fused)
        self.sums[1] += over.sqrt().mean(1)
        outside = over > 0
        # Checking is free on a CPU. Without overflow the gradient is 0.
        if not seen.is_cuda and not bool(outside.any()):
            self.box_adam.step_without_gradient()
            return
        loc = self.policy.means_of(seen, agent, outside, scale)
        self._step_box((squared_overflow(loc) * outside).sum() / over.shape[1])

    def pull_all_inside(self, seen: Tensor, scale: Tensor) -> None:
        """Do the same with a gradient for every row."""
        over = squared_overflow(self.policy.parameters_of(seen, scale)[0]).amax(1)
        self.sums[1] += over.detach().sqrt().mean(1)
        self._step_box(over.mean(1).sum())

    def _step_box(self, loss: Tensor) -> None:
        self.box_adam.step(torch.autograd.grad(loss, self.box_adam.parameters))

    def tensors(self) -> dict[str, Tensor]:
        """Return the state needed to resume learning, by reference."""
        state = {f"policy.{name}": part.data for name, part in self.policy.named_parameters()}
        state |= {f"critic.{name}": part.data for name, part in self.critic.named_parameters()}
        for name, each in (("actor", self.actor_adam), ("critic", self.critic_adam), ("box", self.box_adam)):
            state |= {f"{name}_adam.{key}": part for key, part in each.tensors().items()}
        return state


def can_fuse(policy: ControlledPolicy, *, differentiable: bool) -> bool:
    """Return whether the fused loss can be used: for tanh-normal policies, without gradients through the scale."""
    return policy.deviations.engine.fused and policy.kind == "tanh-normal" and not differentiable


def policy_losses(
    policy: ControlledPolicy, minibatch: Minibatch, scale: Tensor, clip: float, *, fused: bool = False
) -> Tensor:
    """Return PPO's clipped loss, mean over samples and agents: ``[runs]``."""
    if fused:
        from graphsnd.rl.fused import learning

        outputs, scales = policy.outputs_of(minibatch.observations), policy.scales(scale)
        rest = (minibatch.actions, minibatch.log_probs, minibatch.advantages, scales)
        return learning.clipped_losses(*outputs, *rest, clip)
    distribution = policy.distribution(minibatch.observations, scale)
    change = distribution.log_prob(minibatch.actions) - minibatch.log_probs
    return clipped_loss(change, minibatch.advantages, clip).mean((1, 2))


@torch.no_grad()
def largest_overflow(
    policy: ControlledPolicy, seen: Tensor, scale: Tensor, *, fused: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the largest squared distance of a mean from the box in every sample, and whose: ``[runs, samples]``."""
    if fused:
        from graphsnd.rl.fused import learning

        return learning.largest_overflow(*policy.outputs_of(seen), policy.scales(scale))
    over = squared_overflow(policy.parameters_of(seen, scale)[0]).max(1)
    return over.values, over.indices


def squared_overflow(loc: Tensor) -> Tensor:
    """Return the squared distance of means ``[..., k]`` from the box [-1, 1]^k."""
    return (loc - loc.detach().clamp(-1, 1)).square().sum(-1)
