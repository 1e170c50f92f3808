"""Teams whose policies are one stack of weights: the fast kind, and the kind that can be saved."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from graphsnd.arguments import checked
from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError
from graphsnd.teams.engine import MAX_ACTIVATIONS, run_gathered
from graphsnd.teams.heads import Head
from graphsnd.teams.network import StackedMLP
from graphsnd.teams.team import Team

CACHED_ACTIVATIONS = 2**21  # on a CPU, whose caches they then stay in: up to twice as fast


@checked
class StackedTeam(Team):
    """``n`` policies of one architecture: a stacked network and a head.

    Args:
        network: Batch shape ``(agents,)``.
        head: How its outputs are read.
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
            raise InputError("network", f"with {head.outputs} outputs for {head}", f"{network.sizes[-1]} outputs")
        if head.batch is not None and head.batch != network.batch:
            fix = "Pass batch=network.batch to the head."
            raise InputError("head", f"with batch shape {network.batch}", f"{head.batch}", fix)
        self.network = network
        self.head = head
        self.about = dict(about or {})
        self.agents = network.batch[0]
        self.observation_features = network.sizes[0]
        self.cost = network.cost

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

    def box(self) -> tuple[Tensor, Tensor]:
        """Return ranges of the 2-Wasserstein coordinates of every agent's actions, each ``[agents, coordinates]``."""
        return self.head._box(*self.network.output_range())

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


def activations_on(device: torch.device) -> int:
    """Return how many floats of the widest layer to hold at once where all networks get the same observations."""
    return CACHED_ACTIVATIONS if device.type == "cpu" else MAX_ACTIVATIONS


def run_chosen(network: StackedMLP, observations: Tensor, agents: Tensor) -> Tensor:
    """Return the outputs of chosen agents, other ones for each observation; nothing else is evaluated.

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
