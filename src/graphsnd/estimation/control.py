r"""Sampled pairs, corrected by what is known about every agent.

An agent that behaves like nobody else is far from everybody, and a sampled graph may by chance give it too many edges
or too few. How far every agent is from the mean agent, :math:`a_i`, costs O(n) to know, and so does the mean of
:math:`a_i + a_j` over all pairs, :math:`2 \bar a`. The difference estimator samples only what these do not explain:

.. math:: \hat\theta_b = \frac{1}{m} \sum_{\{i,j\} \in E} \big( d(i,j) - b (a_i + a_j) \big) + 2 b \bar a .
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import bounds, kernels
from graphsnd.behavior import Behavior, Distance, Points
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.fixed import Error, Population, answer
from graphsnd.estimation.measure import check_confidence
from graphsnd.estimation.sampling.source import BehaviorSource
from graphsnd.graphs import Graph, Sampling
from graphsnd.graphs.draws import source as generator_of
from graphsnd.metric.pairwise import check_graph, edge_means

CROSS_FIT = "cross-fit"


def difference_estimate(
    behavior: Behavior,
    graph: Graph,
    *,
    coefficient: float | str = CROSS_FIT,
    distance: Distance | None = None,
    confidence: float = 0.95,
    seed: int | torch.Generator = 0,
    backend: str = "auto",
) -> Estimate:
    r"""Estimate SND from a Bernoulli or uniform graph, with the distances to the mean agent as control variable.

    *A fixed b is unbiased*: given its number of edges, the graph is a simple random sample of the N pairs, so the
    mean over the edges has the mean over all pairs as its expectation, and the two terms in b cancel.

    *A fitted b is unbiased if it is fitted on other edges.* The edges are split at random into halves A and B. Given B,
    the edges of A are a simple random sample of the pairs outside B, and :math:`b_B`, the slope in B, is a constant.
    With :math:`e = d - b_B (a_i + a_j)` and f = \|B\|/N,

    .. math:: \hat\theta_A = (1 - f) \bar e_A + f \bar e_B + 2 b_B \bar a

    has the expectation (1 - f) (mean of e outside B) + f (mean of e in B) + :math:`2 b_B \bar a` = SND given B, so
    also without it. The plain mean over A would be biased: B is missing from what A is drawn from. The estimate is the
    mean of :math:`\hat\theta_A` and, with the halves exchanged, :math:`\hat\theta_B`.

    Slopes are cut to [0, 1]; the triangle inequality :math:`|a_i - a_j| \le d(i,j) \le a_i + a_j` then keeps all
    residuals in an interval no longer than the certified diameter, and the guaranteed interval is that of
    :func:`graphsnd.measure` for the residuals. In a regular graph every agent counts the same, the correction is 0
    whatever b, and :func:`graphsnd.measure` does as well.

    Args:
        behavior: What ``n`` agents would do on shared observations.
        graph: A Bernoulli or uniform draw, without weights.
        coefficient: b in [0, 1], or ``"cross-fit"``.
        distance: Distance object; the family's default when None.
        confidence: Coverage of the interval.
        seed: Of the split into halves.
        backend: ``auto`` or the name of a kernel backend.

    Returns:
        The estimate; its ``method`` names the coefficients.

    Raises:
        InputError: For a graph that is no simple random sample of the pairs, or a coefficient outside [0, 1].

    Example:
        >>> import graphsnd as gs
        >>> team = gs.Deterministic(torch.cat([torch.arange(49.0), torch.tensor([900.0])]).view(1, 50, 1))
        >>> draw = gs.graphs.uniform(50, 200, seed=1)
        >>> plain, better = gs.measure(team, draw), difference_estimate(team, draw, coefficient=1.0)
        >>> better.standard_error < plain.standard_error / 5
        True
    """
    check_confidence(confidence)
    given = BehaviorSource(behavior, distance, backend)
    _check(graph, given.agents, coefficient)
    with torch.no_grad():
        distances = edge_means(given.points, graph, backend=backend).cpu()
        radii = _radii(given.points, backend).cpu()
    sums = radii[graph.edges.cpu()].sum(dim=1)
    d_max = min(float(radii.topk(2).values.sum()) * (1 + 1e-5), given.distance.maximum or math.inf)
    sample = _Sample(distances, sums, 2 * float(radii.mean()), graph.pairs)
    if coefficient == CROSS_FIT:
        value, found = _cross_fit(*_halves(sample, seed), d_max, 1 - confidence)
    else:
        value, found = _fixed(sample, float(coefficient), d_max, 1 - confidence)
    return answer(given, value, "SND", found, Population(None, None), confidence, graph.m, graph.family)


@dataclass(frozen=True, eq=False)
class _Sample:
    distances: Tensor  # [m], float64
    sums: Tensor  # [m], a_i + a_j
    mean: float  # of the sums, over all pairs
    pairs: int

    @property
    def m(self) -> int:
        return len(self.distances)

    def take(self, index: Tensor) -> _Sample:
        return _Sample(self.distances[index], self.sums[index], self.mean, self.pairs)

    def residuals(self, b: float) -> Tensor:
        return self.distances - b * self.sums

    def slope(self) -> float:
        """Least squares, cut to [0, 1]; 0 where there is nothing to fit."""
        centred = self.sums - self.sums.mean()
        spread = float(centred.square().sum())
        if spread == 0:
            return 0.0
        return min(1.0, max(0.0, float((centred * self.distances).sum()) / spread))


def _fixed(sample: _Sample, b: float, d_max: float, delta: float) -> tuple[float, Error]:
    residuals = sample.residuals(b)
    value = float(residuals.mean()) + b * sample.mean
    error = _std(residuals, d_max) * math.sqrt((1 - sample.m / sample.pairs) / sample.m)
    radius = _radius(residuals, d_max, sample.pairs, delta)
    return value, _error(value, error, radius, d_max, f"difference estimator, b = {b:.3g}")


def _halves(sample: _Sample, seed: int | torch.Generator) -> tuple[_Sample, _Sample]:
    generator, _ = generator_of(seed, None, host=True)
    order = torch.randperm(sample.m, generator=generator, device=generator.device).cpu()
    return sample.take(order[: sample.m // 2]), sample.take(order[sample.m // 2 :])


def _cross_fit(one: _Sample, two: _Sample, d_max: float, delta: float) -> tuple[float, Error]:
    halves = [_half(part, other, d_max, delta / 2) for part, other in ((one, two), (two, one))]
    value, radius = (sum(h[k] for h in halves) / 2 for k in (0, 1))
    slopes = two.slope(), one.slope()
    residuals = torch.cat([part.residuals(b) for part, b in zip((one, two), slopes, strict=True)])
    m = one.m + two.m
    error = _std(residuals, d_max) * math.sqrt((1 - m / one.pairs) / m)
    named = f"difference estimator, cross-fitted b = {slopes[0]:.3g} and {slopes[1]:.3g}"
    return value, _error(value, error, radius, d_max, named)


def _half(part: _Sample, other: _Sample, d_max: float, delta: float) -> tuple[float, float]:
    """Unbiased from ``part``, with the slope of ``other``, and its radius."""
    b, share = other.slope(), other.m / other.pairs
    own, theirs = part.residuals(b), other.residuals(b)
    value = (1 - share) * float(own.mean()) + share * float(theirs.mean()) + b * part.mean
    return value, (1 - share) * _radius(own, d_max, part.pairs - other.m, delta)


def _radius(residuals: Tensor, d_max: float, pairs: int, delta: float) -> float:
    m, std = len(residuals), _std(residuals, d_max)
    if m == pairs:
        return 0.0
    bernstein = bounds.empirical_bernstein(std, d_max, m, pairs, delta / 2)
    return min(bounds.serfling(d_max, m, pairs, delta / 2), bernstein)


def _std(residuals: Tensor, d_max: float) -> float:
    # A single residual shows no spread; none in an interval of this length spread more than half of it.
    return float(residuals.std(correction=1)) if len(residuals) > 1 else d_max / 2


def _error(value: float, error: float, radius: float, d_max: float, method: str) -> Error:
    return Error(error, (max(0.0, value - radius), min(d_max, value + radius)), method)


def _radii(points: Points, backend: str) -> Tensor:
    """Mean over observations of each agent's distance to the mean agent, ``[agents]``."""
    both = Points(torch.cat([points.values, points.center().values], dim=1), points.norm, points.dtype)
    others = torch.arange(points.agents, device=points.values.device)
    return kernels.edge_sums(
        both, torch.stack([others, torch.full_like(others, points.agents)], dim=1), backend=backend
    )


def _check(graph: Graph, agents: int, coefficient: float | str) -> None:
    check_graph(graph, agents)
    if graph.sampling not in (Sampling.INDEPENDENT, Sampling.UNIFORM) or graph.weights is not None:
        fix = "Use graphs.bernoulli or uniform; for others, also regular ones, which need no correction, use measure."
        raise InputError("graph", "to be a simple random sample of the pairs, without weights", graph, fix)
    least = 2 if coefficient == CROSS_FIT else 1
    if graph.m < least:
        raise InputError("graph", f"to have at least {least} edges", graph.m, "Draw again, or fix the coefficient.")
    if isinstance(coefficient, str):
        if coefficient != CROSS_FIT:
            raise InputError("coefficient", f"to be a number in [0, 1] or {CROSS_FIT!r}", repr(coefficient))
    elif not 0 <= coefficient <= 1:
        fix = "Beyond it the guaranteed interval would not hold."
        raise InputError("coefficient", f"to be a number in [0, 1] or {CROSS_FIT!r}", coefficient, fix)
