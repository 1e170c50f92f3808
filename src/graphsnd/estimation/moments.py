"""Distances measured with pairs that are redrawn for each observation, and the variances that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.designs.template import Template
from graphsnd.estimation.source import Source
from graphsnd.sums import add_last, mean, mean_last, sample_variance

CHUNK = 1 << 21  # numbers measured at once
LOOKED_AT = 2048  # draws from which the variance of pairs is estimated


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws of a design: one observation and one random set of agents each."""

    means: Tensor  # float64 [draws], mean distance over the edges
    spreads: Tensor  # float64 [draws], variance of the distances over the edges; NaN for one edge, 0 for all pairs
    moments: Tensor  # float64 [at most LOOKED_AT, 3], mean products of distances; empty where the design gives none
    index: Tensor  # int64 [draws], the observations

    @property
    def count(self) -> int:
        """Number of draws."""
        return len(self.means)

    def value(self) -> float:
        """The estimate: every draw counts the same, and so does every observation."""
        return float(mean(self.means))

    def total_variance(self) -> float:
        """Variance of one draw, from the choice of its observation and of its agents."""
        return float(sample_variance(self.means)) if self.count > 1 else math.inf

    def pair_variance(self, template: Template, n: int) -> float:
        """Variance of one draw, from the choice of its agents alone, averaged over observations.

        Unbiased where the template allows it; otherwise an upper bound, from the factor that holds for every team.
        A single pair tells nothing about it and has the total instead. The unbiased estimate may be negative where the
        effects of agents cancel, as those of one specialist do in a ring: at least its own standard error is returned.
        """
        if template.m == n * (n - 1) // 2:
            return 0.0
        if len(self.moments):
            each = variances(self.moments, n, template.m, template.meeting)
            error = each.std(correction=0) / math.sqrt(len(each)) if len(each) > 1 else each[0].abs()
            return max(float(each.mean()), float(error))
        ceiling = self.pair_variance_ceiling(template, n)
        return self.total_variance() if ceiling is None else ceiling * float(mean(self.spreads))

    @staticmethod
    def pair_variance_ceiling(template: Template, n: int) -> float | None:
        """The most that the variance of a mean can be, in units of the expected spread; None where none holds.

        The spread of m distances has mean (S^2 - Var) m / (m - 1), with S^2 the variance over all pairs, and Var is
        at most c S^2. Solved for Var.
        """
        c = template.factor(n)
        if c == 0:
            return 0.0
        if template.m < 2 or c >= 1:
            return None
        return c / (1 - c) * (template.m - 1) / template.m


def draw(source: Source, template: Template, index: Tensor, generator: torch.Generator) -> Draws:
    """Measure the template at observations ``index``, with new random agents at each."""
    if template.m == math.comb(source.agents, 2):  # pairs leave nothing to chance: a sweep keeps no distance of them
        means = source.pair_means(index)
        return Draws(means, torch.zeros_like(means), means.new_empty(0, 3), index.cpu())
    rows = max(1, CHUNK // max(template.m, template.size * source.like.features))
    parts = [measure_draws(source, template, part, generator, first=i == 0) for i, part in enumerate(index.split(rows))]
    return join(parts)


def measure_draws(
    source: Source, template: Template, index: Tensor, generator: torch.Generator, *, first: bool = True
) -> Draws:
    """Measure all distances of some draws at once; their moments too where they are the ``first`` ones."""
    agents = template.lay(source.agents, len(index), generator, source.device)
    distances = source.distances(index.to(source.device), agents, template).double()
    moments = products(distances[:LOOKED_AT], template) if first else distances.new_empty(0, 3)
    return Draws(mean_last(distances).cpu(), sample_variance(distances).cpu(), moments.cpu(), index.cpu())


def join(parts: list[Draws]) -> Draws:
    """Return the draws of several parts as one."""
    fields = zip(*(vars(part).values() for part in parts), strict=True)
    means, spreads, moments, index = map(torch.cat, fields)
    return Draws(means, spreads, moments[:LOOKED_AT], index)


def products(distances: Tensor, template: Template) -> Tensor:
    r"""Means of :math:`d_e d_f` over the edges e = f, over those that share an agent and over disjoint ones.

    Unbiased, each, for the same mean over all pairs of agents, because the agents are drawn at random. Empty for
    templates that lack a kind: a matching has no two edges that share an agent.

    Args:
        distances: ``[t, m]``. A constant is subtracted, which changes no variance below; without that, products
            would cancel in the last digits.
        template: The template they were measured on.

    Returns:
        float64 ``[t, 3]``, or ``[0, 3]``.
    """
    adjacent = template.meeting
    disjoint = math.comb(template.m, 2) - adjacent
    x = distances.double() - mean(distances.double())
    if adjacent == 0 or disjoint == 0:
        return x.new_empty(0, 3)
    ends = template.list_edges(x.device)
    at = x.new_zeros(x.shape[0], template.size)
    at.index_add_(1, ends[:, 0], x).index_add_(1, ends[:, 1], x)
    sums, squares = add_last(x), add_last(x * x)
    touching = ((at * at).sum(dim=1) - 2 * squares) / 2
    apart = (sums * sums - squares) / 2 - touching
    return torch.stack([squares / template.m, touching / adjacent, apart / disjoint], dim=1)


def variances(moments: Tensor, n: int, edges: int, meeting: int) -> Tensor:
    r"""Return an unbiased estimate per draw of the variance of the mean over a template's edges, ``[...]``.

    .. math:: \mathrm{Var} = \frac{m q + 2 A a + 2 B b}{m^2} - \frac{N q + 2 A_N a + 2 B_N b}{N^2}

    The first term is the mean of the squared mean, with A pairs of edges that meet and B that do not; the second is
    the squared SND, which is the same expression for the complete graph.

    Args:
        moments: Result of :func:`products`, ``[..., 3]``, which may come from another template.
        n: Number of agents.
        edges: Number of edges of the template.
        meeting: Pairs of them that share an agent.
    """
    q, a, b = moments.unbind(-1)
    pairs = math.comb(n, 2)

    def square(m: int, touching: int) -> Tensor:
        return (m * q + 2 * touching * a + 2 * float(math.comb(m, 2) - touching) * b) / float(m) ** 2

    return square(edges, meeting) - square(pairs, n * math.comb(n - 1, 2))
