"""Random numbers for the graphs: where they come from, and how to draw few of many without listing the many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import check_device, check_integer
from graphsnd.graphs import pairs

THINNEST, LARGEST = 1 / 64, 1 << 14  # chance of a pair, and agents, for which a GPU marks all pairs
Device = torch.device | str | None


def resolve(device: Device) -> torch.device:
    """Return the device that is meant; None is torch's default, as in torch's own factories."""
    return torch.get_default_device() if device is None else check_device(device)


def source(seed: object, device: Device, *, host: bool = False) -> tuple[torch.Generator, torch.device]:
    """Return the generator to draw from and the device the graph ends up on."""
    if isinstance(seed, torch.Generator):
        return seed, seed.device if device is None else check_device(device)
    expected = "to be an int in 0 .. 2**63 - 1 or a torch.Generator"
    number = check_integer("seed", seed, expected, low=0, high=2**63 - 1, fix="Randomness is an argument.")
    target = resolve(device)
    drawn_on = target if target.type == "cuda" and not host else torch.device("cpu")
    return torch.Generator(drawn_on).manual_seed(number), target


def integers(size: int, high: int, generator: torch.Generator) -> Tensor:
    """Return uniform draws from 0 .. high-1, int64 ``[size]``.

    ``torch.randint(high)`` reduces 32 random bits modulo ``high`` for some ranges and versions, which for a billion
    pairs favours some of them by a quarter. Reducing 63 bits leaves a bias of high / 2**63.
    """
    bits = torch.randint(2**63 - 1, (size,), generator=generator, device=generator.device)
    return bits.remainder_(high)


def geometric_skips(count: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the successes of ``count`` Bernoulli(p) trials, as sorted positions."""
    rate = -math.log1p(-p)
    slack = 4 * math.sqrt(count * p) + 16
    size, last = int(count * p + slack), -1
    parts = []
    while True:
        u = torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64)
        # torch splits an array between threads and may round the ends of each part differently, and a single gap
        # rounded the other way shifts every edge after it. NumPy takes one thread, so the graph cannot depend on their
        # number; for small graphs it is also faster. Anything past the last trial is past it all the same: the bound
        # keeps the gap of a tiny p inside int64.
        trials: Any
        if u.device.type == "cpu":
            trials = np.minimum(np.log1p(-u.numpy()) / -rate, count).astype(np.int64)
        else:
            trials = (torch.log1p(-u) / -rate).clamp_(max=count).long()
        trials += 1
        trials = trials.cumsum(0) + last
        inside = int((trials < count).sum())
        parts.append(torch.as_tensor(trials[:inside]))
        if inside < size:
            return torch.cat(parts) if len(parts) > 1 else parts[0]
        last, size = int(trials[-1]), int(slack)


def marked_pairs(n: int, p: float, generator: torch.Generator) -> Tensor:
    """Return the pairs that came up when each was drawn, in order; n * n bytes of memory.

    On a GPU: four launches and one wait for the number of pairs, where a launch costs more than a million draws.
    """
    chosen = torch.empty(n, n, dtype=torch.bool, device=generator.device).bernoulli_(p, generator=generator)
    return chosen.triu_(1).nonzero().contiguous()


def distinct(size: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the first ``size`` distinct values of uniform draws from 0 .. count-1, sorted; size <= count/2.

    Which values come first is exchangeable, so the set is exactly uniform: nothing is thinned after the fact.
    """
    slack = int(4 * math.sqrt(size)) + 16
    # On average this many draws show `size` different values; the slack makes one round the rule.
    stream = integers(math.ceil(-count * math.log1p(-size / count)) + slack, count, generator)
    while True:
        values = stream[~pairs.repeats(stream)]
        if len(values) >= size:
            return values[:size].sort().values
        stream = torch.cat([stream, integers(slack, count, generator)])
