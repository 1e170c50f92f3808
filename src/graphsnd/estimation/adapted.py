r"""SND from pairs that were chosen by what is believed about them.

At each observation the estimate :math:`X_o` is a weighted mean of distances, independent of the others, with mean
:math:`\mathrm{SND}_o`. Its variance is needed twice. *For the standard error*, a random part of the observations is
drawn a second time: the halved squared difference of two draws has the variance of one as its mean, whatever groups,
numbers of pairs and team are. *For the guarantee*, the spreads of the distances inside blocks give an upper value, as
those of whole draws do in :mod:`graphsnd.estimation.intervals`; with D_max it holds for every team (Bernstein).
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Points
from graphsnd.designs import Adaptive
from graphsnd.designs.adaptive import split_blocks
from graphsnd.estimation.estimate import Estimate
from graphsnd.estimation.intervals import PairError, check_bound, population_error, quantile
from graphsnd.estimation.on_graph import make_estimate
from graphsnd.estimation.sample import CHUNK
from graphsnd.estimation.source import Source
from graphsnd.sums import add_last, mean, sample_variance

SHARE, FEWEST = 8, 64  # one in 8 observations is drawn twice, at least 64 in all


def measure_adapted(
    source: Source, design: Adaptive, confidence: float, clusters: Tensor | None, d_max: float | None, *, seed: int
) -> Estimate:
    """Measure all observations with pairs of an adaptive design."""
    design._check(source.agents)
    generator, count = torch.Generator().manual_seed(seed), source.observations
    twice = torch.zeros(count, dtype=torch.bool)
    twice[torch.randperm(count, generator=generator)[: max(FEWEST, count // SHARE)]] = True
    values, ceilings, differences = [], [], []
    for start, stop in source.blocks():
        points, again = source.block(start, stop), twice[start:stop]
        first, ceiling = _draw(points, design, generator, source.backend)
        part = replace(points, values=points.values[again.to(source.device)])
        values.append(first)
        ceilings.append(ceiling)
        differences.append(first[again] - _draw(part, design, generator, source.backend)[0])
    drawn, second = torch.cat(values), torch.cat(differences)
    check_bound(drawn, d_max)
    value, variance = float(mean(drawn)), float(mean(second.square() / 2))
    # A few draws that agree, as where each of them met one specialist, do not show that all would.
    variance = variance or float(mean(torch.cat(ceilings))) / len(second)
    error, delta = math.sqrt(variance / count), 1 - confidence
    reach = quantile(delta, len(second)) * error
    method, radius = "asymptotic: no bound on the distances is known, pass d_max for a guarantee", reach
    if d_max is not None:
        method, radius = "Bernstein, pairs only", _radius(count, float(mean(torch.cat(ceilings))), design, d_max, delta)
    interval = max(0.0, value - radius), min(math.inf if d_max is None else max(d_max, value), value + radius)
    around = population_error(drawn, None, clusters, count, confidence)
    sampled = PairError(error, interval, method, guaranteed=d_max is not None)
    estimate = make_estimate(source, value, "SND", sampled, around, confidence, design.count, str(design))
    asymptotic = max(0.0, value - reach), value + reach
    return replace(estimate, asymptotic_interval=asymptotic, distances=design.count * (count + len(second)))


def _draw(points: Points, design: Adaptive, generator: torch.Generator, backend: str) -> tuple[Tensor, Tensor]:
    """Return the estimate at each observation and an upper value of its variance, float64 ``[observations]``.

    The latter leaves out blocks of a single pair, which show no spread.
    """
    rows, values, ceilings = max(1, CHUNK // design.count), [], []
    for at in range(0, points.observations, rows):
        part = points.slice(at, min(at + rows, points.observations))
        edges, weights = design._draw(part.observations, generator, part.values.device)
        distances = kernels.observation_edges(part, edges, backend=backend)
        values.append(add_last(distances * weights).cpu() / math.comb(part.agents, 2))
        blocks = zip(distances.split(design.counts(), dim=1), _ceilings(design), strict=True)
        spreads = [ceiling * sample_variance(block) for block, ceiling in blocks if ceiling is not None]
        ceilings.append(sum(spreads, torch.zeros(part.observations, device=distances.device)).double().cpu())
    empty = torch.empty(0, dtype=torch.float64)
    return torch.cat([empty, *values]), torch.cat([empty, *ceilings])


def _ceilings(design: Adaptive) -> list[float | None]:
    """Return for each block the most that it adds to the variance, in units of its expected spread; None if any.

    As :meth:`~graphsnd.estimation.sample.Sample.pair_variance_ceiling`, times the square of the block's weight.
    """
    pairs, blocks = math.comb(len(design.labels), 2), split_blocks(design)
    known = [(len(block.places), block.factor(), (block.size / pairs) ** 2) for block in blocks]
    return [weight * c / (1 - c) * (m - 1) / m if m > 1 and c < 1 else None for m, c, weight in known]


def _radius(draws: int, variance: float, design: Adaptive, d_max: float, delta: float) -> float:
    """Return Bernstein's radius, with a third of delta for the upper value of the variance.

    Spreads of m distances lie in [0, D_max^2 m / (4 (m - 1))], so the upper value in [0, B], and its mean y has
    sqrt(E y) <= sqrt(y + h) + sqrt(h) with h = B log(3 / delta) / 2t. A block of a single pair has variance D_max^2 / 4
    at most.
    """
    pairs, largest, log_term = math.comb(len(design.labels), 2), d_max * d_max / 4, math.log(3 / delta)
    if design.count == pairs:
        return 0.0
    known = list(zip(split_blocks(design), design.counts(), _ceilings(design), strict=True))
    most = sum(ceiling * largest * m / (m - 1) for _, m, ceiling in known if ceiling is not None)
    rest = sum((block.size / pairs) ** 2 * largest for block, _, ceiling in known if ceiling is None and block.size > 1)
    h, first = most * log_term / (2 * draws), d_max * log_term / 3
    root = math.sqrt(variance + h) + math.sqrt(h)
    return (first + math.sqrt(first * first + 2 * draws * (root * root + rest) * log_term)) / draws
