"""Actions of several parts: MultiDiscrete, and continuous beside discrete ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from graphsnd.behavior.behavior import Behavior, as_distance, in_order
from graphsnd.behavior.distances import Distance
from graphsnd.behavior.points import Block, Norm, Points
from graphsnd.errors import InputError, number


class Joint(Behavior):
    r"""Policies whose action has several parts, all on the same observations.

    The distance of two agents is the weighted mean of their distances in each part. So SND is the same mean of the
    parts' SNDs, and so are Graph-SND and contributions:

    .. math:: d = \sum_k w_k d_k, \quad \sum_k w_k = 1 \quad\Rightarrow\quad \mathrm{SND} = \sum_k w_k \mathrm{SND}_k

    Args:
        parts: Behaviours of the same agents on the same observations, by name or in order.
        weights: Weight of each part, positive, by name or in order. Equal when None, which only parts with one
            kind of distance allow: between a length and a probability no weight is natural.
        distance: Distances of single parts, by name or in order; the part's default where it is missing or None.

    Raises:
        InputError: For parts that differ in agents or observations, and kinds of distances that differ without weights.

    Example:
        >>> import torch, graphsnd as gs
        >>> grip = gs.Categorical(probs=torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
        >>> move = gs.Deterministic(torch.tensor([[[0.0], [4.0]]]))
        >>> gs.snd(gs.Joint({"move": move, "grip": grip}, weights={"move": 1, "grip": 2}))
        tensor(2.)
    """

    distance: JointDistance

    def __init__(
        self,
        parts: Mapping[str, Behavior] | Sequence[Behavior],
        weights: Mapping[str, float] | Sequence[float] | None = None,
        distance: Mapping[str, Distance | str | None] | Sequence[Distance | str | None] | None = None,
    ) -> None:
        if not isinstance(parts, Mapping | Sequence) or not parts:
            raise InputError("parts", "to be behaviours, in a dict or a list", repr(parts))
        given = parts if isinstance(parts, Mapping) else {str(place): part for place, part in enumerate(parts)}
        self.parts = dict(given)
        _check_layout(self.parts)
        names = next((part.names for part in self.parts.values() if part.named), None)
        first = next(iter(self.parts.values()))
        super().__init__(torch.Size([*first.batch_shape, first.agents, 1]))
        self._names = names
        if distance is None or isinstance(distance, Mapping):
            distance = {**dict.fromkeys(self.parts), **(distance or {})}
        chosen = _in_order("distance", distance, tuple(self.parts))
        distances = [as_distance(part, each) for each, part in zip(chosen, self.parts.values(), strict=True)]
        self.distance = JointDistance(tuple(distances), _check_weights(weights, tuple(self.parts), distances))

    def _with_parts(self, parts: Sequence[Behavior]) -> Joint:
        """Return a joint with other parts of the same names, weights and distances."""
        made = copy(self)
        made.parts = dict(zip(self.parts, parts, strict=True))
        made.batch_shape, made.agents = parts[0].batch_shape, parts[0].agents
        made._names = None
        return made

    def accept(self, distance: Distance) -> JointDistance:
        """Return a distance of each part, or one for all parts, as their weighted mean; raise unless it fits them."""
        weights, parts = self.distance.weights, self.parts.values()
        joint = distance if isinstance(distance, JointDistance) else JointDistance((distance,) * len(parts), weights)
        if joint.weights != weights:
            raise InputError("behavior", f"to be a Joint with weights {joint.weights}", weights)
        return JointDistance(
            tuple(part.accept(each) for part, each in zip(parts, joint.distances, strict=True)), weights
        )

    def embed(self, distance: Distance) -> Points:
        """Return the parts' points side by side, with the norm and the weight of each."""
        joint = self.accept(distance)
        embedded = [part.embed(each) for part, each in zip(self.parts.values(), joint.distances, strict=True)]
        weighed = zip(joint.weights, embedded, strict=True)
        pieces = [(weight * inner, part) for weight, points in weighed for inner, part in points.split()]
        # Half-L1 distances are sums over features: together they cost one visit of the pairs. In units of the largest
        # weight, so that equal weights leave the probabilities as they are.
        sums = [(weight, part.values) for weight, part in pieces if part.norm is Norm.HALF_L1]
        pieces = [(weight, part) for weight, part in pieces if part.norm is not Norm.HALF_L1]
        blocks = [Block(part.norm, part.values.shape[2], weight) for weight, part in pieces]
        columns = [part.values for _, part in pieces]
        if sums:
            unit = max(weight for weight, _ in sums)
            columns += [values if weight == unit else values * (weight / unit) for weight, values in sums]
            blocks.append(Block(Norm.HALF_L1, sum(values.shape[2] for _, values in sums), unit))
        dtype = reduce(torch.promote_types, (points.result_dtype for points in embedded))
        return Points(torch.cat(columns, dim=-1), Norm.JOINT, dtype, tuple(blocks))


@dataclass(frozen=True)
class JointDistance(Distance):
    """The weighted mean of the distances of the parts of a :class:`Joint`; a metric, because each of them is."""

    distances: tuple[Distance, ...]
    weights: tuple[float, ...]  # they sum to 1

    @property
    def name(self) -> str:
        """The parts' common name, or the weight of each kind."""
        kinds = {distance.name: 0.0 for distance in self.distances}
        for distance, weight in zip(self.distances, self.weights, strict=True):
            kinds[distance.name] += weight
        return next(iter(kinds)) if len(kinds) == 1 else " + ".join(f"{w:.3g} {kind}" for kind, w in kinds.items())

    @property
    def maximum(self) -> float | None:
        """The mean of the parts' maxima."""
        largest = [math.inf if distance.maximum is None else distance.maximum for distance in self.distances]
        total = sum(weight * each for weight, each in zip(self.weights, largest, strict=True))
        return total if math.isfinite(total) else None


def _check_layout(parts: Mapping[str, Any]) -> None:
    for name, part in parts.items():
        if not isinstance(part, Behavior):
            fix = "Wrap it: graphsnd.Categorical(logits=...), graphsnd.from_distribution(...)."
            raise InputError(f"parts[{name!r}]", "to be a behaviour", type(part).__name__, fix)
    layouts = {(part.agents, tuple(part.batch_shape)) for part in parts.values()}
    if len(layouts) > 1:
        got = " and ".join(f"{agents} on {shape}" for agents, shape in sorted(layouts))
        raise InputError("parts", "of the same agents on the same observations", got)
    names = {part.names for part in parts.values() if part.named}
    if len(names) > 1:
        raise InputError("parts", "of the same agents in the same order", " and ".join(map(str, sorted(names))))


def _check_weights(weights: Any, names: Sequence[str], distances: Sequence[Distance]) -> tuple[float, ...]:
    """Return the weights in order, divided by their sum; equal ones for None if all distances are of one kind."""
    kinds = list(dict.fromkeys(distance.name for distance in distances))
    if weights is None and len(kinds) > 1:
        fix = f"Say how much each part counts: graphsnd.Joint(parts, weights={dict.fromkeys(names, 1.0)})."
        raise InputError("weights", f"for parts that differ in distance ({', '.join(kinds)})", None, fix)
    given = [1.0] * len(names) if weights is None else _in_order("weights", weights, names)
    values = [number(weight) for weight in given]
    total = sum(values)
    if not (all(value > 0 for value in values) and math.isfinite(total)):
        raise InputError("weights", "to be positive and finite", weights, "Leave out a part that should not count.")
    return tuple(value / total for value in values)


def _in_order(argument: str, given: Any, names: Sequence[str]) -> list[Any]:
    """Return one value for each part, from a dict by name or from a sequence."""
    if isinstance(given, Mapping):
        return in_order(argument, given, names)
    if not isinstance(given, list | tuple) or len(given) != len(names):
        raise InputError(argument, f"to be a dict, or a list of {len(names)}, one for each part", repr(given))
    return list(given)
