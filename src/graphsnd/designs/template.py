r"""Pairs that are drawn for each observation: a small graph laid over randomly chosen agents.

A uniformly random ordered subset of agents takes the places of a template, and its edges say which pairs are measured.
Every pair of agents is then measured at an observation with the same probability, so the mean over the edges has mean
:math:`\mathrm{SND}_o`, the diversity at that observation; the mean over all observations has mean SND; and over a
random subset of observations as well, by the law of total expectation. The noise of different observations is
independent and averages away, which that of one graph kept for all observations does not. The mean is one over the
edges of a uniformly random relabelling of one graph, whose variance :mod:`graphsnd.bounds` knows exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.bounds.relabelling import factor_from_counts
from graphsnd.graphs.random import integer_seed
from graphsnd.kernels.relabelling import relabel


@dataclass(frozen=True, eq=False)
class Template:
    """Pairs of places; other random agents take the places at each observation.

    Example:
        >>> from graphsnd.designs.design import Matching
        >>> template = Matching().draw(6)
        >>> template.size, template.list_edges().tolist(), template.meeting
        (6, [[0, 1], [2, 3], [4, 5]], 0)
    """

    size: int  # places, each taken by another agent
    edges: Tensor | None = None  # int64 [m, 2], pairs of places; None for all of them

    @cached_property
    def m(self) -> int:
        """Number of distances for each observation."""
        return math.comb(self.size, 2) if self.edges is None else len(self.edges)

    @cached_property
    def meeting(self) -> int:
        """Number of pairs of edges that share a place."""
        if self.edges is None:
            return self.size * math.comb(self.size - 1, 2)
        degrees = torch.bincount(self.edges.reshape(-1), minlength=self.size)
        return int((degrees * (degrees - 1) // 2).sum())

    def list_edges(self, device: torch.device | str = "cpu") -> Tensor:
        """Return the pairs of places, int64 ``[m, 2]``."""
        return _edges_on(self, torch.device(device))

    def factor(self, n: int) -> float:
        """Return the c for which the variance of the mean is at most c times that of the distances, for every team."""
        return factor_from_counts(n, self.m, self.meeting)

    def lay(self, n: int, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
        """Return the agents that take the places at ``count`` observations, int64 ``[count, size]``."""
        return ordered_subsets(n, self.size, count, generator, device)


@lru_cache(maxsize=64)
def _edges_on(template: Template, device: torch.device) -> Tensor:
    """Return the edges on a device, kept: each copy from the host would be waited for."""
    edges = torch.combinations(torch.arange(template.size)) if template.edges is None else template.edges
    return edges.to(device)


def ordered_subsets(n: int, size: int, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Return ``count`` independent, uniformly random ordered subsets of ``n`` agents: int64 ``[count, size]``.

    On the CPU a shuffle that stops after ``size`` swaps and then undoes them costs O(size) for each row, however
    large the team: sorting random keys took longer than the distances themselves. On a GPU an agent is computed from
    its place, see :mod:`graphsnd.kernels.relabelling`. The generator is on the CPU, so that nothing is waited for.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> ordered_subsets(5, 5, 2, generator, torch.device("cpu")).sort(dim=1).values.tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    seed = integer_seed(generator)
    if device.type != "cpu":
        return relabel(n, size, count, seed, device)
    out = torch.empty(count, size, dtype=torch.int64)
    _compiled()(n, seed, out.numpy())
    return out


@lru_cache
def _compiled() -> Any:
    from numba import njit  # importing graphsnd must not load it

    return njit(nogil=True, cache=True)(_shuffle)


def _shuffle(n: int, seed: int, out: Any) -> None:
    """Fill every row of ``out`` with a uniformly random ordered subset of 0 .. n-1; random words are splitmix64's."""
    deck = np.arange(n)
    size = out.shape[1]
    swapped = np.empty(size, np.int64)
    state = np.uint64(seed)
    for row in range(out.shape[0]):
        for i in range(size):
            span = np.uint64(n - i)
            # A multiplication maps 32 bits to a range; the few values that would favour some agents are drawn again.
            least = (np.uint64(1 << 32) - span) % span
            while True:
                state = state + np.uint64(0x9E3779B97F4A7C15)
                z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                product = ((z ^ (z >> np.uint64(31))) >> np.uint64(32)) * span
                if (product & np.uint64(0xFFFFFFFF)) >= least:
                    break
            j = i + np.int64(product >> np.uint64(32))
            deck[i], deck[j] = deck[j], deck[i]
            swapped[i] = j
            out[row, i] = deck[i]
        for i in range(size):
            deck[swapped[i]] = swapped[i]
            deck[i] = i
