"""Independent PPO: every agent of every run has an actor and a critic of its own. MAPPO: one critic for the team."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphsnd.control.actions import ActionDistribution, NormalActions, action_distribution
from graphsnd.kernels.threads import limit_threads, map_threads
from graphsnd.rl.columns import Layers, fold_columns, run_folded, to_columns
from graphsnd.rl.method import Critic, Learner, Policy
from graphsnd.rl.ppo import Adam, clipped_loss
from graphsnd.rl.rollout import Minibatch
from graphsnd.rl.settings import Settings
from graphsnd.rl.streams import Streams
from graphsnd.rl.worlds import World
from graphsnd.rl.worlds.world import Discrete
from graphsnd.teams import (
    CategoricalHead,
    GaussianHead,
    StackedMLP,
    StackedTeam,
    TanhNormalHead,
)
from graphsnd.teams.heads import Head

ALIGNED = 4  # floats; a GPU multiplies matrices faster that begin at multiples of 16 bytes
MakeHead = Callable[[Sequence[int]], Head]  # of the networks' batch
Losses = Callable[..., tuple[Tensor, Tensor]]  # of a block and its share of tensors: a loss, and statistics
CACHED = 2**19  # floats of a hidden layer that a block may hold on a CPU, so that what it computes stays in the cache


class Block:
    """Consecutive networks whose layers are views of their parameters.

    Args:
        flat: ``[networks, parameters]``.
        batch: The shape of ``networks``, e.g. ``(runs, agents)``.
        sizes: Layer sizes.
        activation: Activation of the hidden layers.
        head: Rule that turns outputs into distributions; its parameters become views too.
    """

    def __init__(
        self, flat: Tensor, batch: Sequence[int], sizes: Sequence[int], activation: str, head: Head | None = None
    ) -> None:
        self.flat, self.head = flat, head
        self.leaves: list[nn.Parameter] = []
        self.folded: Layers | None = None
        layers = [(self._view((*batch, a, b)), self._view((*batch, 1, b))) for a, b in pairwise(sizes)]
        self.network = StackedMLP(*zip(*layers, strict=True), activation=activation)
        for name, old in [] if head is None else list(head.named_parameters()):
            setattr(head, name, self._view(old.shape))

    def run(self, inputs: Tensor) -> Tensor:
        """Return outputs ``[*batch, rows, out]`` for columns ``[networks, features, rows]``."""
        outputs = run_folded(inputs, self.folded or fold_columns(self.network), self.network.activation)
        return outputs.mT.unflatten(0, self.network.batch)

    def distribution(self, inputs: Tensor) -> ActionDistribution:
        """Return the action distribution, batch ``[*batch, rows]``, for columns ``[networks, features, rows]``."""
        assert self.head is not None
        distribution = action_distribution(self.head, self.run(inputs))
        if isinstance(distribution, NormalActions) and self.head.batch is not None:
            # One scale for all rows: its logarithm need not be taken for each.
            return dataclasses.replace(distribution, scale=distribution.scale[..., :1, :])
        return distribution

    def gradient(self, loss: Tensor) -> Tensor:
        """Return the derivative of ``loss`` in the layout of ``flat``."""
        parts = torch.autograd.grad(loss, self.leaves)
        return torch.cat([_pad(part.reshape(len(self.flat), -1)) for part in parts], -1)

    def _view(self, shape: Sequence[int]) -> nn.Parameter:
        """Return the next piece of the parameters, which becomes a leaf."""
        start = sum(_padded_size(leaf.numel() // len(self.flat)) for leaf in self.leaves)
        piece = self.flat.detach()[:, start : start + math.prod(shape) // len(self.flat)]
        self.leaves.append(nn.Parameter(piece.view(*shape)))
        return self.leaves[-1]


class IndependentNetworks:
    """One network for every agent of every run: ``flat[run, agent]`` holds everything that it learns.

    An optimiser thus works on a single tensor, and an agent's gradient norm is the norm of a row.

    Args:
        flat: ``[runs, agents, parameters]``.
        sizes: Layer sizes.
        settings: Activation, and the size of a minibatch.
        head: Makes the head of a batch of networks, where it has parameters.

    Attributes:
        whole: All networks, to act with.
        blocks: The same networks in pieces that fit a CPU's cache, to learn with; on a GPU a single one.
    """

    def __init__(self, flat: Tensor, sizes: Sequence[int], settings: Settings, head: MakeHead | None = None) -> None:
        self.flat, self.batch, networks = flat, tuple(flat.shape[:2]), flat.flatten(0, 1)
        count = len(networks)

        def block(first: int, last: int, batch: Sequence[int]) -> Block:
            own = None if head is None else head(batch).to(flat.device)
            return Block(networks[first:last], batch, sizes, settings.activation, own)

        self.whole = block(0, count, self.batch)
        widest = max(settings.hidden, default=1) * settings.minibatch
        self.size = count if flat.device.type != "cpu" else max(1, CACHED // widest)
        ends = [(first, min(first + self.size, count)) for first in range(0, count, self.size)]
        self.blocks = [block(first, last, (last - first,)) for first, last in ends]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Return a context in which parameters do not change, and are folded only once."""
        self.whole.folded = fold_columns(self.whole.network)
        try:
            yield
        finally:
            self.whole.folded = None


