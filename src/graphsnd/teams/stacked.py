"""Many small networks of one architecture, stored and run as one; and teams of them, which can be saved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError, check_choice, check_integer, check_shape, plural, shape_of
from graphsnd.teams.engine import ACTIVATIONS, PLAIN, Engine, activations_on, run_gathered
from graphsnd.teams.heads import Head
from graphsnd.teams.team import Team

DTYPE = torch.float32  # of parameters as they are drawn, whatever torch's default is


class StackedMLP(nn.Module):
    r"""A multilayer perceptron for every index of a batch, each with weights of its own.

    .. math:: h_{l+1} = \phi(h_l W_l + b_l), \qquad \text{the last layer without } \phi,

    as one batched product per layer. The batch is ``(agents,)`` for a team and ``(runs, agents)`` in training.

    Args:
        weights: One tensor per layer, shape ``[*batch, in, out]``.
        biases: One tensor per layer, shape ``[*batch, 1, out]``.
        activation: ``"tanh"`` or ``"relu"``, after every layer but the last.

    Attributes:
        engine: Runs the layers; plain torch unless it is replaced by a faster one.

    Raises:
        InputError: For layers that do not fit each other, and for an unknown activation.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> network = StackedMLP.create((5,), (18, 64, 64, 4), generator=generator)
        >>> network(torch.zeros(5, 32, 18)).shape
        torch.Size([5, 32, 4])
    """

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor], *, activation: str = "tanh") -> None:
        super().__init__()
        _check_layers(weights, biases)
        check_choice("activation", activation, ACTIVATIONS)
        self.weights = nn.ParameterList(weights)
        self.biases = nn.ParameterList(biases)
        self.activation = activation
        self.engine: Engine = PLAIN

    @classmethod
    def create(
        cls,
        batch: Sequence[int],
        sizes: Sequence[int],
        *,
        generator: torch.Generator,
        activation: str = "tanh",
        init: str = "orthogonal",
        head_gain: float = 1.0,
        device: torch.device | str | None = None,
    ) -> StackedMLP:
        """Draw the weights.

        Args:
            batch: Batch shape, e.g. ``(agents,)`` or ``(runs, agents)``.
            sizes: Features of the input, of every hidden layer, and of the output.
            generator: Source of the draw; weights are drawn on its device.
            activation: ``"tanh"`` or ``"relu"``.
            init: ``"orthogonal"`` (gain 1, biases 0) or ``"linear"`` (``torch.nn.Linear``'s default: uniform in
                ±1/sqrt(fan in), biases too).
            head_gain: Factor on the last layer's weights; 0.01 keeps a fresh PPO actor near zero.
            device: Device of the parameters; the generator's when None.

        Raises:
            InputError: For an unknown initialisation, fewer than two sizes, or an empty batch.
        """
        check_choice("init", init, INITIAL)
        if len(sizes) < 2 or min(*sizes, *batch) < 1:
            got = f"batch {tuple(batch)} and sizes {tuple(sizes)}"
            raise InputError("sizes", "to hold at least input and output, all sizes positive", got)
        count, weights, biases = math.prod(batch), [], []
        for layer, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            weight, bias = INITIAL[init](count, fan_in, fan_out, generator)
            gain = head_gain if layer == len(sizes) - 2 else 1.0
            weights.append(weight.mul_(gain).reshape(*batch, fan_in, fan_out).to(device or generator.device))
            biases.append(bias.reshape(*batch, 1, fan_out).to(device or generator.device))
        return cls(weights, biases, activation=activation)

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch shape."""
        return tuple(self.weights[0].shape[:-2])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features of the input, the hidden layers and the output."""
        return (self.weights[0].shape[-2], *(weight.shape[-1] for weight in self.weights))

    @property
    def cost(self) -> int:
        """Multiply-adds of one network on one observation."""
        return sum(a * b for a, b in pairwise(self.sizes))

    def forward(self, inputs: Tensor) -> Tensor:
        """Run every network on its own inputs.

        Args:
            inputs: Shape ``[*batch, rows, in]``; an expanded batch axis is not copied.

        Returns:
            Shape ``[*batch, rows, out]``.
        """
        inputs = check_inputs(self, "inputs", inputs, (*self.batch, "rows"))
        flat = inputs.reshape(math.prod(self.batch), *inputs.shape[-2:])
        outputs = self.engine.run_all(flat, *self.flat(), self.activation)
        return outputs.reshape(*self.batch, inputs.shape[-2], self.sizes[-1])

    def flat(self, part: slice = slice(None)) -> tuple[list[Tensor], list[Tensor]]:
        """Return the weights and biases of a part of the first batch dimension, the batch in one axis."""
        # A slice of everything would copy the gradient too.
        chosen = [each if part == slice(None) else each[part] for each in (*self.weights, *self.biases)]
        chosen = [each.reshape(-1, *each.shape[-2:]) for each in chosen]
        return chosen[: len(self.weights)], chosen[len(self.weights) :]

    def select(self, run: int) -> StackedMLP:
        """Return a detached copy of the networks at one index of the first batch dimension."""
        check_integer("run", run, f"in 0 .. {self.batch[0] - 1}", low=0, high=self.batch[0] - 1)
        weights = [weight.detach()[run].clone() for weight in self.weights]
        biases = [bias.detach()[run].clone() for bias in self.biases]
        return StackedMLP(weights, biases, activation=self.activation)

    @torch.no_grad()
    def output_range(self) -> tuple[Tensor, Tensor]:
        r"""Return bounds on every output over all inputs, each ``[*batch, out]`` in float64.

        Tanh keeps hidden features in [-1, 1], so :math:`|out - b| \le \sum |W|`. A network whose last hidden features
        are unbounded (ReLU, or no hidden layer) has infinite ones.
        """
        weight, bias = self.weights[-1], self.biases[-1].squeeze(-2).double()
        if self.activation != "tanh" or len(self.weights) == 1:
            return torch.full_like(bias, -torch.inf), torch.full_like(bias, torch.inf)
        radius = torch.linalg.vector_norm(weight, 1, dim=-2, dtype=torch.float64)
        # Room for the rounding of the product: weights rounded to TF32 on a GPU, then one rounding for each addend.
        rounding = 2.0**-10 + (weight.shape[-2] + 2) * torch.finfo(weight.dtype).eps
        radius = radius + rounding * (radius + bias.abs())
        return bias - radius, bias + radius

    def describe(self) -> dict[str, Any]:
        """Return what the file of a team says about the network."""
        return {"sizes": list(self.sizes), "activation": self.activation}

    def extra_repr(self) -> str:
        """Batch, sizes and activation."""
        return f"batch={self.batch}, sizes={self.sizes}, activation={self.activation!r}"


class StackedTeam(Team):
    """``n`` policies of one architecture: a stacked network and a head.

    Args:
        network: Batch shape ``(agents,)``.
        head: Rule that turns outputs into distributions.
        about: Anything that JSON can say about the team; kept in its file.

    Raises:
        InputError: When network and head do not fit.

    Example:
        >>> from graphsnd.teams import GaussianHead
        >>> network = StackedMLP.create((5,), (18, 64, 2), generator=torch.Generator().manual_seed(0))
        >>> team = StackedTeam(network, GaussianHead(2, batch=(5,)))
        >>> team.partial(torch.zeros(16, 18), torch.zeros(16, 3, dtype=torch.int64))
        Gaussian(agents=3, observations=16)
    """

    def __init__(self, network: StackedMLP, head: Head, *, about: dict[str, Any] | None = None) -> None:
        if len(network.batch) != 1:
            fix = "Split off one run: network.select(run)."
            raise InputError("network", "with batch shape (agents,)", f"{network.batch}", fix)
        if head.outputs != network.sizes[-1]:
            wanted, given = (f"{count} {plural('output', count)}" for count in (head.outputs, network.sizes[-1]))
            raise InputError("network", f"with {wanted} for {head}", given)
        if head.batch is not None and head.batch != network.batch:
            fix = "Pass batch=network.batch to the head."
            raise InputError("head", f"with batch shape {network.batch}", f"{head.batch}", fix)
        self.network = network
        self.head = head
        self.about = dict(about or {})
        self.agents = network.batch[0]
        self.observation_features = network.sizes[0]
        self.cost = network.cost

    def _describe(self) -> dict[str, Any]:
        head = {"name": self.head.name, "actions": self.head.actions, **self.head.options()}
        return {**self.network.describe(), "head": head, "about": self.about}

    def _modules(self) -> nn.ModuleDict:
        return nn.ModuleDict({"network": self.network, "head": self.head})

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where the weights are."""
        return self.network.weights[0].device

    def to(self, device: torch.device | str) -> StackedTeam:
        """Move network and head, in place."""
        self.network.to(device)
        self.head.to(device)
        return self

    def bound(self, distance: Distance) -> float | None:
        """Return an upper bound on the distance between any two agents on any observation, from the parameters alone.

        A squashed mean is bounded by itself; an unsquashed one, and a scale that the network puts out, by the last
        layer's weights where the features before it passed a tanh. Rounded up to hold in float32.

        Args:
            distance: A distance that fits the head's behaviours.

        Returns:
            The bound; None when outputs are unbounded.

        Raises:
            InputError: For a distance that does not fit.
        """
        return self.head.bound(distance, *self.network.output_range())

    def _evaluate(self, observations: Tensor) -> Behavior:
        return self.head.behavior(run_all(self.network, observations))

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        agents = agents.to(self.device)
        return self.head.behavior(run_chosen(self.network, observations, agents), agents)


