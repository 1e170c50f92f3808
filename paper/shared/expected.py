r"""The expected error of a drawn graph, from the distances of a whole team.

The mean over the edges of a Bernoulli graph is unbiased given that the graph has an edge. With N pairs, the variance
:math:`S^2` of their distances (N - 1 in its denominator) and M edges, its error then has the variance

.. math:: S^2 \left( \mathrm{E}[1/M \mid M \ge 1] - 1/N \right)

exactly. On a random regular graph it is :func:`~graphsnd.bounds.relabelling.relabelling_variance`. If a template of
pairs is assigned to new random agents at each of t out of T observations o, with :math:`V` the mean of the variances at
one observation and :math:`B` the variance of :math:`\mathrm{SND}_o` (T - 1 in its denominator), it is

.. math:: (B + V) / t - B / T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy.stats import binom
from torch import Tensor

from graphsnd.behavior import Behavior
from graphsnd.bounds.relabelling import relabelling_variance
from graphsnd.designs import Design
from graphsnd.designs.template import Template
from graphsnd.estimation.moments import products, variances
from graphsnd.estimation.source import as_source

CHUNK = 1 << 21  # number of distances at a time


def bernoulli_error(distances: Tensor, p: float) -> float:
    r"""Return the standard deviation of the mean over the edges of a Bernoulli graph that has an edge, exactly.

    Args:
        distances: Distances, symmetric ``[n, n]``.
        p: Probability of a pair.

    Example:
        >>> line = torch.arange(3.0)
        >>> round(bernoulli_error((line[:, None] - line).abs(), 0.5) ** 2, 6)  # S^2 = 1/3, E[1/M] = 29/42
        0.119048
    """
    n = len(distances)
    i, j = torch.triu_indices(n, n, offset=1)
    values = distances[i, j].double().cpu()
    counts = torch.arange(1, len(values) + 1).double()
    chances = torch.from_numpy(binom.pmf(counts.numpy(), len(values), p))
    inverse = float((chances / counts).sum() / chances.sum())
    return float(values.std(correction=1)) * math.sqrt(max(0.0, inverse - 1 / len(values)))


def regular_error(distances: Tensor, degree: int) -> float:
    """Return the standard deviation of the mean over the edges of a randomly numbered regular graph, exactly.

    Args:
        distances: Distances, symmetric ``[n, n]``.
        degree: Degree of every agent.

    Example:
        >>> a = torch.arange(4.0)
        >>> regular_error((a[:, None] + a) * ~torch.eye(4, dtype=torch.bool), 2)  # effects of agents alone cancel
        0.0
    """
    return math.sqrt(max(0.0, float(relabelling_variance(distances, [degree] * len(distances)))))


@dataclass(frozen=True, eq=False)
class Redrawn:
    """The moments of one team that determine the error of pairs that are redrawn at every observation."""

    agents: int
    observations: int
    snd: float
    between: float  # variance over observations of the diversity at each
    moments: Tensor  # float64 [3], mean products of distances, over all pairs of pairs and observations

    @classmethod
    def of(cls, behavior: Behavior) -> Redrawn:
        """Return the moments of a team of at least four agents, from all pairs at all observations."""
        source = as_source(behavior, None, None, "auto")
        n, total = source.agents, source.observations
        all_pairs = Template(n)
        means, moments = [], []
        for index in torch.arange(total, device=source.device).split(max(1, CHUNK // all_pairs.m)):
            agents = torch.arange(n, device=source.device).expand(len(index), n)
            distances = source.distances(index, agents, all_pairs)
            means.append(distances.double().mean(1).cpu())
            moments.append(products(distances, all_pairs).sum(0).cpu())
        each = torch.cat(means)
        return cls(n, total, float(each.mean()), float(each.var(correction=1)), torch.stack(moments).sum(0) / total)

    def own(self, design: Design) -> float:
        """Return the variance at one observation that comes from the choice of agents, mean over observations."""
        template = design.draw(self.agents)
        assert isinstance(template, Template)
        return max(0.0, float(variances(self.moments, self.agents, template.m, template.meeting)))

    def error(self, design: Design, count: int | None = None) -> float:
        """Return the standard deviation of a design at ``count`` random observations; None uses all.

        Example:
            >>> import graphsnd as gs
            >>> team = gs.Deterministic(torch.randn(30, 5, 2, generator=torch.Generator().manual_seed(0)))
            >>> Redrawn.of(team).error(gs.designs.parse("agents:5"))  # all agents
            0.0
        """
        count = self.observations if count is None else count
        error = (self.between + self.own(design)) / count - self.between / self.observations
        return math.sqrt(max(0.0, error))

    def observations_for(self, design: Design, error: float) -> int:
        """Return the number of observations at which a design has at most this error; perhaps more than exist."""
        return math.ceil((self.between + self.own(design)) / (error**2 + self.between / self.observations))
