r"""A small graph on positions, laid over random agents afresh for every observation.

All designs of this package that redraw their pairs are of this form: a uniformly random ordered subset of agents takes
the positions, and the edges between positions say which pairs are measured. Every pair of agents is then measured at
an observation with the same probability m / N, so the mean over the edges is unbiased for that observation's SND. It
is the mean over the edges of a uniformly random relabelling of one graph, whose variance :mod:`graphsnd.bounds`
knows exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.bounds.relabelling import factor_from_counts


@dataclass(frozen=True, eq=False)
class Template:
    """Which positions are paired."""

    size: int  # positions, each taken by another agent
    edges: Tensor  # int64 [m, 2], positions

    @property
    def m(self) -> int:
        """Number of distances for each observation."""
        return self.edges.shape[0]

    def degrees(self) -> Tensor:
        """Edges at every position, ``[size]``."""
        return torch.bincount(self.edges.reshape(-1), minlength=self.size)

    def factor(self, n: int) -> float:
        """The c for which the variance of the mean is at most c times that of the distances, for every team."""
        return factor_from_counts(n, self.m, self.meeting())

    def meeting(self) -> int:
        """Number of pairs of edges that share a position."""
        degrees = self.degrees()
        return int((degrees * (degrees - 1) // 2).sum())


def spread(distances: Tensor) -> Tensor:
    """Sample variance of the distances ``[t, m]`` of each observation, float64 ``[t]``; NaN for a single pair."""
    if distances.shape[1] < 2:
        return torch.full(distances.shape[:1], math.nan, dtype=torch.float64, device=distances.device)
    return distances.double().var(dim=1, correction=1)


def products(distances: Tensor, template: Template) -> Tensor | None:
    r"""Means of :math:`d_e d_f` over the edges e = f, over those that share an agent and over disjoint ones.

    Unbiased, each, for the same mean over all pairs of agents, because the agents are drawn at random. None for
    templates that lack a kind: a matching has no two edges that share an agent.

    Args:
        distances: ``[t, m]``. A constant is subtracted, which changes no variance below; without that, products
            would cancel in the last digits.
        template: The template they were measured on.

    Returns:
        float64 ``[t, 3]``.
    """
    adjacent = template.meeting()
    disjoint = math.comb(template.m, 2) - adjacent
    if adjacent == 0 or disjoint == 0:
        return None
    x = distances.double() - distances.double().mean()
    ends = template.edges.to(x.device)
    at = x.new_zeros(x.shape[0], template.size)
    at.index_add_(1, ends[:, 0], x).index_add_(1, ends[:, 1], x)
    squares, sums = (x * x).sum(dim=1), x.sum(dim=1)
    touching = ((at * at).sum(dim=1) - 2 * squares) / 2
    apart = (sums * sums - squares) / 2 - touching
    return torch.stack([squares / template.m, touching / adjacent, apart / disjoint], dim=1)


def variance(moments: Tensor, n: int, edges: int, meeting: int) -> float:
    r"""Variance of the mean over a template's edges, from :func:`products` ``[3]`` that may come from another one.

    .. math:: \mathrm{Var} = \frac{m q + 2 A a + 2 B b}{m^2} - \frac{N q + 2 A_N a + 2 B_N b}{N^2}

    The first term is the mean of the squared mean, with A pairs of edges that meet and B that do not; the second is
    the squared SND, which is the same expression for the complete graph.
    """
    q, a, b = (float(moment) for moment in moments)
    pairs = math.comb(n, 2)

    def square(m: int, touching: int) -> float:
        return (m * q + 2 * touching * a + 2 * (math.comb(m, 2) - touching) * b) / m**2

    return max(0.0, square(edges, meeting) - square(pairs, n * math.comb(n - 1, 2)))
