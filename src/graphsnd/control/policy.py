"""Policies with a scale for their diversity: shared network + scale x each agent's deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.control.actions import ActionDistribution, CategoricalActions, NormalActions, TanhNormalActions
from graphsnd.control.networks import KINDS, ControlledTeam, centre_logits, check_fit, combine
from graphsnd.errors import (
    MOST_AGENTS,
    InputError,
    check_choice,
    check_device,
    check_index,
    check_integer,
    check_shape,
    check_tensor,
    shape_of,
)
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
        if len(deviations.batch) != 2 or shared.batch != (deviations.batch[0], 1):
            expected = "with batch (runs, 1) beside deviations with batch (runs, agents)"
            raise InputError("shared", expected, f"{shared.batch} and {deviations.batch}")
        check_fit(shared, deviations, kind)
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
            generators: One for each run, so that it starts the same whichever runs are stacked beside it.
            hidden: Widths of hidden layers, of both networks.
            activation: ``"tanh"`` or ``"relu"``.
            kind: See the class.
            device: Device of the parameters.
        """
        check_choice("kind", kind, KINDS)
        agents = check_integer("agents", agents, "to be an integer, at least 2", low=2, high=MOST_AGENTS)
        device = None if device is None else check_device(device)
        outputs = actions * (1 if kind == "categorical" else 2)
        shared = draw_runs((1,), (features, *hidden, outputs), generators, activation, device)
        deviations = draw_runs((agents,), (features, *hidden, actions), generators, activation, device)
        return cls(shared, deviations, kind=kind)

    @property
    def batch(self) -> tuple[int, int]:
        """Runs and agents."""
        return self.deviations.batch[0], self.deviations.batch[1]

    def deviation(self, observations: Tensor, runs: slice = slice(None)) -> Tensor:
        """Return every agent's deviation on the same observations: what a controller measures.

        Args:
            observations: ``[runs, observations, features]``.
            runs: Which runs these are.

        Returns:
            ``[runs, observations, agents, actions]``.
        """
        observations = check_tensor("observations", observations, 3, "(runs, observations, features)")
        seen = check_inputs(self.deviations, "observations", observations, (self._count(runs), "observations"))
        outputs = self.deviations.engine.run_all(seen, *self.deviations.flat(runs), self.deviations.activation)
        return self._centre(outputs.unflatten(0, (-1, self.batch[1])).transpose(1, 2))

    def deviation_of(self, observations: Tensor, agents: Tensor, runs: slice = slice(None)) -> Tensor:
        """Return deviations of chosen agents, other ones for each observation; nothing else is evaluated.

        Args:
            observations: ``[runs, observations, features]``.
            agents: int64 ``[runs, observations, k]``; on the CPU, so that sorting does not wait for a GPU.
            runs: Which runs these are.

        Returns:
            ``[runs, observations, k, actions]``.
        """
        lead = self._count(runs), "observations"
        observations = check_tensor("observations", observations, 3, "(runs, observations, features)")
        agents = check_tensor("agents", agents, 3, "(runs, observations, k)")
        observations = check_inputs(self.deviations, "observations", observations, lead)
        check_shape("agents", agents, (*observations.shape[:2], "k"))
        check_index("agents", agents, self.batch[1])
        flat, rows = observations.flatten(0, 1), agents.shape[0] * agents.shape[1]
        first = torch.arange(len(agents), device=agents.device).view(-1, 1, 1) * self.batch[1]
        shown = torch.arange(rows, device=agents.device).repeat_interleave(agents.shape[2])
        engine, networks = self.deviations.engine, (agents + first).flatten()
        outputs = engine.run_requests(flat, networks, shown, *self.deviations.flat(runs), self.deviations.activation)
        return self._centre(outputs.unflatten(0, agents.shape))

    def _count(self, runs: slice) -> int:
        return len(range(self.batch[0])[runs])

    def _centre(self, deviation: Tensor) -> Tensor:
        return centre_logits(deviation) if self.kind == "categorical" else deviation

    def distribution(self, seen: Tensor, scale: Tensor) -> ActionDistribution:
        """Return the action distribution of every agent on its own observations.

        Args:
            seen: ``[runs, agents, rows, features]``.
            scale: ``[]``, ``[runs]`` or ``[runs, agents]``.

        Returns:
            Batch ``[runs, agents, rows]``.
        """
        seen = check_tensor("seen", seen, 4, "(runs, agents, rows, features)")
        parts = self.parameters_of(seen, check_tensor("scale", scale, 0, "() or (runs,) or (runs, agents)"))
        if self.kind == "categorical":
            return CategoricalActions(parts[0])
        return TanhNormalActions(*parts) if self.kind == "tanh-normal" else NormalActions(*parts)

    def parameters_of(self, seen: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
        """Return mean before squashing and standard deviation, or logits: each ``[runs, agents, rows, actions]``."""
        common, deviation = self.outputs_of(seen)
        return combine(self.kind, common, broadcast_scale(scale, deviation) * deviation)

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
            scale: ``[]``, ``[runs]`` or ``[runs, agents]``.

        Returns:
            ``[runs, frames, actions]``, before any squashing; meaningless where not wanted.
        """
        seen = check_inputs(self.deviations, "seen", seen, (*self.batch, "frames"))
        (runs, count), frames = self.batch, seen.shape[2]
        check_shape("agents", agents, (runs, frames))
        check_index("agents", agents, self.batch[1])
        check_shape("wanted", wanted, (runs, frames), dtype="bool")
        run = torch.arange(runs, device=seen.device).unsqueeze(1)
        networks = run * count + agents
        rows = (networks * frames + torch.arange(frames, device=seen.device)).flatten()
        flat, parts = seen.flatten(0, 2), []
        for network, whose in ((self.shared, run.expand_as(agents)), (self.deviations, networks)):
            asked = torch.where(wanted, whose, math.prod(network.batch)).flatten()
            outputs = network.engine.run_requests(flat, asked, rows, *network.flat(), network.activation)
            parts.append(outputs.unflatten(0, agents.shape))
        own = expand_scale(scale, runs, count).gather(1, agents).unsqueeze(-1).to(parts[1].dtype)
        return combine(self.kind, parts[0], own * parts[1])[0]

    def team(
        self, run: int, scale: Tensor | float, *, squashed: bool = False, about: dict[str, Any] | None = None
    ) -> ControlledTeam:
        """Return a copy of one run at one scale, to measure with :func:`graphsnd.measure` and the rest.

        Args:
            run: Which.
            scale: ``[]`` or ``[agents]``.
            squashed: Whether agents are compared by what the environment receives (actions after the tanh,
                probabilities) rather than by what DiCo controls (Gaussians before the tanh, centred logits).
            about: Anything that JSON can say about the team; kept in its file.
        """
        networks = self.shared.select(run), self.deviations.select(run)
        return ControlledTeam(*networks, scale, kind=self.kind, squashed=squashed, about=about)


def broadcast_scale(scale: Tensor, seen: Tensor) -> Tensor:
    """Return a scale in the shape and precision of ``[runs, agents, rows, features]``."""
    return expand_scale(scale, *seen.shape[:2]).to(seen.dtype).unsqueeze(-1).unsqueeze(-1)


def expand_scale(scale: Tensor, runs: int, agents: int) -> Tensor:
    """Return the scale of every agent, ``[runs, agents]``.

    Raises:
        InputError: For a shape that is none of ``[]``, ``[runs]``, ``[runs, agents]``.
    """
    if tuple(scale.shape) not in ((), (runs,), (runs, agents)):
        raise InputError("scale", f"with shape (), ({runs},) or {(runs, agents)}", shape_of(scale))
    return scale.view(*scale.shape, *[1] * (2 - scale.dim())).expand(runs, agents)


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
