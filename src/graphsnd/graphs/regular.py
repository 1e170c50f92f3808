"""The pairing behind :func:`graphsnd.graphs.random_regular`: configuration model, then switches until it is simple."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsnd.graphs import pairs
from graphsnd.graphs.draws import integers

# Rounds without a single accepted switch before the pairing is thrown away. Even in the densest case, half of all
# pairs, a switch with a random edge is accepted about one time in four: a longer drought means that none is possible.
PATIENCE = 64
# Repairs leave the pairing's law, and how much shows depends on the share of repaired edges: the repair alone gives
# K_3,3 half its due among the cubic graphs on 6 agents, is 12 % short of triangles on 10, and not measurably off past
# 250 edges. Below that random switches go on for a few rounds of every edge, which removes it.
SMALL, SWITCHES_PER_EDGE = 256, 8


def regular_pairs(n: int, degree: int, generator: torch.Generator) -> Tensor:
    """Return the sorted ranks of a simple graph with all degrees equal; degree <= (n-1)/2 and n * degree even."""
    while True:
        ends = _repair(_pairing(n, degree, generator), n, generator)
        if ends is not None:
            i, j = (_mix(ends, n, generator) if len(ends) <= SMALL else ends).unbind(1)
            return pairs.rank(pairs.from_keys(pairs.keys(i, j, n).sort().values, n), n)


def _pairing(n: int, degree: int, generator: torch.Generator) -> Tensor:
    """Return a uniform perfect matching of n * degree stubs, as a multigraph ``[m, 2]``."""
    agents = torch.arange(n, device=generator.device).repeat_interleave(degree)
    # Sorting random keys, not randperm, whose Fisher-Yates reduces 32 bits modulo the remaining length.
    return agents[integers(n * degree, 2**63 - 1, generator).argsort(stable=True)].view(-1, 2)


def _repair(ends: Tensor, n: int, generator: torch.Generator) -> Tensor | None:
    """Switch loops and repeats away; None after PATIENCE rounds without progress."""
    idle = 0
    while idle < PATIENCE:
        present, order = pairs.keys(ends[:, 0], ends[:, 1], n).sort(stable=True)
        bad = ends[:, 0] == ends[:, 1]
        bad[order[1:]] |= present[1:] == present[:-1]
        if not bool(bad.any()):
            return ends
        idle = 0 if _switch(ends, present, bad, n, generator) else idle + 1
    return None


def _switch(ends: Tensor, present: Tensor, bad: Tensor, n: int, generator: torch.Generator) -> int:
    """Replace bad edges ab and random good edges cd by ac and bd, in place, where all stays simple; return how many."""
    wrong = bad.nonzero().squeeze(1)
    partner = integers(len(wrong), len(ends), generator)
    flip = integers(len(wrong), 2, generator)
    a, b = ends[wrong].unbind(1)
    c, d = ends[partner].gather(1, torch.stack([flip, 1 - flip], dim=1)).unbind(1)
    proposed = torch.cat([pairs.keys(a, c, n), pairs.keys(b, d, n)])
    # All proposals of a round are taken at once, so none may make what is there or what another one makes.
    exists = present[torch.searchsorted(present, proposed).clamp_(max=len(present) - 1)] == proposed
    clash = (exists | pairs.repeats(proposed)).view(2, -1).any(0)
    refused = clash | (a == c) | (b == d) | bad[partner] | pairs.repeats(partner)
    good = (~refused).nonzero().squeeze(1)
    ends[wrong[good]] = torch.stack([a, c], dim=1)[good]
    ends[partner[good]] = torch.stack([b, d], dim=1)[good]
    return len(good)


def _mix(ends: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Random switches of a simple graph, one after the other; their stationary law is uniform over all such graphs."""
    edges: list[tuple[int, int]] = [(i, j) for i, j in ends.tolist()]
    barred = bytearray(n * n)  # 1 where an edge would be a loop or a repeat
    barred[:: n + 1] = b"\1" * n
    for a, b in edges:
        barred[a * n + b] = barred[b * n + a] = 1
    steps = SWITCHES_PER_EDGE * len(edges)
    # The doubled range picks an edge, and for the second one a direction as well.
    chosen = integers(2 * steps, 2 * max(1, len(edges)), generator).view(-1, 2)
    for first, second, turned in torch.cat([chosen // 2, chosen[:, 1:] % 2], dim=1).tolist():
        a, b = edges[first]
        d, c = edges[second] if turned else edges[second][::-1]
        # A switch that fails is a step that stays put: skipping it instead would favour graphs with few switches.
        if barred[a * n + c] or barred[b * n + d]:
            continue
        barred[a * n + b] = barred[b * n + a] = barred[c * n + d] = barred[d * n + c] = 0
        barred[a * n + c] = barred[c * n + a] = barred[b * n + d] = barred[d * n + b] = 1
        edges[first], edges[second] = (a, c), (b, d)
    return torch.tensor(edges, dtype=torch.int64, device=ends.device).reshape(-1, 2)
