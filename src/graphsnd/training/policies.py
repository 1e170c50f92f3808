"""Actors and critics of all agents of all runs, as one tensor of parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphsnd.teams import (
    ActionDistribution,
    CategoricalHead,
    GaussianHead,
    Head,
    NormalActions,
    StackedMLP,
    StackedTeam,
    TanhNormalHead,
)
from graphsnd.training.columns import Layers, apply, fold, run
from graphsnd.training.settings import Settings
from graphsnd.training.streams import Streams
from graphsnd.worlds import Discrete, World

ALIGNED = 4  # floats; a GPU multiplies matrices faster that begin at multiples of 16 bytes
CACHED = 2**19  # floats of a hidden layer that a block may hold on a CPU, so that what it computes stays in the cache


class Block:
    """Some networks in a row, with layers that are views of their parameters.

    Args:
        flat: ``[networks, parameters]``.
        sizes: Layer sizes of actor and critic.
        head: How actors' outputs are read; its own parameters become views too.
        activation: Of the hidden layers.
    """

    def __init__(self, flat: Tensor, sizes: Sequence[Sequence[int]], head: Head, activation: str) -> None:
        self.flat, self.head, self.activation = flat, head, activation
        self.leaves: list[Tensor] = []
        self._folded: tuple[Layers, Layers] | None = None
        self.actor, self.critic = (self._layers(each) for each in sizes)
        for name, old in list(head.named_parameters()):
            setattr(head, name, nn.Parameter(self._next(old.shape)))
            self.leaves.append(getattr(head, name))

    def distribution(self, inputs: Tensor) -> ActionDistribution:
        """What the actors would do, for columns ``[networks, features, rows]``; batch ``[networks, rows]``."""
        found = self.head.distribution(self._run(inputs, 0).mT)
        if isinstance(found, NormalActions) and isinstance(self.head, GaussianHead) and self.head.batch is not None:
            # One scale for all rows: its logarithm need not be taken for each.
            return dataclasses.replace(found, scale=found.scale[..., :1, :])
        return found

    def values(self, inputs: Tensor) -> Tensor:
        """What the critics expect, ``[networks, rows]``."""
        return self._run(inputs, 1).squeeze(-2)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Within it parameters stay as they are, and are prepared only once."""
        self._folded = (fold(self.actor, self.activation), fold(self.critic, self.activation))
        try:
            yield
        finally:
            self._folded = None

    def _run(self, inputs: Tensor, which: int) -> Tensor:
        if self._folded is not None:
            return apply(inputs, self._folded[which], self.activation)
        return run(inputs, (self.actor, self.critic)[which], self.activation)

    def gradient(self, loss: Tensor) -> Tensor:
        """Derivative of ``loss`` in the layout of ``flat``."""
        parts = torch.autograd.grad(loss, self.leaves)
        return torch.cat([_pad(part.reshape(len(self.flat), -1)) for part in parts], -1)

    def _layers(self, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
        layers = []
        for fan_in, fan_out in pairwise(sizes):
            layer = []
            for width in (fan_in, 1):
                layer.append(self._next((len(self.flat), fan_out, width)).requires_grad_())
                self.leaves.append(layer[-1])
            layers.append((layer[0], layer[1]))
        return layers

    def _next(self, shape: Sequence[int]) -> Tensor:
        """The next piece of the parameters that no leaf has."""
        start = sum(_room(leaf[0].numel()) for leaf in self.leaves)
        return self.flat.detach()[:, start : start + math.prod(shape[1:])].view(shape)


class Policies:
    """Unshared networks: ``flat[run, agent]`` holds everything that one agent learns.

    An optimiser thus works on a single tensor, and an agent's gradient norm is the norm of a row.

    Args:
        world: Says what agents see and do.
        settings: Sizes and initial values.
        streams: One for each run; weights are drawn from them.

    Attributes:
        flat: ``[runs, agents, parameters]``.
        whole: All networks, run by run, to act with.
        blocks: The same networks in pieces that fit a CPU's cache, to learn with; on a GPU a single one.

    Example:
        >>> from graphsnd.worlds import Navigation
        >>> streams = [Streams.make(0, torch.device("cpu"))]
        >>> Policies(Navigation(3, 2), Settings(), streams).flat.shape
        torch.Size([1, 3, 10956])
    """

    def __init__(self, world: World, settings: Settings, streams: Sequence[Streams]) -> None:
        self.batch = (len(streams), world.agents)
        networks = math.prod(self.batch)
        outputs = make_head(world, settings, 1).outputs
        ends = (world.observation_features, *settings.hidden)
        sizes = ((*ends, outputs), (*ends, 1))
        drawn = [_draw(each, sizes, world, settings) for each in streams]
        self.flat = torch.stack(drawn).to(world.device)

        def block(first: int, last: int) -> Block:
            head = make_head(world, settings, last - first).to(world.device)
            return Block(self.flat.flatten(0, 1)[first:last], sizes, head, settings.activation)

        self.whole = block(0, networks)
        widest = max(*settings.hidden, 1) * settings.minibatch
        size = networks if world.device.type != "cpu" else max(1, CACHED // widest)
        self.blocks = [block(first, min(first + size, networks)) for first in range(0, networks, size)]

    @property
    def head(self) -> Head:
        """How actors' outputs are read."""
        return self.whole.head

    def team(self, run: int, about: dict[str, Any] | None = None) -> StackedTeam:
        """A copy of the actors of one run."""
        mine = slice(run * self.batch[1], (run + 1) * self.batch[1])
        layers: Layers = self.whole.actor
        # Teams multiply rows, so weights are turned round.
        parts = [[part.detach()[mine].mT.contiguous().clone() for part in layer] for layer in layers]
        network = StackedMLP([p[0] for p in parts], [p[1] for p in parts], activation=self.whole.activation)
        options = self.head.options()
        if self.head.batch is None:
            return StackedTeam(network, type(self.head)(self.head.actions, **options), about=about)
        head = GaussianHead(self.head.actions, batch=(self.batch[1],), **options).to(self.flat.device)
        head.load_state_dict({name: part[mine] for name, part in self.head.state_dict().items()})
        return StackedTeam(network, head, about=about)


def make_head(world: World, settings: Settings, networks: int) -> Head:
    """The head that the world's actions need."""
    if isinstance(world.actions, Discrete):
        return CategoricalHead(world.actions.count)
    if settings.policy == "tanh-normal":
        return TanhNormalHead(world.actions.features)
    return GaussianHead(world.actions.features, batch=(networks,))


def _draw(streams: Streams, sizes: Sequence[Sequence[int]], world: World, settings: Settings) -> Tensor:
    """Initial parameters of one run, ``[agents, parameters]``."""
    parts = []
    for each, gain in zip(sizes, (settings.actor_gain, settings.critic_gain), strict=True):
        network = StackedMLP.create(
            (world.agents,), each, generator=streams.weights, activation=settings.activation, init=settings.init,
            head_gain=gain,
        )  # fmt: skip
        for weight, bias in zip(network.weights, network.biases, strict=True):
            parts += [weight.detach().mT.reshape(world.agents, -1), bias.detach().reshape(world.agents, -1)]
    for own in make_head(world, settings, world.agents).parameters():
        parts.append(torch.full((world.agents, own[0].numel()), settings.log_std))
    return torch.cat([_pad(part) for part in parts], -1)


def _room(count: int) -> int:
    return -(-count // ALIGNED) * ALIGNED


def _pad(part: Tensor) -> Tensor:
    """Zeros up to the next aligned place. Their gradient is zero, so they stay."""
    missing = _room(part.shape[-1]) - part.shape[-1]
    return F.pad(part, (0, missing)) if missing else part
