"""What the teams of Stable-Baselines3 and RLlib share: both act in the spaces of Gymnasium."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, Categorical, Deterministic
from graphsnd.errors import InputError, as_tensor, check_rank, describe, shape_of
from graphsnd.teams import CallablesTeam


class SpacesTeam(CallablesTeam):
    """Policies of one observation space and one action space.

    Observations of a Dict or Tuple are joined to one row of numbers each, and taken apart again where a policy answers.

    Args:
        argument: For messages: what the policies came in.
        spaces: By name, the observation space and the action space of each.
        policies: In the same order.
        squashed: As in :class:`~graphsnd.teams.CallablesTeam`.
        fix: What to do where spaces differ.
        recurrent: By name, whether a policy has a memory. It is then given sequences ``[batch, time, features]``.

    Raises:
        InputError: For different spaces, observations that are no arrays, and recurrent policies beside others.
    """

    def __init__(
        self,
        argument: str,
        spaces: Mapping[str, tuple[Any, Any]],
        policies: Sequence[nn.Module],
        *,
        squashed: bool,
        recurrent: Mapping[str, bool],
        fix: str = "",
    ) -> None:
        if len({str(pair) for pair in spaces.values()}) > 1:
            got = ", ".join(f"{name}: {seen} and {done}" for name, (seen, done) in spaces.items())
            raise InputError(argument, "with the same spaces", got, fix)
        self.space: Any = next((seen for seen, _ in spaces.values()), None)
        leaves = _leaves(self.space) if spaces else []
        if any(leaf.shape is None for leaf in leaves):
            raise InputError(argument, "that observe arrays, or a Dict or Tuple of them", self.space)
        if len(set(recurrent.values())) > 1:
            got = ", ".join(f"{name}: {'recurrent' if one else 'not recurrent'}" for name, one in recurrent.items())
            raise InputError(argument, "that are all recurrent, or none of them", got, fix)
        joined = bool(_parts(self.space))
        rank = 1 if joined else max([1, *(len(leaf.shape) for leaf in leaves)])
        super().__init__(policies, squashed=squashed, feature_dims=rank, whole=any(recurrent.values()))
        self.observation_features = _size(self.space) if joined else None
        self._names = tuple(map(str, spaces))

    def join_parts(self, observations: Any) -> Any:
        """Return observations of a Dict or Tuple as rows of numbers, and images with channels where the space has them.

        Args:
            observations: The parts of the space by its keys, or in its order, each ``[..., *shape]``; or a dict of such
                by agent. Rows ``[..., features]`` are returned as they are.

        Raises:
            InputError: For other parts, or parts of other shapes.
        """
        parts = _parts(self.space)
        dictionary = isinstance(observations, Mapping) and not hasattr(observations, "batch_size")  # no TensorDict
        if dictionary and parts.keys().isdisjoint(observations):
            return {agent: self.join_parts(own) for agent, own in observations.items()}
        if parts and isinstance(observations, Mapping | tuple | list):
            return _join(self.space, observations)
        given = as_tensor(observations)
        return _fit(self.space, given, "observations") if self.space.shape and isinstance(given, Tensor) else given

    def refuse_memory(self, argument: str) -> None:
        """Raise for recurrent policies, of which callbacks have no sequences."""
        if self.whole:
            fix = "Measure on sequences [batch, time, features]: graphsnd.measure(team, sequences)."
            raise InputError(argument, "without a memory to measure while they learn", "recurrent ones", fix)

    def _evaluate(self, observations: Tensor) -> Behavior:
        if self.whole and observations.dim() != 2 + self.feature_dims:
            expected = "with shape (batch, time, features) for recurrent policies"
            raise InputError("observations", expected, shape_of(observations), "One sequence: observations[None].")
        return super()._evaluate(observations)


def map_parts(function: Callable[..., Any], *given: Any) -> Any:
    """Return a function's values of arrays, or, of dicts of arrays, those of each part."""
    if not isinstance(given[0], Mapping):
        return function(*given)
    return {key: function(*(each[key] for each in given)) for key in given[0]}


def split_parts(space: Any, rows: Tensor) -> Any:
    """Return rows ``[..., features]`` as observations of a space: the inverse of joining their parts."""
    return rows if space.shape else _split(space, rows)


