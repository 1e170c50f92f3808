"""Gymnasium's spaces, and the columns of an observation that say which agent acts, for all adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, Categorical, Deterministic
from graphsnd.errors import InputError, as_tensor, shape_of
from graphsnd.teams.arrays import Array, Arrays
from graphsnd.teams.policies import PoliciesTeam
from graphsnd.teams.shared import SharedTeam
from graphsnd.teams.team import Team


class SpacesTeam(PoliciesTeam):
    """Policies of one observation space and one action space.

    Observations of a Dict or Tuple are joined to one row of numbers each, and taken apart again where a policy answers.

    Args:
        argument: Name of the argument with the policies, for messages.
        spaces: Observation space and action space of each policy, by name.
        policies: Policies, in the same order.
        squashed: Whether tanh-squashed actions are compared after the tanh, or before it.
        recurrent: Whether each policy has a memory, by name. It then gets sequences ``[batch, time, features]``.

    Raises:
        InputError: For different spaces, and recurrent policies beside others.
    """

    def __init__(
        self,
        argument: str,
        spaces: Mapping[str, tuple[Any, Any]],
        policies: Sequence[nn.Module],
        *,
        squashed: bool,
        recurrent: Mapping[str, bool],
    ) -> None:
        if len({str(pair) for pair in spaces.values()}) > 1:
            got = ", ".join(f"{name}: {seen} and {done}" for name, (seen, done) in spaces.items())
            raise InputError(argument, "with the same spaces", got, "Choose those that are alike.")
        self.space: Any = next((seen for seen, _ in spaces.values()), None)
        seen = read_space(self.space) if spaces else None
        if len(set(recurrent.values())) > 1:
            got = ", ".join(f"{name}: {'recurrent' if one else 'not recurrent'}" for name, one in recurrent.items())
            raise InputError(argument, "that are all recurrent, or none of them", got)
        rank = max(1, seen.dims) if isinstance(seen, Array) else 1
        super().__init__(policies, squashed=squashed, feature_dims=rank, whole=any(recurrent.values()))
        if isinstance(seen, Arrays):
            self.arrays, self.observation_features = seen, seen.size
        self._names = tuple(map(str, spaces))

    @classmethod
    def shared(cls, policy: Any, agents: Any, *, columns: Any = None, identity: Any = None, **options: Any) -> Team:
        """Return the team of agents that share one policy, which reads in its observations for which agent it acts.

        Args:
            policy: One of the policies of this team, or a team with that one alone.
            agents: Number of agents, or a list of their names.
            columns: Features of an observation that hold the identity, which is replaced: a slice, a list or one
                integer. In observations of several arrays, with the key of one of them:
                ``{"observation": slice(-3, None)}``.
            identity: Identity of each agent, ``[agents, k]``; one-hot vectors when None.
            **options: Options of this team.

        Raises:
            InputError: For several policies or images, and columns that do not fit the identity or the observations.
        """
        made: Any = cls
        one = policy if isinstance(policy, SpacesTeam) else made({"shared": policy}, **options)
        if one.agents > 1 or one.feature_dims > 1:
            got = ", ".join(one.names) if one.agents > 1 else "one of images"
            raise InputError("policy", "to be the one that agents share, of vectors or several arrays", got)
        (model,), arrays = one.policies, one.arrays
        if arrays is not None and columns is not None:
            key, own = locate(columns, list(arrays))
            start = sum(each.size for each in list(arrays.values())[: list(arrays).index(key)])
            columns = (start + torch.arange(arrays[key].size)[own]).reshape(-1).tolist()
        team = SharedTeam(model, agents, columns=columns, identity=identity)
        team.arrays, team.observation_features = arrays, one.observation_features
        if not one.whole:
            return team
        reader: Any = SharedTeam(lambda rows: rows, agents, columns=columns, identity=identity)
        act: Any = [lambda seen, at=at: model(reader.evaluate(seen).actions[..., at, :]) for at in range(team.agents)]
        spaces, memory = dict.fromkeys(team.names, (one.space, None)), dict.fromkeys(team.names, True)
        return SpacesTeam("policy", spaces, act, squashed=True, recurrent=memory)

    def join_arrays(self, observations: Any) -> Any:
        """Return observations of a Dict or Tuple as rows of numbers, and images with channels where the space has them.

        See :meth:`graphsnd.Team.join_arrays`.
        """
        if self.arrays is not None or not self.space.shape or hasattr(observations, "batch_size"):
            return super().join_arrays(observations)
        if isinstance(observations, Mapping):
            return map_arrays(self.join_arrays, observations)
        given = as_tensor(observations)
        return read_space(self.space).fit(given, "observations") if isinstance(given, Tensor) else given

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


def locate(columns: Any, keys: Sequence[Any]) -> tuple[Any, Any]:
    """Return the key of an array of an observation, and the columns in it.

    Args:
        columns: Columns by key, ``{key: columns}``, or the columns alone if there is one array.
        keys: Keys of all arrays.

    Raises:
        InputError: For an unknown key, and for several arrays and no key.

    Example:
        >>> locate({"id": slice(None)}, ["camera", "id"])
        ('id', slice(None, None, None))
    """
    named = columns if isinstance(columns, Mapping) else {keys[0]: columns} if len(keys) == 1 else {}
    for key, own in named.items():
        if key in keys and len(named) == 1:
            return key, own
    expected = f"to name one of the arrays {', '.join(map(repr, keys))}, and the columns in it"
    raise InputError("columns", expected, repr(columns), f"For example: columns={{{keys[0]!r}: slice(-3, None)}}.")


def map_arrays(function: Callable[..., Any], *given: Any) -> Any:
    """Apply a function to arrays, or to each array of dicts of arrays."""
    if not isinstance(given[0], Mapping):
        return function(*given)
    return {key: function(*(each[key] for each in given)) for key in given[0]}


def split_arrays(space: Any, rows: Tensor) -> Any:
    """Return rows ``[..., features]`` as observations of a space: the inverse of joining their arrays."""
    return rows if space.shape else read_space(space).split(rows)


def read_space(space: Any) -> Any:
    """Return a Dict or Tuple as :class:`~graphsnd.teams.arrays.Arrays`, and any other space as one array."""
    inner = getattr(space, "spaces", None)
    if inner is not None:
        named = dict(inner if isinstance(inner, Mapping) else enumerate(inner))
        arrays = Arrays({key: read_space(one) for key, one in named.items()})
        arrays.ordered = not isinstance(inner, Mapping)
        return arrays
    return Array(space.shape, torch.from_numpy(np.zeros(0, space.dtype)).dtype if space.dtype.kind in "iu" else None)


def by_name(given: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return a dict with the names as strings; those of a list are 0, 1, ..."""
    return {str(name): one for name, one in (given.items() if isinstance(given, Mapping) else enumerate(given))}


def read_actions(actions: Tensor, space: Any) -> Behavior:
    """Return the likeliest actions, ``[observations, ...]``, as a behaviour; discrete ones as certain choices."""
    if hasattr(space, "low"):
        return Deterministic(actions.flatten(1))
    return Categorical(probs=nn.functional.one_hot(actions.long(), int(space.n)).float())


def squash(base: D.Distribution, low: Any, high: Any) -> D.Distribution:
    """Return a distribution after a tanh to the range from ``low`` to ``high``, numbers or of the action's shape."""
    ends = [torch.as_tensor(end).flatten().to(base.mean) for end in (low, high)]
    scaled = D.AffineTransform((ends[1] + ends[0]) / 2, (ends[1] - ends[0]) / 2)
    return D.TransformedDistribution(base, [D.TanhTransform(), scaled])
