"""What a fresh design has seen so far, and the errors that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd.estimation.sampling.draws import ordered_subsets
from graphsnd.estimation.sampling.source import Source
from graphsnd.estimation.sampling.template import Template, products, spread, variance

CHUNK = 1 << 21  # numbers measured at once
LOOKED_AT = 2048  # draws from which the variance of pairs is estimated


@dataclass(frozen=True, eq=False)
class Sample:
    """Draws of a fresh design: one observation and one set of agents each."""

    means: Tensor  # float64 [draws], mean distance over the edges
    spreads: Tensor  # float64 [draws], variance of the distances over the edges; NaN for a single one
    moments: Tensor  # float64 [at most LOOKED_AT, 3], mean products of distances; empty where the design gives none
    index: Tensor  # int64 [draws], the observations

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.means)

    def value(self) -> float:
        """The estimate: every draw counts the same, and so does every observation."""
        return float(self.means.mean())

    def total_variance(self) -> float:
        """Of one draw, from the choice of its observation and of its agents."""
        return float(self.means.var(correction=1)) if self.draws > 1 else math.inf

    def pair_variance(self, template: Template, n: int) -> float:
        """Of one draw, from the choice of its agents alone, averaged over observations.

        Unbiased where the template allows it; otherwise an upper bound, from the factor that holds for every team.
        A single pair tells nothing about it and has the total instead.
        """
        if template.m == n * (n - 1) // 2:
            return 0.0
        if len(self.moments):
            return variance(self.moments.mean(dim=0), n, template.m, template.meeting())
        ceiling = self.pair_variance_ceiling(template, n)
        return self.total_variance() if ceiling is None else ceiling * float(self.spreads.mean())

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


def draw(source: Source, template: Template, index: Tensor, generator: torch.Generator) -> Sample:
    """Measure the template at observations ``index``, with fresh agents at each."""
    rows = max(1, CHUNK // max(template.m, template.size * source.features))
    parts = [_measure(source, template, part, generator, first=i == 0) for i, part in enumerate(index.split(rows))]
    return join(parts)


def _measure(source: Source, template: Template, index: Tensor, generator: torch.Generator, *, first: bool) -> Sample:
    agents = ordered_subsets(source.agents, template.size, len(index), generator, source.device)
    distances = source.distances(index.to(source.device), agents, template)
    moments = products(distances[:LOOKED_AT], template) if first else None
    return Sample(
        distances.mean(dim=1, dtype=torch.float64).cpu(),
        spread(distances).cpu(),
        torch.empty(0, 3, dtype=torch.float64) if moments is None else moments.cpu(),
        index.cpu(),
    )


def join(parts: list[Sample]) -> Sample:
    """Several samples as one."""
    return Sample(
        torch.cat([p.means for p in parts]),
        torch.cat([p.spreads for p in parts]),
        torch.cat([p.moments for p in parts])[:LOOKED_AT],
        torch.cat([p.index for p in parts]),
    )