class IndependentPolicy(IndependentNetworks, Policy):
    """The actors.

    Args:
        world: World, which defines observations and actions.
        settings: Sizes and initial values.
        streams: Random stream of each run; weights are drawn from them.

    Example:
        >>> from graphsnd.rl.worlds import Navigation
        >>> streams = [Streams.make(0, torch.device("cpu"))]
        >>> IndependentPolicy(Navigation(3, 2), Settings(), streams).flat.shape
        torch.Size([1, 3, 5512])
    """

    def __init__(self, world: World, settings: Settings, streams: Sequence[Streams]) -> None:
        sizes = (world.observation_features, *settings.hidden, make_head(world, settings, ()).outputs)
        own = make_head(world, settings, (world.agents,)).parameters()
        extra = [torch.full((world.agents, part[0].numel()), settings.log_std) for part in own]
        drawn = [_draw(each, sizes, world.agents, settings, settings.actor_gain, extra) for each in streams]
        flat = torch.stack(drawn).to(world.device)
        super().__init__(flat, sizes, settings, lambda batch: make_head(world, settings, batch))
        assert self.whole.head is not None
        self.head = self.whole.head

    def prepare(self, observations: Tensor) -> Tensor:
        """Return observations ``[runs, agents, rows, features]`` as columns ``[networks, features, rows]``."""
        return to_columns(observations)

    def distribution(self, inputs: Tensor) -> ActionDistribution:
        """Return the action distribution for columns, batch ``[runs, agents, rows]``."""
        return self.whole.distribution(inputs)

    def team(self, run: int, about: dict[str, Any] | None = None) -> StackedTeam:
        """Return a copy of the actors of one run."""
        network = self.whole.network.select(run)
        own: dict[str, Any] = {} if self.head.batch is None else {"batch": network.batch}
        head = type(self.head)(self.head.actions, **self.head.options(), **own).to(self.flat.device)
        head.load_state_dict({name: part[run] for name, part in self.head.state_dict().items()})
        return StackedTeam(network, head, about=about)


