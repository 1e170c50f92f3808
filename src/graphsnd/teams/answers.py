"""Answers of policies, made into behaviours and joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
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
from graphsnd.errors import InputError, shape_of

# The tensors that make up a behaviour, in the order of its constructor, with the dimensions after the agents axis.
FIELDS: dict[Callable[..., Behavior], tuple[tuple[str, int], ...]] = {
    Gaussian: (("loc", 1), ("scale", 1)),
    MultivariateGaussian: (("loc", 1), ("covariance", 2)),
    Categorical: (("probs", 1),),
    Deterministic: (("actions", 1),),
    Quantiles: (("values", 2),),
}


def read_answer(answer: object, *, squashed: bool, validate: bool = True) -> Behavior:
    """Return a policy's answer as a behaviour.

    Args:
        answer: A distribution, a tensor (deterministic action), a tuple ``(loc, scale)``, or a behaviour.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        validate: Check values.

    Raises:
        InputError: For anything else.

    Example:
        >>> read_answer(torch.zeros(16, 1, 2), squashed=True)
        Deterministic(agents=1, observations=16)
    """
    if isinstance(answer, Behavior):
        return answer
    if isinstance(answer, D.Distribution):
        return from_distribution(answer, squashed=squashed, validate=validate)
    if isinstance(answer, Tensor):
        return Deterministic(answer, validate=validate)
    if isinstance(answer, tuple) and len(answer) == 2:
        return Gaussian(*answer, validate=validate)
    raise InputError(
        "team",
        "of policies that return a distribution, a tensor, (loc, scale) or a behaviour",
        type(answer).__name__,
        "Wrap the policy: lambda o: graphsnd.Categorical(logits=net(o)).",
    )


def join_agents(behaviors: Sequence[Behavior], *, validate: bool = False) -> Behavior:
    """Join behaviours of one agent each, on the same observations, to that of one team."""
    family = _family(behaviors)
    fields = (torch.cat(_parts(behaviors, *field, skip=0), dim=-1 - field[1]) for field in FIELDS[family])
    return family(*fields, validate=validate)


def join_requests(
    behaviors: Sequence[Behavior], lengths: Sequence[int], slots: Tensor, shape: torch.Size, *, validate: bool = False
) -> Behavior:
    """Join behaviours of one agent each, on different observations, to the answers to requests.

    Args:
        behaviors: One agent each.
        lengths: The number of observations of each behaviour.
        slots: Where each request's answer is among all the rows, shape ``[requests]``.
        shape: ``(observations, k)``.
        validate: Check values, where the parts have not been.
    """
    # A policy that loses a row would shift the answers of all agents after it.
    for behavior, length in zip(behaviors, lengths, strict=True):
        if tuple(behavior.batch_shape) != (length,):
            expected = f"to answer with shape {(length, 1, '...')}"
            raise InputError("team", expected, f"{(*behavior.batch_shape, behavior.agents, '...')}")
    family = _family(behaviors)
    rows = (torch.cat(_parts(behaviors, *field, skip=1)).squeeze(-1 - field[1]) for field in FIELDS[family])
    return family(*(part.index_select(0, slots).unflatten(0, shape) for part in rows), validate=validate)


def take_agents(behavior: Behavior, agents: Tensor) -> Behavior:
    """Return the behaviour of some agents of each observation.

    Args:
        behavior: Batch shape ``[observations]``.
        agents: int64, shape ``[observations, k]``.
    """
    family = _family([behavior])
    rows = torch.arange(len(agents), device=agents.device).unsqueeze(-1)
    return family(**{name: getattr(behavior, name)[rows, agents] for name, _ in FIELDS[family]}, validate=False)


def _family(behaviors: Sequence[Behavior]) -> Callable[..., Behavior]:
    family: Callable[..., Behavior] = type(behaviors[0])
    if any(type(b) is not family for b in behaviors):
        names = sorted({type(b).__name__ for b in behaviors})
        fix = "Use one distribution for all."
        raise InputError("team", "whose policies answer in one family", " and ".join(names), fix)
    if family not in FIELDS:
        known = ", ".join(sorted(getattr(f, "__name__", "") for f in FIELDS))
        raise InputError("team", f"whose policies answer with one of {known}", type(behaviors[0]).__name__)
    return family


def _parts(behaviors: Sequence[Behavior], name: str, trailing: int, *, skip: int) -> list[Tensor]:
    """One field of every behaviour, equal in shape after the first ``skip`` dimensions, with one agent each."""
    parts = [getattr(b, name) for b in behaviors]
    shapes = {tuple(part.shape[skip:]) for part in parts}
    if len(shapes) > 1:
        raise InputError("team", f"whose policies agree on the shape of {name}", " and ".join(map(str, shapes)))
    if parts[0].shape[-1 - trailing] != 1:
        raise InputError("team", "whose policies each answer for one agent", shape_of(parts[0]))
    return parts
