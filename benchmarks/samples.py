"""How far off is the distance of two agents that can only be sampled, before and after its correction?

Two Gaussian agents, whose distance has a closed form. bias: mean over repetitions minus the closed form, error: its
standard error; square: of the corrected square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.timing import Options, Tables
from graphsnd import kernels
from graphsnd.behavior import Distance, Samples, Sliced
from graphsnd.behavior.behavior import embed

COUNTS = tuple(2**k for k in range(11))
CHUNK = 64  # repetitions embedded at a time


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
    # Few enough that points along 32 directions fit into memory.
    repetitions = CHUNK * (2 if quick else max(2, min(64, 2**10 // count)) if pair.features > 1 else 64)
    behavior = pair.draw(repetitions, count, generator)
    row: dict[str, Any] = {"pair": pair.name, "samples": count, "repetitions": repetitions}
    row["wasserstein"] = pair.wasserstein
    row["sliced"] = _off(_distances(behavior, Sliced()), pair.wasserstein)
    if count > 1:
        row["sliced_debiased"] = _off(_distances(behavior, Sliced(debias=True)), pair.wasserstein)
        row["sliced_square"] = _off(_squares(behavior), pair.wasserstein**2)
    return row


def _parts(behavior: Samples) -> list[Samples]:
    return [Samples(part, validate=False) for part in behavior.samples.split(CHUNK)]


def _distances(behavior: Samples, distance: Distance) -> torch.Tensor:
    """Return the distance at each observation."""
    points = [embed(part, distance) for part in _parts(behavior)]
    edge = torch.tensor([[0, 1]])
    parts = [kernels.observation_edges(each, edge.expand(each.observations, 1, 2)) for each in points]
    return torch.cat(parts).flatten()


def _squares(behavior: Samples) -> torch.Tensor:
    """Return the corrected squares before their root is taken."""
    squares = []
    for part in _parts(behavior):
        values = embed(part, Sliced(debias=True)).values
        one, two = (values[:, 0] - values[:, 1]).chunk(2, dim=-1)
        squares.append((one * two).sum(-1))
    return torch.cat(squares)


def _off(values: torch.Tensor, truth: float) -> dict[str, float]:
    return {"bias": float(values.mean()) - truth, "error": float(values.std()) / math.sqrt(len(values))}


def tables(result: dict[str, Any]) -> Tables:
    """Return the bias of the distance."""
    values = (f"sliced{part}.bias" for part in ("", "_debiased", "_square"))
    return {"2-Wasserstein (sliced): bias": (result["bias"], ("pair", "samples", *values))}
