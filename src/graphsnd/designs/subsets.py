"""Random ordered subsets of agents, one for every observation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

FLOYD = 64  # agents up to which a subset is drawn one agent at a time on a GPU


def ordered_subsets(n: int, size: int, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """``count`` independent, uniformly random ordered subsets of ``size`` of ``n`` agents: int64 ``[count, size]``.

    On the CPU a shuffle that stops after ``size`` swaps and then undoes them costs O(size) for each row, however
    large the team: sorting random keys took longer than the distances themselves.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> ordered_subsets(5, 5, 2, generator, torch.device("cpu")).sort(dim=1).values.tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    if device.type != "cpu":
        return _on_device(n, size, count, generator, device)
    seed = int(torch.randint(2**62, (), generator=generator))
    out = torch.empty(count, size, dtype=torch.int64)
    _loops()(n, seed, out.numpy())
    return out


def integer_seed(seed: int | torch.Generator) -> int:
    """An int as it is; a generator gives one, and is advanced."""
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**62, (), generator=seed, device=seed.device))
    return seed


def device_generator(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator that lives where the draws are made: the given one on the CPU, else one that it seeds."""
    if device.type == "cpu":
        return generator
    return torch.Generator(device).manual_seed(integer_seed(generator))


def _on_device(n: int, size: int, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    if size > FLOYD or n <= 4 * size:
        return torch.rand(count, n, generator=generator, device=device).argsort(dim=1)[:, :size]
    # Floyd's algorithm: agent j or a random earlier one, whichever is not there yet, is a uniform subset.
    chosen = torch.full((count, size), -1, dtype=torch.int64, device=device)
    for column, j in enumerate(range(n - size, n)):
        candidate = torch.randint(j + 1, (count, 1), generator=generator, device=device)
        taken = (chosen == candidate).any(dim=1, keepdim=True)
        chosen[:, column : column + 1] = torch.where(taken, j, candidate)
    order = torch.rand(count, size, generator=generator, device=device).argsort(dim=1)
    return chosen.gather(1, order)


@lru_cache
def _loops() -> Any:
    """Compiled on first use, so that importing graphsnd does not load numba."""
    from graphsnd.designs.shuffles import shuffles

    return shuffles
