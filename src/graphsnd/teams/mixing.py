"""Find policies whose answer to one observation depends on the other observations of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.func import functional_call

from graphsnd.behavior import Behavior
from graphsnd.errors import InputError
from graphsnd.teams.answers import FIELDS

ROWS = 3  # enough for one to be replaced and another to follow it
_CHECKED: WeakKeyDictionary[Callable[..., Any], tuple[bool, ...]] = WeakKeyDictionary()  # modes of what passed


def check_unmixed(
    policy: Callable[..., Any], answer: Callable[[Tensor], list[Tensor]], given: Tensor, other: Tensor
) -> bool:
    """Raise when replacing the first or last entry of ``given`` changes the answer at the remaining ones.

    Such a policy (recurrent, communicating, batch normalisation in training mode) answers to the batch, and the batch
    that graphsnd makes is not one that it was trained on. A module is checked once, and again
    when a part of it changes mode.

    Args:
        policy: What answers.
        answer: Maps entries to tensors whose first axis is that of the entries, see :func:`ask_quietly`.
        given: Shape ``[entries, ...]``, at least 2 entries.
        other: Shape ``[...]``, what stands in for an entry.

    Returns:
        Whether this is settled; False where all entries are equal, which shows nothing.

    Raises:
        InputError: When it does.
    """
    training = tuple(part.training for part in policy.modules()) if isinstance(policy, nn.Module) else None
    if training is not None and _CHECKED.get(policy) == training:
        return True
    if torch.equal(given, other.expand_as(given)):
        return False
    first = answer(given)
    for changed, kept in ((0, slice(1, None)), (-1, slice(None, -1))):
        entries = given.clone()
        entries[changed] = given[0] if torch.equal(other, given[changed]) else other
        # A policy that draws random numbers, or keeps state between calls, changes by itself: nothing can be told.
        if _differ(first, answer(entries), kept) and not _differ(first, answer(given), kept):
            raise InputError(
                "team",
                "to answer each observation by itself",
                "a policy whose answer changes with the other observations of the batch",
                "Recurrent and communicating policies: graphsnd.evaluate([policy, ...], observations, whole=True), one "
                "policy per agent, each given the observations as they are. Batch normalisation: policy.eval().",
            )
    if training is not None:
        _CHECKED[policy] = training
    return True


@torch.no_grad()
def ask_quietly(policy: Callable[[Tensor], Any], shown: Tensor) -> Any:
    """Return the policy's answer, with no trace left in its buffers or in the state of random number generators."""
    with torch.random.fork_rng():  # of all devices, because manual_seed seeds them all
        torch.manual_seed(0)  # so that dropout draws the same numbers in all calls
        if isinstance(policy, nn.Module):
            # A module in training mode updates its buffers.
            buffers = {name: buffer.clone() for name, buffer in policy.named_buffers()}
            return functional_call(policy, buffers, (shown,))
        return policy(shown)


def agents_first(behavior: Behavior) -> list[Tensor]:
    """Return the behaviour's tensors, the axis of its agents first."""
    return [getattr(behavior, name).movedim(-1 - trailing, 0) for name, trailing in FIELDS[type(behavior)]]


def _differ(one: list[Tensor], two: list[Tensor], kept: slice) -> bool:
    """Whether two answers differ by more than rounding at the ``kept`` entries."""
    for a, b in zip(one, two, strict=True):
        close = 64 * torch.finfo(a.dtype).eps * float(a.abs().nan_to_num().max())
        if not torch.allclose(a[kept], b[kept], rtol=0, atol=close, equal_nan=True):
            return True
    return False
