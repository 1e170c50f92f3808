"""Random ordered subsets of agents, one for every observation."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.kernels.relabelling import relabel


def ordered_subsets(n: int, size: int, count: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """``count`` independent, uniformly random ordered subsets of ``size`` of ``n`` agents: int64 ``[count, size]``.

    On the CPU a shuffle that stops after ``size`` swaps and then undoes them costs O(size) for each row, however
    large the team: sorting random keys took longer than the distances themselves. On a GPU an agent is computed from
    its place, see :mod:`graphsnd.kernels.relabelling`. The generator is on the CPU, so that nothing is waited for.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> ordered_subsets(5, 5, 2, generator, torch.device("cpu")).sort(dim=1).values.tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    seed = integer_seed(generator)
    if device.type != "cpu":
        return relabel(n, size, count, seed, device)
    from graphsnd.designs.shuffles import shuffles  # loads numba, which importing graphsnd must not

    out = torch.empty(count, size, dtype=torch.int64)
    shuffles(n, seed, out.numpy())
    return out


def integer_seed(seed: int | torch.Generator) -> int:
    """Return an int as it is, or one drawn from a generator."""
    if isinstance(seed, torch.Generator):
        return int(torch.randint(2**62, (), generator=seed, device=seed.device))
    return seed