def _parts(space: Any) -> dict[Any, Any]:
    """Return the spaces in a Dict by their keys, in a Tuple by their places; none for any other space."""
    inner = getattr(space, "spaces", {})
    return dict(inner if isinstance(inner, Mapping) else enumerate(inner))


def _leaves(space: Any) -> list[Any]:
    return [leaf for part in _parts(space).values() for leaf in _leaves(part)] or [space]


def _size(space: Any) -> int:
    return sum(math.prod(leaf.shape) for leaf in _leaves(space))


def _join(space: Any, given: Any, name: str = "observations") -> Tensor:
    """Return observations of a space as rows ``[..., features]``, its parts in their order."""
    parts = _parts(space)
    if not parts:
        fitting = _fit(space, given, name)
        lead = fitting.shape[: fitting.dim() - len(space.shape)]
        row = fitting.reshape(*lead, math.prod(space.shape)).float()
        if space.dtype.kind in "iu" and not bool((_split(space, row) == fitting).all()):
            raise InputError(name, f"to be whole numbers, as in {space}, and exact in float32", "others")
        return row
    held = dict(enumerate(given)) if isinstance(given, tuple | list) else given
    if not isinstance(held, Mapping) or held.keys() != parts.keys():
        got = ", ".join(map(repr, held)) if isinstance(held, Mapping) else describe(held)
        raise InputError(name, f"with the parts {', '.join(map(repr, parts))}", got)
    rows = [_join(part, held[key], f"{name}[{key!r}]") for key, part in parts.items()]
    if len({row.shape[:-1] for row in rows}) > 1:
        counts = ", ".join(f"{key!r} {tuple(row.shape[:-1])}" for key, row in zip(parts, rows, strict=True))
        raise InputError(name, "with equal leading dimensions in all parts", counts)
    return torch.cat(rows, dim=-1)


def _split(space: Any, rows: Tensor) -> Any:
    parts = _parts(space)
    if not parts:
        shown = rows.reshape(*rows.shape[:-1], *space.shape)
        # Integers may be looked up in a table of embeddings, so they are not left as the floats of the row.
        return shown.to(torch.from_numpy(np.zeros(0, space.dtype)).dtype) if space.dtype.kind in "iu" else shown
    pieces = rows.split([_size(part) for part in parts.values()], dim=-1)
    split = {key: _split(part, piece) for (key, part), piece in zip(parts.items(), pieces, strict=True)}
    return split if isinstance(space.spaces, Mapping) else tuple(split.values())


def _fit(space: Any, given: Any, name: str) -> Tensor:
    """Return an array as ``[..., *shape]`` of a space; images may have their channels last, as environments do."""
    symbolic = f"({', '.join(['...', *map(str, space.shape)])})"
    tensor = check_rank(name, given, len(space.shape), symbolic)
    last = tuple(tensor.shape[tensor.dim() - len(space.shape) :])
    if last != space.shape and len(last) == 3 and (last[2], *last[:2]) == space.shape:
        return tensor.movedim(-1, -3)
    if last != space.shape:
        raise InputError(name, f"with shape {symbolic}", shape_of(tensor))
    return tensor


def by_name(given: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return a dict with the names as strings; those of a list are 0, 1, ..."""
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    named = {str(name): one for name, one in pairs}
    if len(named) < len(given):
        raise InputError("models", "with names that differ as strings", ", ".join(map(repr, given)))
    return named


def read_actions(actions: Tensor, space: Any, argument: str) -> Behavior:
    """Return actions without chance, ``[observations, ...]``, as a behaviour; discrete ones as certain choices."""
    if hasattr(space, "low"):
        return Deterministic(actions.flatten(1))
    if not hasattr(space, "n") or actions.dim() != 1:
        raise InputError(argument, "with Discrete or Box actions to compare actions", space)
    return Categorical(probs=nn.functional.one_hot(actions.long(), int(space.n)).float())


def squash(base: D.Distribution, low: Any, high: Any) -> D.Distribution:
    """Return a distribution after a tanh to the range from ``low`` to ``high``, both ``[actions]``."""
    ends = [torch.as_tensor(end).to(base.mean) for end in (low, high)]
    scaled = D.AffineTransform((ends[1] + ends[0]) / 2, (ends[1] - ends[0]) / 2)
    return D.TransformedDistribution(base, [D.TanhTransform(), scaled])
