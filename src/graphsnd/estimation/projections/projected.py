"""SND of all pairs by sorting along directions, with the interval that belongs to it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from graphsnd.estimation.designs import SortedProjections
from graphsnd.estimation.estimate import Estimate, Interval
from graphsnd.estimation.fixed import Error, answer, population
from graphsnd.estimation.projections.lengths import ProjectedSnd, projected_snd
from graphsnd.estimation.sampling.source import Source


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
    whatever the offset; so SND lies between the estimate divided by one and by the other.
    """
    if all(part.exact for part in parts):
        return Error(0.0, (value, value), "exact: one feature, sorted")
    shares = [len(part.per_observation) / source.observations for part in parts]
    error = math.hypot(*(share * part.standard_error for share, part in zip(shares, parts, strict=True)))
    most = math.hypot(*(share * part.error_bound for share, part in zip(shares, parts, strict=True)))
    radius = most / math.sqrt(delta)
    low, high = max(0.0, value - radius), value + radius
    if source.features != 2:
        return Error(error, (low, high), "Chebyshev, largest variance over all teams")
    half = math.pi / (2 * parts[0].directions)
    certain: Interval = (value * math.sin(half) / half, value * math.tan(half) / half)
    method = "Chebyshev, and certain for evenly spaced directions in the plane"
    return Error(error, (max(low, certain[0]), min(high, certain[1])), method)
