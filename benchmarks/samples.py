"""How far off is the distance of two agents that can only be sampled, before and after its correction?

Two Gaussian agents, whose distances have closed forms. bias: mean over repetitions minus the closed form, error: its
standard error; pooled: of squares averaged over 64 observations before the root; square: of the corrected square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from scipy.special import hyp1f1

from benchmarks.timing import Options, Tables
from graphsnd import kernels
from graphsnd.behavior import Distance, Energy, Norm, Samples, Sliced
from graphsnd.kernels.pairfunctions import energy

COUNTS = tuple(2**k for k in range(11))
POOLED = 64  # observations


@dataclass(frozen=True)
class Pair:
    """A standard Gaussian agent, and another one."""

    name: str
    shift: float
    scale: float
    features: int

    def draw(self, repetitions: int, count: int, generator: torch.Generator) -> Samples:
        """Return independent samples, ``[repetitions, 2, count, features]``."""
        shape = (repetitions, 2, count, self.features)
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        values[:, 1] *= self.scale
        values[:, 1, :, 0] += self.shift
        return Samples(values)

    @property
    def wasserstein(self) -> float:
        """The 2-Wasserstein distance."""
        return math.hypot(self.shift, math.sqrt(self.features) * (self.scale - 1))

    @property
    def energy(self) -> float:
        """The energy distance."""
        own = self._length(0, math.sqrt(2)) * (1 + self.scale)
        return math.sqrt(max(0.0, 2 * self._length(self.shift, math.hypot(1, self.scale)) - own))

    def _length(self, shift: float, scale: float) -> float:
        """Return the mean length of a Gaussian vector."""
        half = self.features / 2
        factor = math.sqrt(2) * math.exp(math.lgamma(half + 0.5) - math.lgamma(half))
        return scale * factor * float(hyp1f1(-0.5, half, -(shift**2) / 2 / scale**2))


PAIRS = (
    Pair("alike", 0.0, 1.0, 1),
    Pair("shifted", 0.5, 1.0, 1),
    Pair("wider", 0.0, 1.5, 1),
    Pair("shifted and wider, 2 features", 0.5, 1.5, 2),
)


def measure(options: Options) -> dict[str, Any]:
    """Measure the bias for every number of samples."""
    bias, counts = [], COUNTS[:6:5] if options.quick else COUNTS
    for pair in PAIRS:
        options.step(f"bias, {pair.name}")
        generator = torch.Generator().manual_seed(options.seed)
        bias += [_measure_bias(pair, count, generator, quick=options.quick) for count in counts]
    return {"bias": bias}


def _measure_bias(pair: Pair, count: int, generator: torch.Generator, *, quick: bool) -> dict[str, Any]:
    # A multiple of the pooled observations, few enough that points along 32 directions fit into memory.
    repetitions = POOLED * (2 if quick else max(2, min(64, 2**10 // count)) if pair.features > 1 else 64)
    behavior = pair.draw(repetitions, count, generator)
    row: dict[str, Any] = {"pair": pair.name, "samples": count, "repetitions": repetitions}
    row["wasserstein"] = pair.wasserstein
    for kind, family, truth in (("sliced", Sliced, pair.wasserstein), ("energy", Energy, pair.energy)):
        row[kind] = _off(_distances(behavior, family()), truth)
        if count > 1:
            row[f"{kind}_debiased"] = _off(_distances(behavior, family(debias=True)), truth)
            row[f"{kind}_pooled"] = _off(_distances(behavior, family(debias=True, pooled=True)), truth)
            row[f"{kind}_square"] = _off(_squares(behavior, family(debias=True)), truth**2)
    return row


def _parts(behavior: Samples) -> list[Samples]:
    return [Samples(part, validate=False) for part in behavior.samples.split(POOLED)]


def _distances(behavior: Samples, distance: Distance) -> torch.Tensor:
    """Return the distance at each observation, or of each 64 observations where they are pooled."""
    points = [distance.embed(part) for part in _parts(behavior)]
    edge = torch.tensor([[0, 1]])
    parts = [kernels.observation_edges(each, edge.expand(each.observations, 1, 2)) for each in points]
    return torch.cat(parts).flatten()


def _squares(behavior: Samples, distance: Distance) -> torch.Tensor:
    """Return the corrected squares before their positive part is taken."""
    squares = []
    for part in _parts(behavior):
        points = distance.embed(part)
        if points.norm is Norm.CROSS:
            one, two = (points.values[:, 0] - points.values[:, 1]).chunk(2, dim=-1)
            squares.append((one * two).sum(-1))
        else:
            plain = points.metric().values
            squares.append(energy(plain[:, 0], plain[:, 1], points.samples).square() - points.values[..., -1].sum(-1))
    return torch.cat(squares)


def _off(values: torch.Tensor, truth: float) -> dict[str, float]:
    return {"bias": float(values.mean()) - truth, "error": float(values.std()) / math.sqrt(len(values))}


def tables(result: dict[str, Any]) -> Tables:
    """Return the bias of both distances."""
    shown: Tables = {}
    for kind, title in (("sliced", "2-Wasserstein (sliced)"), ("energy", "Energy distance")):
        values = (f"{kind}{part}.bias" for part in ("", "_debiased", "_pooled", "_square"))
        shown[f"{title}: bias"] = (result["bias"], ("pair", "samples", *values))
    return shown
