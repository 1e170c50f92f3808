"""A random regular graph with good eigenvalues."""

from __future__ import annotations

import torch

from graphsnd.bounds.spectral import spectrum
from graphsnd.errors import InputError
from graphsnd.graphs import Graph, random_regular
from graphsnd.graphs.draws import Device, source


def best_of(k: int, n: int, degree: int, *, seed: int | torch.Generator = 0, device: Device = None) -> Graph:
    """Draw ``k`` random regular graphs and keep the one with the smallest lambda_2.

    The winner is no longer a uniform random regular graph. But lambda_2 does not depend on how the agents are
    numbered, so given its shape the winner's numbering is as random as before: every pair still has probability
    degree/(n-1), and everything in :mod:`graphsnd.bounds.relabel` and :mod:`graphsnd.bounds.regular` holds for it.

    Args:
        k: Number of graphs to draw, at least 1.
        n: The number of agents.
        degree: The neighbours of each agent, 1 .. n-1; n * degree must be even.
        seed: An int, or a ``torch.Generator`` to advance.
        device: Where the graph is kept.

    Raises:
        InputError: For k < 1, or where :func:`graphsnd.graphs.random_regular` raises.

    Example:
        >>> spectrum(best_of(8, 30, 4, seed=0)).second <= spectrum(best_of(1, 30, 4, seed=0)).second
        True
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError("k", "to be an integer, at least 1 graph", repr(k))
    generator, target = source(seed, device, host=True)
    drawn = (random_regular(n, degree, seed=generator) for _ in range(k))
    return min(drawn, key=lambda graph: spectrum(graph).second).to(target)
