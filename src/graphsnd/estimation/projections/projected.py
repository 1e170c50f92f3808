"""SND of all pairs by sorting along directions, with the interval that belongs to it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphsnd.estimation.designs import SortedProjections
from graphsnd.estimation.estimate import Estimate, Interval
from graphsnd.estimation.fixed import Error, answer, population
from graphsnd.estimation.projections.directions import length_constant
from graphsnd.estimation.projections.lengths import ProjectedSnd, projected_snd
from graphsnd.estimation.sampling.source import Source

COUNTED = 2048  # agents from which places may be counted instead of sorted
GRID = 1e-4  # of the estimate


def projected(
    source: Source, design: SortedProjections, confidence: float, *, clusters: Tensor | None, seed: int
) -> Estimate:
    """All agents at all observations, block by block."""
    generator = torch.Generator().manual_seed(seed)
    parts = [projected_snd(source.block(a, b), design.directions, seed=generator) for a, b in source.blocks()]
    values = torch.cat([part.per_observation for part in parts]).cpu()
    value = float(values.mean())
    around = population(values, torch.arange(source.observations), clusters, source.observations, confidence)
    pairs = source.agents * (source.agents - 1) // 2
    found = _error(parts, value, source, 1 - confidence)
    return replace(answer(source, value, "SND", found, around, confidence, pairs, design.name), distances=0)


def _error(parts: list[ProjectedSnd], value: float, source: Source, delta: float) -> Error:
    """Exact on a line, certain in the plane, Chebyshev's inequality beyond.

    In the plane K evenly spaced lines see every length between (pi/2K) cot(pi/2K) and (pi/2K) / sin(pi/2K) of itself,
    whatever the offset; so SND lies between the estimate divided by one and by the other. The largest variance is a
    multiple of the *true* squared values: with at least as many directions as features, these are at most a known
    multiple of the estimated ones (an orthonormal frame sees at least 1/F of a length on average). With fewer
    directions nothing is certain, and the interval is not called guaranteed.
    """
    if all(part.exact for part in parts):
        return Error(0.0, (value, value), "exact: one feature, sorted")
    shares = [len(part.per_observation) / source.observations for part in parts]
    error = math.hypot(*(share * part.standard_error for share, part in zip(shares, parts, strict=True)))
    most = math.hypot(*(share * part.error_bound for share, part in zip(shares, parts, strict=True)))
    directions, features = parts[0].directions, source.features
    half = math.pi / (2 * directions)
    spans = directions >= features
    upper = math.tan(half) / half if features == 2 else features / length_constant(features)
    radius = most * (upper if spans else 1.0) / math.sqrt(delta)
    # Counting on a grid, as large teams do on a CPU, adds an error of its own, far below this.
    grid = GRID * value if source.agents >= COUNTED else 0.0
    low, high = max(0.0, value - radius - grid), value + radius + grid
    if features != 2 or not spans:
        return Error(error, (low, high), "Chebyshev, largest variance over all teams", guaranteed=spans)
    certain: Interval = (value * math.sin(half) / half - grid, value * math.tan(half) / half + grid)
    method = "Chebyshev, and certain for evenly spaced directions in the plane"
    return Error(error, (max(low, certain[0]), min(high, certain[1])), method)
