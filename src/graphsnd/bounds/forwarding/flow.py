r"""The fractional index of large graphs: multicommodity flow by soft-maximum descent, with a certificate on each side.

The largest relative load is replaced by :math:`\beta^{-1} \log \sum_e \exp(\beta\, \mathrm{load}_e / c_e)`. Its
gradient is a length for every edge; the routing that decreases it fastest sends every pair along its shortest path
under these lengths (Garg and Könemann; Fleischer). Sources take turns: each moves part of its flow onto its new tree
by Newton's step, and the lengths follow at once. The loads are at all times those of a fractional routing, so their
maximum is an upper bound; the lengths, averaged, give a lower bound by their distances. Between rounds beta grows:
lowering the temperature slowly is what balances the many equally short paths of a random graph.
"""

from __future__ import annotations

import math
import time

import numpy as np

from graphsnd.bounds.forwarding.elementary import Bracket, dual_bound, largest_load
from graphsnd.bounds.forwarding.network import Floats, Network

LOADS_BYTES = 2**29  # bytes of loads kept by source; larger graphs keep them by blocks of sources
ROUNDS = 200  # at most; each is one shortest-path tree for every source
WARM, COOLING, COLDEST = 0.5, 0.85, 1e-4  # temperatures, relative to the largest load
AVERAGING = 0.5  # weight that a round leaves to the lengths before it


def empty_loads(net: Network) -> Floats:
    """Return zero loads for each source, or for each block of sources where one per source would not fit."""
    blocks = max(1, min(net.n, LOADS_BYTES // (8 * net.m)))
    return np.zeros((blocks, net.m))


def descend(net: Network, loads: Floats, bracket: Bracket, tolerance: float, deadline: float) -> Bracket:
    """Narrow ``bracket`` until its gap is at most ``tolerance``.

    Args:
        net: The network.
        loads: ``[blocks, m]``, the loads of a fractional routing to start from; overwritten.
        bracket: What is known already.
        tolerance: The relative gap that is good enough.
        deadline: Time of ``time.monotonic()`` at which to stop.
    """
    from graphsnd.bounds.forwarding import loops  # loads numba, which importing graphsnd must not

    average, temperature = np.zeros(net.m), WARM
    for turn in range(ROUNDS):
        if bracket.gap <= tolerance or time.monotonic() > deadline:
            break
        total = loads.sum(axis=0)
        sharpness = math.log(net.m + 1) / (temperature * float((total / net.capacity).max()))
        average *= AVERAGING
        loops.rebalance(*net.arcs, net.capacity, loads, total, sharpness, average)
        bracket = bracket.with_upper(largest_load(net, loads.sum(axis=0)))
        # The lower bound costs as much as a round; on alternate rounds it is worth that.
        if turn % 2:
            bracket = bracket.with_lower(dual_bound(net, average), average / average.sum())
        temperature = min(temperature, max(bracket.gap / 3, COOLING * temperature, COLDEST))
    return bracket
