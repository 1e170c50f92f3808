"""What all agents share plus a scaled deviation of each: the formula, and teams that act by it at one scale."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from graphsnd.behavior import Behavior, Categorical, Deterministic, Distance, Gaussian, Wasserstein
from graphsnd.errors import InputError, check_choice, plural, shape_of
from graphsnd.teams import files
from graphsnd.teams.heads import biased_softplus, diagonal, squash_normal
from graphsnd.teams.stacked import StackedMLP, run_all, run_chosen
from graphsnd.teams.team import Team

KINDS = ("tanh-normal", "gaussian", "categorical")


def add_deviation(
    shared: Tensor, deviation: Tensor, scale: Tensor, *, squash: bool, box: Tensor | None = None
) -> Tensor:
    """Return the mean of an agent's actions, or its logits: what all agents share plus scale x its own deviation.

    Only the shared part is squashed, so the distance of two agents is the scale times that of their deviations. The
    fused programs of :mod:`graphsnd.rl.fused` compute the same on a GPU; nothing else does.

    Args:
        shared: ``[..., actions]``.
        deviation: ``[..., actions]``, unscaled.
        scale: Broadcasts to the deviation; taken in its precision.
        squash: Whether the shared part passes a tanh; not for logits.
        box: Middle and half width of the range that it is squashed into, ``[2, actions]``; from -1 to 1 when None.

    Example:
        >>> box = torch.tensor([[1.0], [3.0]])
        >>> add_deviation(torch.zeros(2), torch.tensor([0.1, 0.2]), torch.tensor(2.0), squash=True, box=box)
        tensor([1.2000, 1.4000])
    """
    if squash:
        shared = torch.tanh(shared)
        shared = shared if box is None else shared * box[1] + box[0]
    return shared + scale.to(deviation) * deviation


def centre_logits(deviation: Tensor) -> Tensor:
    """Return logits minus their mean: adding a constant to all logits changes no policy, so it must not count."""
    return deviation - deviation.mean(dim=-1, keepdim=True)


def combine(kind: str, common: Tensor, deviation: Tensor, scale: Tensor) -> tuple[Tensor, ...]:
    """Return mean and standard deviation, or logits, from the outputs of the shared network and unscaled deviations.

    Example:
        >>> combine("gaussian", torch.zeros(3, 2), torch.ones(3, 1), torch.tensor(0.5))[0].flatten()
        tensor([0.5000, 0.5000, 0.5000])
    """
    if kind == "categorical":
        return (add_deviation(common, deviation, scale, squash=False),)
    loc, raw = common.chunk(2, -1)
    loc = add_deviation(loc, deviation, scale, squash=True)
    return loc, biased_softplus(raw).expand_as(loc)


def check_fit(shared: StackedMLP, deviations: StackedMLP, kind: str) -> None:
    """Raise unless the shared output of a run can be added to its agents' deviations."""
    check_choice("kind", kind, KINDS)
    if shared.batch != (*deviations.batch[:-1], 1):
        expected = "with batch (..., 1) beside deviations with batch (..., agents)"
        raise InputError("shared", expected, f"{shared.batch} and {deviations.batch}")
    outputs = deviations.sizes[-1] * (1 if kind == "categorical" else 2)
    if shared.sizes[-1] != outputs or shared.sizes[0] != deviations.sizes[0]:
        expected = f"from {deviations.sizes[0]} to {outputs} {plural('feature', outputs)}"
        raise InputError("shared", expected, shared.sizes)


