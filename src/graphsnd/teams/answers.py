"""Answers of policies, made into behaviours and joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch import distributions as D

from graphsnd.behavior import (
    Behavior,
    Categorical,
    Deterministic,
    Gaussian,
    Joint,
    MultivariateGaussian,
    Quantiles,
    Samples,
)
from graphsnd.behavior.behavior import BY_GROUP
from graphsnd.behavior.distributions import read_distribution
from graphsnd.errors import InputError, as_tensor, shape_of

# The tensors that make up a behaviour, in the order of its constructor, with the dimensions after the agents axis.
FIELDS: dict[Callable[..., Behavior], tuple[tuple[str, int], ...]] = {
    Gaussian: (("loc", 1), ("scale", 1)),
    MultivariateGaussian: (("loc", 1), ("covariance", 2)),
    Categorical: (("probs", 1),),
    Deterministic: (("actions", 1),),
    Quantiles: (("values", 2),),
    Samples: (("samples", 2),),
}
# Families by the names of the tensors that stand for them, in files and dicts.
FAMILIES = {tuple(name for name, _ in fields): family for family, fields in FIELDS.items()}
FAMILIES[("logits",)] = Categorical
Combine = Callable[[list[Tensor], int], Tensor]  # of a tensor of all behaviours, and its dimensions after the agents


def read_answer(
    answer: Any, *, squashed: bool, validate: bool = True, single: bool = False, lead: int | None = None
) -> Behavior:
    """Return a policy's answer as a behaviour.

    Args:
        answer: A distribution, a tensor (deterministic action), a tuple ``(loc, scale)``, a behaviour, or a dict, list
            or tuple of distributions and behaviours, one for each part of the action.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        validate: Check values.
        single: Whether it is one agent's, as in :func:`read_single`.
        lead: Dimensions of the observations, where it is all agents': see :func:`read_distribution`.

    Raises:
        InputError: For anything else.

    Example:
        >>> read_answer(torch.zeros(16, 1, 2), squashed=True)
        Deterministic(agents=1, observations=16)
    """
    if isinstance(answer, Behavior):
        return answer
    if isinstance(answer, D.Distribution) or _in_parts(answer):
        return read_distribution(answer, squashed=squashed, validate=validate, lead=lead)
    answer = as_tensor(answer)
    if isinstance(answer, Tensor):
        return Deterministic(answer, validate=validate)
    if isinstance(answer, tuple) and len(answer) == 2:
        refuse_value(answer, single=single)
        return Gaussian(*answer, validate=validate)
    expected = "of policies that return a distribution, a tensor, (loc, scale), a behaviour, or a dict of distributions"
    fix = "Wrap the policy: lambda o: graphsnd.Categorical(logits=net(o))."
    raise InputError("team", expected, type(answer).__name__, fix)


def refuse_value(pair: tuple[Any, Any], *, single: bool = False) -> None:
    """Raise for a value or hidden state beside the action, of an actor-critic or recurrent module, that is no scale.

    Args:
        pair: In place of ``(loc, scale)``.
        single: Whether it is one agent's. Then ``[1, batch, actions]`` beside ``[time, batch, actions]`` is a hidden
            state; of all agents it may be a parameter, ``[1, agents, actions]``.
    """
    loc, scale = (tuple(getattr(part, "shape", ())) for part in pair)
    value = len(scale) == len(loc) and scale[-1:] == (1,) != loc[-1:]
    hidden = single and len(scale) == len(loc) > 2 and scale != loc and scale[-2] in (loc[0], loc[-2])  # batch, or time
    if value or hidden or pair[1] is None or isinstance(pair[1], tuple):
        fix = "Return the action without its value or hidden state: lambda o: policy(o)[0]. "
        fix += "One scale of all actions or rows: broadcast it to the shape of loc."
        got = f"{loc} and {scale or type(pair[1]).__name__}"
        raise InputError("team", "of policies that return (loc, scale) of equal shapes", got, fix)


def read_single(answer: object, lead: Sequence[int], *, squashed: bool, validate: bool = True) -> Behavior:
    """Return one agent's answer to observations ``[*lead, features]``, the last of ``lead`` in place of the agents.

    Args:
        answer: As in :func:`read_answer`, but of one agent: ``[*lead, actions]``.
        lead: The leading shape that the policy was given.
        squashed: Passed to :func:`~graphsnd.from_distribution`.
        validate: Check values.

    Raises:
        InputError: When the answer has another leading shape.
    """
    expected = f"to answer with shape {(*lead, 'actions')}"
    fix = "A policy of a list answers for one agent, without an agents axis."
    answer = as_tensor(answer)
    if isinstance(answer, Tensor) and answer.dim() < 2:
        if not answer.is_floating_point():  # the index of a discrete action
            fix = "For discrete actions return their probabilities: graphsnd.Categorical(probs=...) or (logits=...)."
        raise InputError("team", expected, shape_of(answer), fix)
    behavior = read_answer(answer, squashed=squashed, validate=validate, single=True)
    # A policy that loses or adds a row would shift the answers of all agents after it.
    if (*behavior.batch_shape, behavior.agents) != tuple(lead):
        raise InputError("team", expected, f"shape {(*behavior.batch_shape, behavior.agents, '...')}", fix)
    return behavior


def join_agents(behaviors: Sequence[Behavior], lead: Sequence[int], *, validate: bool = False) -> Behavior:
    """Join answers of single agents, on the same observations, to the behaviour of a team with batch shape ``lead``."""

    def stack(parts: list[Tensor], trailing: int) -> Tensor:
        stacked = torch.stack(parts, dim=-1 - trailing)
        return stacked.reshape(*lead, *stacked.shape[-1 - trailing :])

    return combine(behaviors, stack, validate=validate)


def join_requests(
    behaviors: Sequence[Behavior], slots: Tensor, shape: torch.Size, *, validate: bool = False
) -> Behavior:
    """Join answers of single agents, on different observations, to the answers to requests.

    Args:
        behaviors: One agent each, from :func:`read_single`.
        slots: Where each request's answer is among all the rows, shape ``[requests]``.
        shape: ``(observations, k)``.
        validate: Check values, where the parts have not been.
    """

    def pick(parts: list[Tensor], _: int) -> Tensor:
        return torch.cat(parts).index_select(0, slots).unflatten(0, shape)

    return combine(behaviors, pick, skip=1, validate=validate)


def take_agents(behavior: Behavior, agents: Tensor) -> Behavior:
    """Return the behaviour of some agents of each observation.

    Args:
        behavior: Batch shape ``[observations]``.
        agents: int64, shape ``[observations, k]``.
    """
    rows = torch.arange(len(agents), device=agents.device).unsqueeze(-1)
    return combine([behavior], lambda parts, _: parts[0][rows, agents])


def combine(behaviors: Sequence[Behavior], function: Combine, *, skip: int = 0, validate: bool = False) -> Behavior:
    """Return the behaviour of the same family whose tensors are made of those of the given ones.

    Args:
        behaviors: Of one family.
        function: Takes the same tensor of every behaviour, and its dimensions after the agents axis.
        skip: Leading dimensions in which the tensors may differ.
        validate: Check values.
    """
    family = _family(behaviors)
    if isinstance(behaviors[0], Joint):
        parts = zip(*(b.parts.values() for b in behaviors if isinstance(b, Joint)), strict=True)
        return behaviors[0]._with_parts([combine(p, function, skip=skip, validate=validate) for p in parts])
    fields = (function(_parts(behaviors, name, skip=skip), trailing) for name, trailing in FIELDS[family])
    return family(*fields, validate=validate)


def tensors_of(behavior: Behavior) -> list[tuple[Tensor, int]]:
    """Return the tensors that make up a behaviour, each with its number of dimensions after the agents axis."""
    if isinstance(behavior, Joint):
        return [pair for part in behavior.parts.values() for pair in tensors_of(part)]
    return [(getattr(behavior, name), trailing) for name, trailing in FIELDS[_family([behavior])]]


def _in_parts(answer: object) -> bool:
    """Whether an answer has a distribution or behaviour for each of several parts; tensors say too little of theirs."""
    parts = list(answer.values()) if isinstance(answer, Mapping) else answer
    if not isinstance(parts, list | tuple) or not parts:
        return False
    return all(isinstance(part, D.Distribution | Behavior) or _in_parts(part) for part in parts)


def _family(behaviors: Sequence[Behavior]) -> Callable[..., Behavior]:
    family: Callable[..., Behavior] = type(behaviors[0])
    if any(type(b) is not family for b in behaviors):
        names = sorted({type(b).__name__ for b in behaviors})
        fix = f"Use one distribution for all. {BY_GROUP}"
        raise InputError("team", "whose policies answer in one family", " and ".join(names), fix)
    if isinstance(behaviors[0], Joint):
        made = {(tuple(b.parts), b.distance) for b in behaviors if isinstance(b, Joint)}
        if len(made) > 1:
            fix = "Use the same names, weights and distances for all."
            raise InputError("team", "whose policies answer with the same parts", " and ".join(map(str, made)), fix)
    elif family not in FIELDS:
        known = ", ".join(sorted(getattr(f, "__name__", "") for f in FIELDS))
        raise InputError("team", f"whose policies answer with one of {known}", type(behaviors[0]).__name__)
    return family


def _parts(behaviors: Sequence[Behavior], name: str, *, skip: int) -> list[Tensor]:
    """One field of every behaviour, equal in shape after the first ``skip`` dimensions."""
    parts = [getattr(b, name) for b in behaviors]
    shapes = {tuple(part.shape[skip:]) for part in parts}
    if len(shapes) > 1:
        fix = f"Agents with different spaces have no distance. {BY_GROUP}"
        raise InputError("team", f"whose policies agree on the shape of {name}", " and ".join(map(str, shapes)), fix)
    return parts
