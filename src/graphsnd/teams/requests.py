"""Requests for single (observation, agent) pairs, grouped so that a batched product can serve them.

Sorted by agent, the requests of one agent are a run. Runs are split into pieces of at most 64, and pieces of nearly
equal length are padded to one width, so that a handful of batched calls serve any pattern of requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

# Each at most 3/2 of the one before (2 after 1, which wastes nothing: a count of 2 is a width): padding adds at most a
# third to a batch where powers of two would double it.
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, eq=False)
class Runs:
    """The requests in order of their agents."""

    order: Tensor  # [requests] which request stands at each place; requests count row by row through [observations, k]
    agents: Tensor  # [runs] ascending
    starts: Tensor  # [runs] first place of each run
    counts: Tensor  # [runs]


@dataclass(frozen=True, eq=False)
class Bucket:
    """Pieces of one width. Short ones repeat their last request, whose extra answers are not read."""

    agents: Tensor  # [pieces]
    requests: Tensor  # [pieces, width]


@dataclass(frozen=True, eq=False)
class Batches:
    """All requests, in buckets."""

    buckets: tuple[Bucket, ...]
    slots: Tensor  # [requests] the row of each request's answer, counting through the buckets' pieces one after another


def sort_by_agent(agents: Tensor) -> Runs:
    """Sort requests by agent; O(requests log requests), whatever the size of the team.

    Args:
        agents: int64, any shape.

    Example:
        >>> sort_by_agent(torch.tensor([[2, 0], [2, 5]])).agents
        tensor([0, 2, 5])
    """
    ordered, order = agents.flatten().sort(stable=True)
    distinct, counts = torch.unique_consecutive(ordered, return_counts=True)
    return Runs(order, distinct, counts.cumsum(0) - counts, counts)


def batches(agents: Tensor) -> Batches:
    """Group requests into buckets of equal width.

    Args:
        agents: int64, any shape, at least one request.

    Example:
        >>> [tuple(bucket.requests.shape) for bucket in batches(torch.tensor([[2, 0], [2, 5]])).buckets]
        [(2, 1), (1, 2)]
    """
    sorted_ = sort_by_agent(agents)
    owner, starts, counts = _pieces(sorted_)
    widths = torch.tensor(WIDTHS, device=agents.device)
    level = torch.searchsorted(widths, counts)
    by_level = level.argsort(stable=True)
    padded = widths[level]
    base = torch.empty_like(padded)
    base[by_level] = padded[by_level].cumsum(0) - padded[by_level]
    # The places of piece after piece are 0, 1, 2, ...: each lies as far into its piece's rows as into the piece.
    places = torch.arange(sorted_.order.numel(), device=agents.device)
    slots = torch.empty_like(sorted_.order)
    slots[sorted_.order] = torch.repeat_interleave(base - starts, counts) + places
    sizes = torch.bincount(level, minlength=len(WIDTHS)).tolist()
    buckets = []
    for width, pieces in zip(WIDTHS, by_level.split(sizes), strict=True):
        if pieces.numel():
            into = torch.arange(width, device=agents.device).minimum(counts[pieces, None] - 1)
            buckets.append(Bucket(sorted_.agents[owner[pieces]], sorted_.order[starts[pieces, None] + into]))
    return Batches(tuple(buckets), slots)


def _pieces(sorted_: Runs) -> tuple[Tensor, Tensor, Tensor]:
    """Return owner (a run), first place and length of every piece, each ``[pieces]``."""
    longest = WIDTHS[-1]
    parts = (sorted_.counts + longest - 1) // longest
    owner = torch.repeat_interleave(torch.arange(parts.numel(), device=parts.device), parts)
    rank = torch.arange(owner.numel(), device=parts.device) - (parts.cumsum(0) - parts)[owner]
    starts = sorted_.starts[owner] + rank * longest
    return owner, starts, (sorted_.counts[owner] - rank * longest).clamp_max(longest)


def split_bucket(bucket: Bucket, size: int) -> Iterator[Bucket]:
    """Yield the bucket, at most ``size`` pieces at a time."""
    for agents, requests in zip(bucket.agents.split(size), bucket.requests.split(size), strict=True):
        yield Bucket(agents, requests)
