r"""All-pairs SND without pairs: project on random directions, and sort.

Every direction is uniform on the sphere by itself, which is all that unbiasedness needs. Together they are spread as
evenly as is known to help: regular polygons in the plane, the six axes of an icosahedron in three dimensions, the
twelve of a 24-cell in four, orthonormal frames elsewhere, each turned at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.arguments import checked
from graphsnd.behavior import Norm, Points
from graphsnd.behavior.samples import length_constant
from graphsnd.designs import Projections
from graphsnd.errors import InputError
from graphsnd.estimation.estimate import Estimate, Interval
from graphsnd.estimation.intervals import PairError, population_error
from graphsnd.estimation.on_graph import make_estimate
from graphsnd.estimation.source import Source
from graphsnd.graphs.draws import source
from graphsnd.kernels.projections import projected_totals
from graphsnd.sums import mean, total

STRATA = 4  # consecutive observations that share one finer polygon
COUNTED = 2048  # agents from which places may be counted instead of sorted
GRID = 1e-4  # of the estimate


@dataclass(frozen=True, eq=False)
class ProjectedSnd:
    """SND from random directions.

    ``error_bound`` is the standard deviation over draws that no team with these values exceeds. ``standard_error`` is
    estimated from the sets of directions that were turned independently where there are at least two, and the bound
    where there is one. Both are 0 for one feature: the line itself is the only direction.

    Example:
        >>> import torch, graphsnd as gs
        >>> points = gs.Wasserstein().embed(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> snd = projected_snd(points, 4)
        >>> float(snd.value), snd.per_observation.shape, snd.error_bound  # one feature: no error
        (4.0, torch.Size([1]), 0.0)
    """

    per_observation: Tensor  # [observations], float64; its mean estimates SND
    standard_error: float  # of the mean over observations, by the choice of directions
    error_bound: float  # the largest standard deviation of any team with these values
    directions: int  # for each observation, in all turned sets together

    @property
    def value(self) -> Tensor:
        """The estimate of SND, a float64 scalar."""
        return mean(self.per_observation)


@checked
def projected_snd(points: Points, directions: int = 8, *, seed: int | torch.Generator = 0) -> ProjectedSnd:
    r"""Estimate the mean distance over *all* pairs in O(directions · n log n), or less, for each observation.

    .. math:: |x| = c_F\, \mathbb{E}_u |u \cdot x|, \qquad
        \sum_{i<j} |y_i - y_j| = \sum_k (2k - n - 1)\, y_{(k)}

    The estimate is unbiased. For a direction u uniform on the sphere and any vector x, the law of :math:`u \cdot x`
    depends on the length of x alone, so :math:`c_F |u \cdot x|` has mean :math:`|x|`, with :math:`c_F` the inverse of
    the mean absolute first coordinate of u. Expectation is linear: it passes through the sums over pairs, over
    directions and over observations, however the directions depend on each other. So they may be spread evenly within
    an observation (polygons, icosahedra, 24-cells, frames) and between neighbouring ones, as long as each is uniform
    by itself; even spreading only removes variance. Equal agents give exactly 0.

    In the plane, consecutive fours of observations are stratified: given the shared shift, their offsets are a random
    order of four, whose covariances are at most a third of the variances, and the shift itself moves all four only as a
    polygon of four times the corners does. With :math:`\kappa_K` from
    :func:`worst_spread`, the variance for each observation is therefore at most
    :math:`\frac{4}{3}\kappa_K^2 + \frac{8}{3}\kappa_{4K}^2` times its squared SND.

    Args:
        points: Embedded team, Euclidean norm.
        directions: Directions for each observation; rounded up to whole designs, 6 in three dimensions and 12 in four
            once there are that many, ``features`` otherwise.
        seed: An int, or a generator to advance.

    Returns:
        The estimate for each observation and its error; differentiable in the points.

    Raises:
        InputError: For a norm that is not Euclidean, or no direction.

    Example:
        >>> corners = Points(torch.tensor([[[0.0, 0.0], [3.0, 4.0]]]), Norm.EUCLIDEAN)
        >>> abs(float(projected_snd(corners, 64).value) - 5) < 0.01
        True
    """
    _check(points)
    pairs = math.comb(points.agents, 2)
    features = points.values.shape[2]
    if features == 1:
        return ProjectedSnd(kernels.pair_totals(points) / pairs, 0.0, 0.0, 1)
    # Drawn on the CPU for an int, so that every device gets the same directions.
    generator, _ = source(seed, "cpu", host=True)
    vectors = even_directions(features, directions)
    count = -(-directions // vectors.shape[0])
    drawn = turn_randomly(vectors, points.observations, count, generator).to(points.values.device)
    totals = projected_totals(points.values, drawn.flatten(1, 2), generator)
    each = totals.unflatten(1, (count, -1)).mean(dim=2) * (length_constant(features) / pairs)
    bound = _bound(each.detach().mean(dim=1), vectors, count)
    error = bound if count == 1 else min(bound, _spread(each.detach()))
    return ProjectedSnd(each.mean(dim=1), error, bound, count * vectors.shape[0])


def _check(points: Points, argument: str = "points") -> None:
    if points.norm is Norm.HALF_L1:
        fix = "Half-L1 distances are sums over features: graphsnd.snd has them exactly, by sorting."
        raise InputError(argument, "with the Euclidean norm", points.norm.value, fix)
    if points.norm is not Norm.EUCLIDEAN:
        fix = "Its lengths are no averages over directions: use graphsnd.snd, or a sampled graph."
        raise InputError(argument, "with the Euclidean norm", points.norm.value, fix)
    if points.agents < 2:
        raise InputError("points", "of at least 2 agents", points.agents, "Diversity needs a pair.")


def _bound(values: Tensor, vectors: Tensor, count: int) -> float:
    """Standard deviation of the mean that no team with these values for its observations exceeds."""
    variance = worst_spread(vectors) ** 2
    if vectors.shape[1] == 2:
        finer = worst_spread(even_directions(2, STRATA * vectors.shape[0])) ** 2
        variance = variance * STRATA / (STRATA - 1) + finer * (STRATA - STRATA / (STRATA - 1))
    return math.sqrt(variance / count) * math.sqrt(float(total(values**2))) / values.shape[0]


def _spread(each: Tensor) -> float:
    """Return the standard error of the mean from ``[observations, sets]``.

    Sums over the fours that are drawn together are independent of each other, so their variances add up.
    """
    fours = torch.stack([block.sum(dim=0) for block in each.split(STRATA)])
    return math.sqrt(float(total(fours.var(dim=1))) / each.shape[1]) / each.shape[0]


def measure_by_projections(
    source: Source, design: Projections, confidence: float, clusters: Tensor | None, *, seed: int
) -> Estimate:
    """Measure all agents at all observations, block by block."""
    generator, parts = torch.Generator().manual_seed(seed), []
    for start, stop in source.blocks():
        points = source.block(start, stop)
        _check(points, "distance")
        parts.append(projected_snd(points, design.directions, seed=generator))
    values = torch.cat([part.per_observation for part in parts]).cpu()
    value = float(mean(values))
    around = population_error(values, None, clusters, source.observations, confidence)
    error, pairs = _error(parts, value, source, 1 - confidence), math.comb(source.agents, 2)
    return replace(make_estimate(source, value, "SND", error, around, confidence, pairs, str(design)), distances=0)


def _error(parts: list[ProjectedSnd], value: float, source: Source, delta: float) -> PairError:
    """Exact on a line, certain in the plane, Chebyshev's inequality beyond.

    In the plane K evenly spaced lines see every length between (pi/2K) cot(pi/2K) and (pi/2K) / sin(pi/2K) of itself,
    whatever the offset; so SND lies between the estimate divided by one and by the other. The largest variance is a
    multiple of the *true* squared values: with at least as many directions as features, these are at most a known
    multiple of the estimated ones (an orthonormal frame sees at least 1/F of a length on average). With fewer
    directions nothing is certain, and the interval is not called guaranteed.
    """
    if source.features == 1:
        return PairError(0.0, (value, value), "exact: one feature, sorted")
    shares = [(len(part.per_observation) / source.observations, part) for part in parts]
    error = math.hypot(*(share * part.standard_error for share, part in shares))
    most = math.hypot(*(share * part.error_bound for share, part in shares))
    directions, features = parts[0].directions, source.features
    half = math.pi / (2 * directions)
    spans = directions >= features
    upper = math.tan(half) / half if features == 2 else features / length_constant(features)
    radius = most * (upper if spans else 1.0) / math.sqrt(delta)
    # Counting on a grid, as large teams do on a CPU, adds an error of its own, far below this.
    grid = GRID * value if source.agents >= COUNTED else 0.0
    low, high = max(0.0, value - radius - grid), value + radius + grid
    if features != 2 or not spans:
        return PairError(error, (low, high), "Chebyshev, largest variance over all teams", guaranteed=spans)
    certain: Interval = (value * math.sin(half) / half - grid, value * math.tan(half) / half + grid)
    method = "Chebyshev, and certain for evenly spaced directions in the plane"
    return PairError(error, (max(low, certain[0]), min(high, certain[1])), method)


def even_directions(features: int, directions: int) -> Tensor:
    """Return the most even set of at most ``directions`` unit vectors known here, float64 ``[k, features]``."""
    if features == 2:
        angles = torch.arange(directions, dtype=torch.float64) * (math.pi / directions)
        return torch.stack([angles.cos(), angles.sin()], dim=1)
    if features == 3 and directions >= 6:
        return _icosahedron()
    if features == 4 and directions >= 12:
        return _cell_24()
    return torch.eye(features, dtype=torch.float64)[: min(directions, features)]


def worst_spread(vectors: Tensor) -> float:
    r"""Return the relative standard deviation of the average over randomly turned directions, for the worst team.

    For a single vector, with :math:`\rho_{kl} = u_k \cdot u_l`,

    .. math:: \kappa^2 = \frac{c_F^2}{K^2 F} \sum_{kl} \frac{2}{\pi}
        \Big( \sqrt{1 - \rho_{kl}^2} + \rho_{kl} \arcsin \rho_{kl} \Big) - 1,

    the mean of :math:`|g \cdot u| |g \cdot v|` for a Gaussian g being a classical integral. A mean of lengths is a
    sum over pairs, and standard deviations of sums are at most sums of standard deviations: no team exceeds
    :math:`\kappa` times its diversity, and a team on a line reaches it.

    Example:
        >>> [round(worst_spread(even_directions(2, k)), 4) for k in (1, 2, 4, 8)]
        [0.4834, 0.0977, 0.0233, 0.0058]
    """
    count, features = vectors.shape
    rho = (vectors @ vectors.T).clamp(-1, 1)
    products = (1 - rho.square()).sqrt() + rho * rho.asin()
    second = length_constant(features) ** 2 * 2 / math.pi / features * float(products.mean())
    return math.sqrt(max(second - 1, 0.0)) if count else math.inf


def turn_randomly(vectors: Tensor, observations: int, replicates: int, generator: torch.Generator) -> Tensor:
    """Turn the directions for each observation and replicate: ``[observations, replicates, k, features]``."""
    features = vectors.shape[1]
    if features == 2:
        turns = _strata(observations, replicates, generator) * (math.pi / vectors.shape[0])
        c, s = turns.cos(), turns.sin()
        rotations = torch.stack([torch.stack([c, s], dim=-1), torch.stack([-s, c], dim=-1)], dim=-2)
    else:
        rotations = _frames(observations * replicates, vectors, generator)
        rotations = rotations.unflatten(0, (observations, replicates))
    return vectors[:, : rotations.shape[-2]] @ rotations


def _strata(observations: int, replicates: int, generator: torch.Generator) -> Tensor:
    """Offsets in [0, 1) ``[observations, replicates]``: four consecutive ones lie a quarter apart, in random order.

    Each alone is uniform. Neighbours in a rollout are alike, so together they act as a polygon with four times the
    corners. The order is random because an orderly one can keep step with a team that turns.
    """
    blocks = -(-observations // STRATA)
    shape = (blocks, STRATA + 1, replicates)
    draws = torch.rand(shape, generator=generator, dtype=torch.float64, device=generator.device)
    order, shared = draws[:, 1:].argsort(dim=1), draws[:, :1]
    return ((order + shared) / STRATA).reshape(-1, replicates)[:observations]


def _frames(count: int, vectors: Tensor, generator: torch.Generator) -> Tensor:
    """Orthonormal vectors, uniformly distributed, ``[count, k, features]``; k = features unless fewer are wanted.

    Gram and Schmidt's procedure on Gaussian vectors: the law is unchanged by every rotation, and there is no sign
    to fix. Batches of thousands of small matrices are an order of magnitude faster than with a QR routine.
    """
    features = vectors.shape[1]
    wanted = min(features, vectors.shape[0])
    shape = (count, wanted, features)
    q = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    for k in range(wanted):
        for _ in range(2 if k else 0):  # once more, so that rounding does not tilt the last of many
            q[:, k] -= torch.einsum("bf,bjf,bjg->bg", q[:, k], q[:, :k], q[:, :k])
        q[:, k] /= q[:, k].norm(dim=-1, keepdim=True)
    return q


def _icosahedron() -> Tensor:
    golden = (1 + math.sqrt(5)) / 2
    corners = [c for s in (golden, -golden) for c in ((0.0, 1.0, s), (1.0, s, 0.0), (s, 0.0, 1.0))]
    vectors = torch.tensor(corners, dtype=torch.float64)
    return vectors / vectors.norm(dim=1, keepdim=True)


def _cell_24() -> Tensor:
    signs = torch.cartesian_prod(*[torch.tensor([0.5, -0.5], dtype=torch.float64)] * 3)
    halves = torch.cat([torch.full((8, 1), 0.5, dtype=torch.float64), signs], dim=1)
    return torch.cat([torch.eye(4, dtype=torch.float64), halves])
