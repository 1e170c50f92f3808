"""Policies whose diversity has a knob: what all agents share, plus what is an agent's own, times one number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphsnd.control.team import KINDS, ControlledTeam, combine
from graphsnd.errors import InputError, shape_of
from graphsnd.teams import ActionDistribution, StackedMLP, requests
from graphsnd.teams.actions import CategoricalActions, NormalActions, TanhNormalActions
from graphsnd.teams.choices import check_choice
from graphsnd.teams.network import layers

DENSE = 8  # requests for each network, on average, above which all networks run, each on as many rows


class ControlledPolicy(nn.Module):
    r"""R runs of n agents; each run has one shared network h and a deviation :math:`b_i` for every agent.

    .. math:: \mu_i(o) = \tanh h_\mu(o) + s\, b_i(o), \qquad \sigma(o) = \mathrm{softplus}(h_\sigma(o) + c) + 0.01

    and for discrete actions :math:`\mathrm{logits}_i(o) = h(o) + s\, b_i(o)`. The mean that all share is squashed, the
    deviation is not, and :math:`\sigma` is everybody's: in the space of :math:`\mu`, before the tanh that squashes
    actions, diversity is exactly s times that of the deviations.

    Args:
        shared: Batch ``(runs, 1)``; puts out mean and scale, or logits.
        deviations: Batch ``(runs, agents)``; puts out a mean, or logits.
        kind: ``"tanh-normal"`` (DiCo's), ``"gaussian"`` (actions are not squashed) or ``"categorical"``.

    Raises:
        InputError: When the networks do not fit.

    Example:
        >>> policy = ControlledPolicy.create(5, 18, 2, generators=[torch.Generator().manual_seed(0)])
        >>> policy.deviation(torch.zeros(1, 32, 18)).shape
        torch.Size([1, 32, 5, 2])
    """

    def __init__(self, shared: StackedMLP, deviations: StackedMLP, *, kind: str = "tanh-normal") -> None:
        super().__init__()
        check_choice("kind", kind, KINDS)
        if len(deviations.batch) != 2 or shared.batch != (deviations.batch[0], 1):
            expected = "with batch (runs, 1) beside deviations with batch (runs, agents)"
            raise InputError("shared", expected, f"{shared.batch} and {deviations.batch}")
        outputs = deviations.sizes[-1] * (1 if kind == "categorical" else 2)
        if shared.sizes[-1] != outputs or shared.sizes[0] != deviations.sizes[0]:
            raise InputError("shared", f"from {deviations.sizes[0]} to {outputs} features", shared.sizes)
        self.shared, self.deviations, self.kind = shared, deviations, kind

    @classmethod
    def create(
        cls,
        agents: int,
        features: int,
        actions: int,
        *,
        generators: Sequence[torch.Generator],
        hidden: Sequence[int] = (256, 256),
        activation: str = "tanh",
        kind: str = "tanh-normal",
        device: torch.device | str | None = None,
    ) -> ControlledPolicy:
        """Draw the weights as ``torch.nn.Linear`` does.

        Args:
            agents: Of each run.
            features: Of an observation.
            actions: Dimensions of an action, or number of actions.
            generators: One for each run, so that it begins alike whoever is stacked beside it.
            hidden: Widths of hidden layers, of both networks.
            activation: ``"tanh"`` or ``"relu"``.
            kind: See the class.
            device: Of the parameters.
        """
        outputs = actions * (1 if kind == "categorical" else 2)
        sizes = {1: (features, *hidden, outputs), agents: (features, *hidden, actions)}
        if agents < 2:
            raise InputError("agents", "to be at least 2", agents)
        networks = {
            count: [stacked((count,), each, g, activation) for g in generators] for count, each in sizes.items()
        }
        return cls(joined(networks[1], device), joined(networks[agents], device), kind=kind)

    @property
    def batch(self) -> tuple[int, int]:
        """Runs and agents."""
        return self.deviations.batch[0], self.deviations.batch[1]

    def deviation(self, observations: Tensor, runs: slice = slice(None)) -> Tensor:
        """Every agent's deviation on the same observations: what a controller measures.

        Args:
            observations: ``[runs, observations, features]``.
            runs: Which runs these are.

        Returns:
            ``[runs, observations, agents, actions]``.
        """
        agents = self.batch[1]
        shown = observations.unsqueeze(1).expand(-1, agents, -1, -1).flatten(0, 1)
        weights, biases = self._deviations(runs)
        found = layers(shown, weights, biases, self.deviations.activation)
        return self._centred(found.unflatten(0, (-1, agents)).transpose(1, 2))

    def deviation_of(self, observations: Tensor, agents: Tensor, runs: slice = slice(None)) -> Tensor:
        """Deviations of some agents only, others for each observation; nothing else is evaluated.

        Args:
            observations: ``[runs, observations, features]``.
            agents: int64 ``[runs, observations, k]``; on the CPU, so that sorting does not wait for a GPU.
            runs: Which runs these are.

        Returns:
            ``[runs, observations, k, actions]``.
        """
        flat, device = observations.flatten(0, 1), observations.device
        first = torch.arange(len(agents), device=agents.device).view(-1, 1, 1) * self.batch[1]
        weights, biases = self._deviations(runs)
        networks = agents + first
        if networks.numel() >= DENSE * len(weights[0]):
            table, slots = by_network(networks, len(weights[0]))
            shown = flat[(table // agents.shape[2]).to(device)]
            rows = layers(shown, weights, biases, self.deviations.activation).flatten(0, 1)
            return self._centred(rows.index_select(0, slots.to(device)).unflatten(0, agents.shape))
        plan = requests.batches(networks)
        answers = []
        for bucket in plan.buckets:
            chosen = bucket.agents.to(device)
            own = [[part.index_select(0, chosen) for part in parts] for parts in (weights, biases)]
            shown = flat[(bucket.requests // agents.shape[2]).to(device)]
            answers.append(layers(shown, own[0], own[1], self.deviations.activation).flatten(0, 1))
        rows = torch.cat(answers).index_select(0, plan.slots.to(device))
        return self._centred(rows.unflatten(0, agents.shape))

    def _centred(self, deviation: Tensor) -> Tensor:
        """Logits less their mean: a constant for all actions changes no policy, so it must not count as diversity."""
        return deviation - deviation.mean(dim=-1, keepdim=True) if self.kind == "categorical" else deviation

    def distribution(self, seen: Tensor, scale: Tensor) -> ActionDistribution:
        """What every agent would do on its own observations.

        Args:
            seen: ``[runs, agents, rows, features]``.
            scale: ``[]``, ``[runs]`` or ``[runs, agents]``.

        Returns:
            Batch ``[runs, agents, rows]``.
        """
        parts = self.parameters_of(seen, scale)
        if self.kind == "categorical":
            return CategoricalActions(parts[0])
        return TanhNormalActions(*parts) if self.kind == "tanh-normal" else NormalActions(*parts)

    def parameters_of(self, seen: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        """Mean before any squashing and standard deviation, or logits: each ``[runs, agents, rows, actions]``."""
        common = self.shared(seen.flatten(1, 2).unsqueeze(1)).squeeze(1).unflatten(1, seen.shape[1:3])
        return combine(self.kind, common, spread(scale, seen) * self.deviations(seen))

    def team(self, run: int, scale: Tensor | float, *, squashed: bool = False) -> ControlledTeam:
        """A copy of one run at one scale, to measure with :func:`graphsnd.estimate` and the rest.

        Args:
            run: Which.
            scale: ``[]``, or ``[agents]``.
            squashed: Whether tanh-normal agents are compared by the actions the environment receives rather than by
                the Gaussians before the tanh, where DiCo controls them.
        """
        networks = self.shared.select(run), self.deviations.select(run)
        return ControlledTeam(*networks, scale, kind=self.kind, squashed=squashed)

    def _deviations(self, runs: slice) -> tuple[list[Tensor], list[Tensor]]:
        """Weights and biases of some runs' deviations, run by run and agent by agent."""
        weights = [weight[runs].flatten(0, 1) for weight in self.deviations.weights]
        return weights, [bias[runs].flatten(0, 1) for bias in self.deviations.biases]


def by_network(networks: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Requests in a table with a row for every network, as long as the longest; no weights need be gathered then.

    Args:
        networks: int64, any shape, which network each request is for.
        count: Number of networks.

    Returns:
        The table, int64 ``[count, longest]`` of requests, filled up with the first one; and where in it, counting row
        by row, each request is.

    Example:
        >>> by_network(torch.tensor([1, 0, 1]), 2)
        (tensor([[1, 0],
                [0, 2]]), tensor([2, 0, 3]))
    """
    ordered, order = networks.flatten().sort(stable=True)
    counts = torch.bincount(ordered, minlength=count)
    longest = int(counts.max())
    places = torch.arange(len(order), device=order.device) + (ordered * longest - (counts.cumsum(0) - counts)[ordered])
    table = torch.zeros(count * longest, dtype=torch.int64, device=order.device).index_copy_(0, places, order)
    slots = torch.empty_like(order).index_copy_(0, order, places)
    return table.view(count, longest), slots


def spread(scale: Tensor, seen: Tensor) -> Tensor:
    """A scale in the shape and precision of ``[runs, agents, rows, features]``.

    Raises:
        InputError: For a shape that is none of ``[]``, ``[runs]``, ``[runs, agents]``.
    """
    if tuple(scale.shape) != tuple(seen.shape[: scale.dim()]) or scale.dim() > 2:
        expected = f"with shape (), ({seen.shape[0]},) or {tuple(seen.shape[:2])}"
        raise InputError("scale", expected, shape_of(scale))
    return scale.to(seen.dtype).view(*scale.shape, *[1] * (4 - scale.dim()))


def stacked(batch: Sequence[int], sizes: Sequence[int], generator: torch.Generator, activation: str) -> StackedMLP:
    """Networks with the default weights of ``torch.nn.Linear``."""
    return StackedMLP.create(batch, sizes, generator=generator, activation=activation, init="linear")


def joined(networks: Sequence[StackedMLP], device: torch.device | str | None = None) -> StackedMLP:
    """Networks of runs, one after the other in a new first batch dimension."""
    depth = range(len(networks[0].weights))
    weights = [torch.stack([one.weights[layer].detach() for one in networks]).to(device) for layer in depth]
    biases = [torch.stack([one.biases[layer].detach() for one in networks]).to(device) for layer in depth]
    return StackedMLP(weights, biases, activation=networks[0].activation)