class IndependentCritic(IndependentNetworks, Critic):
    """The critics: each judges its own agent by what that agent observes.

    Args:
        world: World, which defines observations.
        settings: Sizes and initial values.
        streams: Random stream of each run; weights are drawn from them, after the actors'.
    """

    central: ClassVar[bool] = False  # whether a run has one critic for all its agents

    def __init__(self, world: World, settings: Settings, streams: Sequence[Streams]) -> None:
        self.agents, count = world.agents, 1 if self.central else world.agents
        sizes = (world.agents // count * world.observation_features, *settings.hidden, 1)
        drawn = [_draw(each, sizes, count, settings, settings.critic_gain) for each in streams]
        super().__init__(torch.stack(drawn).to(world.device), sizes, settings)

    def values(self, inputs: Tensor) -> Tensor:
        """Return values for columns, ``[runs, agents, rows]``."""
        return self.whole.run(self.share_out(inputs)).squeeze(-1).expand(-1, self.agents, -1)

    def share_out(self, parts: Tensor) -> Tensor:
        """Return ``[runs * agents, features, rows]`` as ``[critics, features of all its agents, rows]``."""
        return parts.reshape(len(self.whole.flat), -1, parts.shape[-1])


class CentralCritic(IndependentCritic):
    r"""MAPPO's critic: it reads the observations of all agents side by side and gives one value for the team.

    Its loss is :math:`\tfrac1{2nm} \sum_{i,t} (V_t - R_{i,t})^2`, so V is the mean of the agents' returns. That is
    BenchMARL's ``share_param_critic=True``.
    """

    central = True


class IndependentLearner(Learner):
    """Adam over actors and critics, with a gradient norm for each agent, or for each run with ``joint``.

    A central critic belongs to no agent: it has an Adam and a norm of its own.

    Args:
        policy: The actors.
        critic: The critics.
        settings: Coefficients of the loss.

    Attributes:
        sums: ``[len(statistics), runs]``, means over agents, added up over gradient steps.
    """

    statistics = ("policy_loss", "value_loss", "entropy", "kl")

    def __init__(self, policy: IndependentPolicy, critic: IndependentCritic, settings: Settings) -> None:
        self.policy, self.critic, self.settings = policy, critic, settings
        together = {"adam": [policy.flat, critic.flat]}
        apart = {"adam": [policy.flat], "critic_adam": [critic.flat]}
        self.adams = {
            name: Adam(
                parameters,
                learning_rate=settings.learning_rate,
                max_norm=settings.max_gradient_norm,
                per_agent=not settings.joint,
                anneal=settings.annealing_steps,
            )
            for name, parameters in (apart if critic.central else together).items()
        }
        self.sums = torch.zeros(len(self.statistics), policy.batch[0], device=policy.flat.device)
        self.threads = 1

    @contextmanager
    def update(self) -> Iterator[None]:
        """Let threads take blocks of networks inside, if there are enough: torch's threads wait at every operation."""
        threads = torch.get_num_threads()
        self.threads = threads if len(self.policy.blocks) >= threads else 1
        with limit_threads(threads if self.threads == 1 else 1):
            yield

    def learn(self, minibatch: Minibatch, scale: Tensor | None = None) -> None:
        """Take one gradient step; there is no scale."""
        actor, critic, statistics = self.gradients(minibatch)
        gradients = iter((actor, critic))
        for adam in self.adams.values():
            adam.step([next(gradients) for _ in adam.parameters])
        self.sums += statistics.mean(1).T

    def gradients(self, minibatch: Minibatch) -> tuple[Tensor, Tensor, Tensor]:
        r"""Differentiate the losses, summed over runs and agents so that no agent affects another.

        .. math:: L = L_\pi + c_V \tfrac1{2m} \sum (V - R)^2 - c_H H

        With ``settings.joint`` the mean over agents, as in the paper's run. Runs are summed in any case.

        Returns:
            Gradients of actors and critics, ``[runs, agents, parameters]`` (of a central critic ``[runs, 1, ...]``),
            and ``[runs, agents, len(statistics)]``.
        """
        settings = self.settings
        share, critic_share = (1 / each.batch[1] if settings.joint else 1.0 for each in (self.policy, self.critic))
        inputs = self.policy.prepare(minibatch.observations)
        # Continuous actions lie in memory as the policies' outputs do; elementwise work on both is then one stream.
        actions = minibatch.actions.flatten(0, 1)
        actions = to_columns(minibatch.actions).mT if actions.dim() == 3 else actions
        before, advantages = minibatch.log_probs.flatten(0, 1), minibatch.advantages.flatten(0, 1)
        judged, returns = (self.critic.share_out(part) for part in (inputs, minibatch.returns))

        def policy_losses(block: Block, inputs: Tensor, *own: Tensor) -> tuple[Tensor, Tensor]:
            actions, before, advantages = own
            distribution = block.distribution(inputs)
            change = distribution.log_prob(actions) - before
            loss, entropy = clipped_loss(change, advantages, settings.clip).mean(-1), distribution.entropy().mean(-1)
            # The divergence of the old policy from the new one by an estimator that is never negative.
            kl = (change.detach().exp() - 1 - change.detach()).mean(-1)
            total = (loss - settings.entropy_coefficient * entropy).sum() * share
            return total, torch.stack([loss, entropy, kl], -1)

        def value_losses(block: Block, inputs: Tensor, returns: Tensor) -> tuple[Tensor, Tensor]:
            loss = 0.5 * (block.run(inputs).mT - returns).square().mean((-2, -1))  # over the critic's agents
            return settings.value_coefficient * loss.sum() * critic_share, loss.unsqueeze(-1)

        actors = self.policy, policy_losses, (inputs, actions, before, advantages)
        critics = self.critic, value_losses, (judged, returns)
        (actor, (loss, entropy, kl)), (critic, (value,)) = differentiate((actors, critics), self.threads)
        return actor, critic, torch.stack([loss, value.expand_as(loss), entropy, kl], -1)

    def tensors(self) -> dict[str, Tensor]:
        """Return the state needed to resume learning, by reference."""
        state = {"policy": self.policy.flat, "critic": self.critic.flat}
        return state | {
            f"{at}.{name}": part for at, adam in self.adams.items() for name, part in adam.tensors().items()
        }


def differentiate(
    jobs: Sequence[tuple[IndependentNetworks, Losses, Sequence[Tensor]]], threads: int
) -> Iterator[tuple[Tensor, tuple[Tensor, ...]]]:
    """Differentiate losses of some networks block by block, all in one go: threads wait for each other once.

    Args:
        jobs: Networks; a function from a block and its share of tensors to a loss, a sum over networks, and statistics
            of each network, ``[networks, count]``; and those tensors, each ``[networks, ...]``.
        threads: Number of threads; each takes a block.

    Yields:
        For each job the gradient, ``[runs, agents, parameters]``, and each of the statistics, ``[runs, agents]``.
    """

    def work(job: int, place: int) -> tuple[Tensor, Tensor]:
        networks, losses, parts = jobs[job]
        block, first = networks.blocks[place], place * networks.size
        with torch.enable_grad():
            loss, numbers = losses(block, *(part[first : first + networks.size] for part in parts))
            return block.gradient(loss), numbers.detach()

    shares = [(job, place) for job, (networks, *_) in enumerate(jobs) for place in range(len(networks.blocks))]
    found = map_threads(work, shares, threads)
    for networks, *_ in jobs:
        pairs = zip(*islice(found, len(networks.blocks)), strict=True)
        gradients, statistics = (torch.cat(each) for each in pairs)
        yield gradients.view_as(networks.flat), statistics.unflatten(0, networks.batch).unbind(-1)


def make_head(world: World, settings: Settings, batch: Sequence[int]) -> Head:
    """Return the head that the world's actions need."""
    if isinstance(world.actions, Discrete):
        return CategoricalHead(world.actions.count)
    if settings.policy == "tanh-normal":
        return TanhNormalHead(world.actions.features)
    return GaussianHead(world.actions.features, batch=batch)


def _draw(
    streams: Streams, sizes: Sequence[int], agents: int, settings: Settings, gain: float, extra: Sequence[Tensor] = ()
) -> Tensor:
    """Return initial parameters of one run, ``[agents, parameters]``; ``extra`` come after the network's."""
    network = StackedMLP.create(
        (agents,), sizes, generator=streams.weights, activation=settings.activation, init=settings.init,
        head_gain=gain,
    )  # fmt: skip
    parts = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        parts += [weight.detach().reshape(agents, -1), bias.detach().reshape(agents, -1)]
    return torch.cat([_pad(part) for part in [*parts, *extra]], -1)


def _padded_size(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _pad(part: Tensor) -> Tensor:
    """Add zeros up to the next aligned place. Their gradient is zero, so they stay."""
    missing = _padded_size(part.shape[-1]) - part.shape[-1]
    return F.pad(part, (0, missing)) if missing else part
