"""Every policy on every observation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import distributions as D

from graphsnd.behavior import (
    Behavior,
    Categorical,
    Deterministic,
    Gaussian,
    MultivariateGaussian,
    Quantiles,
    from_distribution,
)
from graphsnd.errors import InputError, check_rank, shape_of

Policy = Callable[[torch.Tensor], Any]

# The tensors that make up a behaviour, in the order of its constructor, with the dimensions after the agents axis.
_FIELDS: dict[Callable[..., Behavior], tuple[tuple[str, int], ...]] = {
    Gaussian: (("loc", 1), ("scale", 1)),
    MultivariateGaussian: (("loc", 1), ("covariance", 2)),
    Categorical: (("probs", 1),),
    Deterministic: (("actions", 1),),
    Quantiles: (("values", 2),),
}


def evaluate(
    team: Sequence[Policy] | Policy, observations: torch.Tensor, *, agents: int | None = None, squashed: bool = True
) -> Behavior:
    """What every agent would do on every observation: the input of equation (1).

    All observations are pooled and shown to all policies, whoever's they were. So ``[time, agents, features]``
    from a rollout and ``[time * agents, features]`` give the same numbers, and two policies can't be compared on
    different observations.

    Args:
        team: A list of ``n`` policies (``nn.Module`` or callable), each mapping ``[..., features]`` to one agent's
            answer; or one stacked module that answers for all agents with an agents axis in second to last place.
            An answer is a ``torch.distributions`` object, a tensor (deterministic action), a tuple
            ``(loc, scale)``, or a behaviour.
        observations: Shape ``[..., features]``.
        agents: For stacked modules that, like TorchRL's ``MultiAgentMLP``, take one observation per agent: the
            number of agents; each observation is then shown to all of them. Without it the module is called on
            ``observations`` as they are and must add the agents axis itself.
        squashed: Passed to :func:`~graphsnd.from_distribution`.

    Returns:
        A behaviour with ``n`` agents and all of the leading dimensions of ``observations``.

    Raises:
        InputError: For an empty team, and when policies answer in different families or shapes.

    Example:
        >>> import graphsnd as gs
        >>> team = [torch.nn.Linear(4, 2) for _ in range(3)]
        >>> gs.evaluate(team, torch.zeros(16, 4))
        Deterministic(agents=3, observations=16)
    """
    check_rank("observations", observations, 1, "(..., features)")
    lead = observations.shape[:-1]
    # One agent's answer lacks the agents axis: it is asked for with an axis of one, and joined along it.
    single = observations.unsqueeze(-2)
    if callable(team) and not isinstance(team, torch.nn.ModuleList):  # whose call only says that it has none
        shown = observations if agents is None else single.expand(*lead, agents, -1)
        behavior = _behavior(team(shown), squashed)
    else:
        behavior = _join([_behavior(policy(single), squashed) for policy in _policies(team)])
    # Without this, a module that forgets the agents axis would have its last batch axis taken for the team.
    if behavior.batch_shape != lead or behavior.agents != (agents or behavior.agents):
        expected = f"to answer with shape {(*lead, agents or 'agents', '...')}"
        got = f"{(*behavior.batch_shape, behavior.agents, '...')}"
        raise InputError(
            "team", expected, got, "Pass single policies as a list; a stacked module adds the agents axis."
        )
    return behavior


def _policies(team: Sequence[Policy] | torch.nn.ModuleList) -> list[Policy]:
    if not isinstance(team, Iterable) or not all(callable(policy) for policy in team):
        got = (
            f"a {type(team).__name__} that holds something else" if isinstance(team, Iterable) else type(team).__name__
        )
        raise InputError("team", "to be a list of modules or callables, or one stacked module", got)
    if not list(team):
        raise InputError("team", "to hold at least one policy", "an empty list")
    return list(team)


def _behavior(answer: object, squashed: bool) -> Behavior:
    if isinstance(answer, Behavior):
        return answer
    if isinstance(answer, D.Distribution):
        return from_distribution(answer, squashed=squashed)
    if isinstance(answer, torch.Tensor):
        return Deterministic(answer)
    if isinstance(answer, tuple) and len(answer) == 2:
        return Gaussian(*answer)
    raise InputError(
        "team",
        "of policies that return a distribution, a tensor, (loc, scale) or a behaviour",
        type(answer).__name__,
        "Wrap the policy: lambda o: graphsnd.Categorical(logits=net(o)).",
    )


def _join(behaviors: list[Behavior]) -> Behavior:
    family: Callable[..., Behavior] = type(behaviors[0])
    if any(type(b) is not family for b in behaviors):
        names = sorted({type(b).__name__ for b in behaviors})
        raise InputError(
            "team", "whose policies answer in one family", " and ".join(names), "Use one distribution for all."
        )
    parts = {name: [getattr(b, name) for b in behaviors] for name, _ in _FIELDS[family]}
    for name, trailing in _FIELDS[family]:
        shapes = {tuple(t.shape) for t in parts[name]}
        if len(shapes) > 1:
            raise InputError("team", f"whose policies agree on the shape of {name}", " and ".join(map(str, shapes)))
        if parts[name][0].shape[-1 - trailing] != 1:
            raise InputError("team", "whose policies each answer for one agent", shape_of(parts[name][0]))
    joined = {name: torch.cat(parts[name], dim=-1 - trailing) for name, trailing in _FIELDS[family]}
    return family(**joined, validate=False)