def run_all(network: StackedMLP, observations: Tensor) -> Tensor:
    """Return the outputs of every agent's network on ``[..., in]``: ``[..., agents, out]``, where the weights are."""
    agents = network.batch[0]
    flat = observations.reshape(-1, observations.shape[-1]).to(network.weights[0])
    rows = max(1, activations_on(flat.device) // (agents * max(network.sizes)))
    outputs = torch.cat([network(part.expand(agents, -1, -1)).transpose(0, 1) for part in flat.split(rows)])
    return outputs.reshape(*observations.shape[:-1], *outputs.shape[1:])


def run_chosen(network: StackedMLP, observations: Tensor, agents: Tensor) -> Tensor:
    """Return the outputs of the agents chosen at each observation; no other agent is evaluated.

    Args:
        network: Batch shape ``(agents,)``.
        observations: ``[observations, in]``.
        agents: int64 ``[observations, k]``.

    Returns:
        ``[observations, k, out]``.
    """
    observations, agents = observations.to(network.weights[0]), agents.to(network.weights[0].device)
    rows = torch.arange(len(agents), device=agents.device).repeat_interleave(agents.shape[1])
    outputs = run_gathered(observations, agents.flatten(), rows, *network.flat(), network.activation)
    return outputs.unflatten(0, agents.shape)


def draw_orthogonal(count: int, fan_in: int, fan_out: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw uniformly random matrices with orthonormal rows or columns, whichever are fewer; biases 0.

    The Q of a Gaussian matrix, with the signs of R's diagonal moved into it: without that step Q would not be uniform.

    Returns:
        Weights ``[count, fan_in, fan_out]`` and biases ``[count, 1, fan_out]``.

    Example:
        >>> weight, _ = draw_orthogonal(2, 8, 3, torch.Generator().manual_seed(0))
        >>> torch.allclose(weight.mT @ weight, torch.eye(3), atol=1e-6)
        True
    """
    device = generator.device
    tall = (count, max(fan_in, fan_out), min(fan_in, fan_out))
    q, r = torch.linalg.qr(torch.randn(tall, generator=generator, dtype=DTYPE, device=device))
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    weight = q if fan_in >= fan_out else q.mT
    return weight.contiguous(), torch.zeros(count, 1, fan_out, dtype=DTYPE, device=device)


def draw_linear(count: int, fan_in: int, fan_out: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw what ``torch.nn.Linear`` starts from: uniform in ±1/sqrt(fan_in), biases too.

    Returns:
        Weights ``[count, fan_in, fan_out]`` and biases ``[count, 1, fan_out]``.

    Example:
        >>> weight, bias = draw_linear(2, 16, 3, torch.Generator().manual_seed(0))
        >>> bool(weight.abs().max() <= 0.25)
        True
    """
    limit = fan_in**-0.5
    weight = torch.empty(count, fan_in, fan_out, dtype=DTYPE, device=generator.device)
    bias = torch.empty(count, 1, fan_out, dtype=DTYPE, device=generator.device)
    return weight.uniform_(-limit, limit, generator=generator), bias.uniform_(-limit, limit, generator=generator)


# Each depends on the generator alone.
INITIAL = {"orthogonal": draw_orthogonal, "linear": draw_linear}


def check_inputs(network: StackedMLP, name: str, inputs: Tensor, lead: Sequence[int | str]) -> Tensor:
    """Return inputs ``[*lead, features]`` of a network in the precision of its weights, or raise for another shape.

    A fused engine has a precision of its own, and what it has prepared has more features: those stay as they are.
    """
    check_shape(name, inputs, (*lead, inputs.shape[-1] if network.engine.fused else network.sizes[0]))
    return inputs if network.engine.fused else inputs.to(network.weights[0].dtype)


def _check_layers(weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
    if not weights or len(weights) != len(biases):
        raise InputError("weights", "and biases, one of each per layer", f"{len(weights)} and {len(biases)}")
    expected = None
    for weight, bias in zip(weights, biases, strict=True):
        if weight.dim() < 2 or (expected is not None and tuple(weight.shape[:-1]) != expected):
            symbolic = f"{(*expected, 'out')}" if expected else "(*batch, in, out)"
            raise InputError("weights", f"with shape {symbolic}", shape_of(weight))
        check_shape("biases", bias, (*weight.shape[:-2], 1, weight.shape[-1]))
        expected = (*weight.shape[:-2], weight.shape[-1])
