"""Policies with a scale for their diversity: shared network + scale x each agent's deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.control.actions import ActionDistribution, CategoricalActions, NormalActions, TanhNormalActions
from graphsnd.control.networks import ControlledTeam, centre_logits, check_fit, combine
from graphsnd.errors import InputError, shape_of
from graphsnd.teams import StackedMLP
from graphsnd.teams.stacked import check_inputs


class ControlledPolicy(nn.Module):
    r"""R runs of n agents; each run has one shared network h and a deviation :math:`b_i` for every agent.

    .. math:: \mu_i(o) = \tanh h_\mu(o) + s\, b_i(o), \qquad \sigma(o) = \mathrm{softplus}(h_\sigma(o) + c) + 0.01

    and for discrete actions :math:`\mathrm{logits}_i(o) = h(o) + s\, b_i(o)`. The mean that all share is squashed, the
    deviation is not, and all agents share :math:`\sigma`: in the space of :math:`\mu`, before the tanh that squashes
    actions, or of centred logits, diversity is exactly s times that of the deviations.

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
        check_fit(shared, deviations, kind)
        if len(deviations.batch) != 2:
            raise InputError("deviations", "with batch (runs, agents)", f"{deviations.batch}")
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
            agents: Number of agents of each run.
            features: Number of features of an observation.
            actions: Dimensions of an action, or number of actions.
            generators: Generator of each run, so that a run starts the same whichever runs are stacked beside it.
            hidden: Widths of hidden layers, of both networks.
            activation: ``"tanh"`` or ``"relu"``.
            kind: See the class.
            device: Device of the parameters.
        """
        outputs = actions * (1 if kind == "categorical" else 2)
        shared = draw_runs((1,), (features, *hidden, outputs), generators, activation, device)
        deviations = draw_runs((agents,), (features, *hidden, actions), generators, activation, device)
        return cls(shared, deviations, kind=kind)

    @property
    def batch(self) -> tuple[int, int]:
        """Runs and agents."""
        return self.deviations.batch[0], self.deviations.batch[1]

    def deviation(self, observations: Tensor, agents: Tensor | None = None, runs: slice = slice(None)) -> Tensor:
        """Return the agents' deviations on the same observations: what a controller measures.

        Args:
            observations: ``[runs, observations, features]``.
            agents: Agents to evaluate on each observation, int64 ``[runs, observations, k]``, on the CPU, so that
                sorting does not wait for a GPU; all agents when None.
            runs: Runs that the observations belong to.

        Returns:
            ``[runs, observations, agents or k, actions]``.
        """
        count, own = len(range(self.batch[0])[runs]), self.deviations
        seen = check_inputs(own, "observations", observations, (count, "observations"))
        if agents is None:
            every = own.engine.run_all(seen, *own.flat(runs), own.activation)
            return self._centre(every.unflatten(0, (-1, self.batch[1])).transpose(1, 2))
        first = torch.arange(count, device=agents.device).view(-1, 1, 1) * self.batch[1]
        rows = torch.arange(count * seen.shape[1], device=agents.device).repeat_interleave(agents.shape[2])
        outputs = own.engine.run_requests(
            seen.flatten(0, 1), (agents + first).flatten(), rows, *own.flat(runs), own.activation
        )
        return self._centre(outputs.unflatten(0, agents.shape))

    def _centre(self, deviation: Tensor) -> Tensor:
        return centre_logits(deviation) if self.kind == "categorical" else deviation

    def distribution(self, seen: Tensor, scale: Tensor) -> ActionDistribution:
        """Return the action distribution of every agent on its own observations.

        Args:
            seen: ``[runs, agents, rows, features]``.
            scale: ``[]`` or ``[runs]``.

        Returns:
            Batch ``[runs, agents, rows]``.
        """
        parts = self.parameters_of(seen, scale)
        if self.kind == "categorical":
            return CategoricalActions(parts[0])
        return TanhNormalActions(*parts) if self.kind == "tanh-normal" else NormalActions(*parts)

    def parameters_of(self, seen: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        """Return mean before squashing and standard deviation, or logits: each ``[runs, agents, rows, actions]``."""
        common, deviation = self.outputs_of(seen)
        scales = self.scales(scale).to(deviation.dtype)[..., None, None]
        return combine(self.kind, common, deviation, scales)

    def scales(self, scale: Tensor) -> Tensor:
        """Return a scale ``[]`` or ``[runs]`` for every agent, ``[runs, agents]``."""
        if tuple(scale.shape) not in ((), self.batch[:1]):
            raise InputError("scale", f"with shape () or ({self.batch[0]},)", shape_of(scale))
        return scale.view(-1, 1).expand(self.batch)

    def outputs_of(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs of the shared network and unscaled deviations: ``[runs, agents, rows, ...]`` each."""
        seen = check_inputs(self.deviations, "seen", seen, (*self.batch, "rows"))
        common = self.shared(seen.flatten(1, 2).unsqueeze(1)).squeeze(1).unflatten(1, seen.shape[1:3])
        return common, self.deviations(seen)

    def means_of(self, seen: Tensor, agents: Tensor, wanted: Tensor, scale: Tensor) -> Tensor:
        """Return the mean of one agent in every frame; evaluated only where it is wanted.

        Args:
            seen: ``[runs, agents, frames, features]``, observations of all agents.
            agents: int64 ``[runs, frames]``, whose.
            wanted: bool ``[runs, frames]``.
            scale: ``[]`` or ``[runs]``.

        Returns:
            ``[runs, frames, actions]``, before any squashing; meaningless where not wanted.
        """
        (runs, count), frames = self.batch, seen.shape[2]
        run = torch.arange(runs, device=seen.device).unsqueeze(1)
        networks = run * count + agents
        rows = (networks * frames + torch.arange(frames, device=seen.device)).flatten()
        flat, parts = seen.flatten(0, 2), []
        for network, whose in ((self.shared, run.expand_as(agents)), (self.deviations, networks)):
            asked = torch.where(wanted, whose, math.prod(network.batch)).flatten()
            outputs = network.engine.run_requests(flat, asked, rows, *network.flat(), network.activation)
            parts.append(outputs.unflatten(0, agents.shape))
        own = self.scales(scale).gather(1, agents).unsqueeze(-1)
        common, deviation = parts
        return combine(self.kind, common, deviation, own)[0]

    def team(
        self, run: int, scale: Tensor | float, *, squashed: bool = False, about: dict[str, Any] | None = None
    ) -> ControlledTeam:
        """Return a copy of one run at one scale, to measure with :func:`graphsnd.measure` and the rest.

        Args:
            run: Index of the run.
            scale: ``[]``.
            squashed: Whether agents are compared by what the environment receives (actions after the tanh,
                probabilities) rather than by what DiCo controls (Gaussians before the tanh, centred logits).
            about: Anything that JSON can say about the team; kept in its file.
        """
        networks = self.shared.select(run), self.deviations.select(run)
        return ControlledTeam(*networks, scale, kind=self.kind, squashed=squashed, about=about)


def draw_runs(
    batch: Sequence[int],
    sizes: Sequence[int],
    generators: Sequence[torch.Generator],
    activation: str,
    device: torch.device | str | None,
) -> StackedMLP:
    """Return the networks of several runs, each from its own generator, stacked along a new first batch dimension."""
    draw = partial(StackedMLP.create, batch, sizes, activation=activation, init="linear")
    runs = [draw(generator=each) for each in generators]
    weights = [torch.stack(layer).detach().to(device) for layer in zip(*(run.weights for run in runs), strict=True)]
    biases = [torch.stack(layer).detach().to(device) for layer in zip(*(run.biases for run in runs), strict=True)]
    return StackedMLP(weights, biases, activation=activation)