class ControlledTeam(Team):
    """``n`` policies ``shared + scale * deviation``, made by :meth:`~graphsnd.control.ControlledPolicy.team`.

    Args:
        shared: Batch ``(1,)``.
        deviations: Batch ``(agents,)``.
        scale: ``[]``.
        kind: Kind of the outputs, as in :class:`~graphsnd.control.ControlledPolicy`.
        squashed: Whether agents are compared by what the environment receives: actions after the tanh, probabilities of
            discrete actions. Otherwise by what a controller holds: means before the tanh, centred logits.
        about: Anything that JSON can say about the team; kept in its file.

    Raises:
        InputError: When the networks do not fit.

    Example:
        >>> from graphsnd.control import ControlledPolicy
        >>> policy = ControlledPolicy.create(3, 4, 2, generators=[torch.Generator().manual_seed(0)])
        >>> policy.team(0, 0.5), policy.team(0, 0.5).scale
        (ControlledTeam(agents=3, observation_features=4), tensor(0.5000))
    """

    def __init__(
        self,
        shared: StackedMLP,
        deviations: StackedMLP,
        scale: Tensor | float,
        *,
        kind: str = "tanh-normal",
        squashed: bool = False,
        about: dict[str, Any] | None = None,
    ) -> None:
        check_fit(shared, deviations, kind)
        if len(deviations.batch) != 1:
            raise InputError("deviations", "with batch (agents,)", f"{deviations.batch}")
        self.common, self.deviations, self.kind, self.squashed = shared, deviations, kind, squashed
        self.about = dict(about or {})
        weight = deviations.weights[0]
        self.scale = torch.as_tensor(scale, dtype=weight.dtype, device=weight.device).detach().clone()
        if self.scale.dim():
            raise InputError("scale", "to be one number", shape_of(self.scale))
        self.agents, self.observation_features = deviations.batch[0], deviations.sizes[0]
        self.cost = shared.cost + deviations.cost

    def _describe(self) -> dict[str, Any]:
        networks = {"shared": self.common.describe(), "deviations": self.deviations.describe()}
        return {**networks, "kind": self.kind, "squashed": self.squashed, "about": self.about}

    def _modules(self) -> nn.ModuleDict:
        modules = nn.ModuleDict({"shared": self.common, "deviations": self.deviations})
        modules.register_buffer("scale", self.scale)
        return modules

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where the weights are."""
        return self.deviations.weights[0].device

    def bound(self, distance: Distance) -> float | None:
        """Return a bound on distances of means before the tanh, or of centred logits, from the last layer's weights."""
        if self.squashed or not isinstance(distance, Wasserstein):
            return distance.maximum
        ends = torch.stack([self.scale.double() * end for end in self.deviations.output_range()])
        # This holds for logits too: centring is a projection, which moves no two agents apart.
        length = diagonal(ends.amin(0), ends.amax(0))
        common: float | None = 1.0
        if self.kind == "categorical":
            reach = torch.stack(self.common.output_range()).abs().amax(0)
            common = diagonal(-reach, reach)
        # What all share cancels, but float32 rounds it as well: a mean up to 1, or logits.
        return None if length is None or common is None else length + 1e-5 * common

    def _evaluate(self, observations: Tensor) -> Behavior:
        return self._behavior(observations, run_all(self.deviations, observations))

    def _partial(self, observations: Tensor, agents: Tensor) -> Behavior:
        return self._behavior(observations, run_chosen(self.deviations, observations, agents))

    def _behavior(self, observations: Tensor, deviation: Tensor) -> Behavior:
        parts = combine(self.kind, run_all(self.common, observations), deviation, self.scale)
        if self.kind == "categorical":
            return Categorical(logits=parts[0]) if self.squashed else Deterministic(centre_logits(parts[0]))
        return squash_normal(*parts) if self.squashed and self.kind == "tanh-normal" else Gaussian(*parts)


def _build_controlled(entry: dict[str, Any], tensors: dict[str, Tensor]) -> ControlledTeam:
    """Return a controlled team of the description in its file and its tensors."""
    shared, deviations = (files.build_network(entry[name], tensors, name) for name in ("shared", "deviations"))
    if not isinstance(entry["squashed"], bool):
        raise ValueError("squashed, which is neither true nor false")
    options = {key: entry[key] for key in ("kind", "squashed")}
    return ControlledTeam(shared, deviations, tensors["scale"], **options, about=dict(entry["about"]))


files.BUILDERS["deviations"] = _build_controlled
