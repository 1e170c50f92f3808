"""Random numbers for the graphs: where they come from, and how to draw few of many without listing the many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphsnd.errors import check_integer

Device = torch.device | str | None


def resolve(device: Device) -> torch.device:
    """Return the device that is meant; None is torch's default, as in torch's own factories."""
    return torch.get_default_device() if device is None else torch.device(device)


def source(seed: object, device: Device, *, host: bool = False) -> tuple[torch.Generator, torch.device]:
    """Return the generator to draw from and the device the graph ends up on."""
    if isinstance(seed, torch.Generator):
        return seed, seed.device if device is None else torch.device(device)
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
        # number; for small graphs it is also faster.
        host = u.device.type == "cpu"
        waited = _waited(u.numpy(), rate, count, np) if host else _waited(u, rate, count, torch)
        gaps = (torch.from_numpy(waited) if host else waited).long() + 1
        trials = gaps.cumsum_(0).add_(last)
        inside = int((trials < count).sum())
        parts.append(trials[:inside])
        if inside < size:
            return torch.cat(parts) if len(parts) > 1 else parts[0]
        last, size = int(trials[-1]), int(slack)


def _waited(u: Any, rate: float, count: int, library: Any) -> Any:
    """Return the failures before each success, from uniform numbers.

    The clip keeps the gap of a tiny p inside int64; anything past the last trial is past it all the same.
    """
    return library.clip(library.floor(-library.log1p(-u) / rate), None, count)


def distinct(size: int, count: int, generator: torch.Generator) -> Tensor:
    """Return the first ``size`` distinct values of uniform draws from 0 .. count-1, sorted; size <= count/2.

    Which values come first is exchangeable, so the set is exactly uniform: nothing is thinned after the fact.
    """
    slack = int(4 * math.sqrt(size)) + 16
    stream = torch.empty(0, dtype=torch.int64, device=generator.device)
    # On average this many draws show `size` different values; the slack makes one round the rule.
    more = math.ceil(-count * math.log1p(-size / count)) + slack
    while True:
        stream = torch.cat([stream, integers(more, count, generator)])
        values, order = stream.sort(stable=True)
        new = torch.ones_like(values, dtype=torch.bool)
        new[1:] = values[1:] != values[:-1]
        # seen[t] is the number of different values among the draws 0 .. t; the sort is stable, so `new` marks the
        # earliest draw of each value.
        seen = torch.zeros_like(stream).index_put((order,), new.long()).cumsum(0)
        if int(seen[-1]) >= size:
            return values[new & (seen[order] <= size)]
        more = slack
