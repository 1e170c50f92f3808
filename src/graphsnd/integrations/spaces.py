"""What the teams of Stable-Baselines3 and RLlib share: both act in the spaces of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributions as D

from graphsnd.behavior import Behavior, Categorical, Deterministic
from graphsnd.errors import InputError
from graphsnd.teams import CallablesTeam


class SpacesTeam(CallablesTeam):
    """Policies of one observation space and one action space.

    Args:
        argument: For messages: what the policies came in.
        spaces: By name, the observation space and the action space of each.
        policies: In the same order.
        squashed: As in :class:`~graphsnd.teams.CallablesTeam`.
        fix: What to do where spaces differ.

    Raises:
        InputError: For different spaces, and observations that are no single array.
    """

    def __init__(
        self,
        argument: str,
        spaces: Mapping[str, tuple[Any, Any]],
        policies: Sequence[nn.Module],
        *,
        squashed: bool,
        fix: str = "",
    ) -> None:
        if len({str(pair) for pair in spaces.values()}) > 1:
            got = ", ".join(f"{name}: {seen} and {done}" for name, (seen, done) in spaces.items())
            raise InputError(argument, "with the same spaces", got, fix)
        shapes = [seen.shape for seen, _ in spaces.values()]
        if None in shapes:
            flat = "Flatten it: gymnasium.wrappers.FlattenObservation."
            raise InputError(argument, "that observe one array", next(iter(spaces.values()))[0], flat)
        super().__init__(policies, squashed=squashed, feature_dims=max([1, *map(len, shapes)]))
        self._names = tuple(map(str, spaces))


def by_name(given: Mapping[Any, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return a dict with the names as texts; those of a list are 0, 1, ..."""
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    named = {str(name): one for name, one in pairs}
    if len(named) < len(given):
        raise InputError("models", "with names that differ as texts", ", ".join(map(repr, given)))
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
