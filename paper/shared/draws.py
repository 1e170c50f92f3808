"""Many random graphs at once, as rows of 0 and 1 over the pairs, for experiments that draw thousands of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from graphsnd.graphs import Graph
from graphsnd.graphs.random import geometric_skips, rank


def indicators(drawn: Sequence[Graph]) -> Tensor:
    """Return which pairs each graph has: float64 ``[graphs, pairs]`` of 0 and 1, pairs in lexicographic order.

    Example:
        >>> from graphsnd import graphs
        >>> indicators([graphs.complete(3), graphs.cliques([0, 0, 1])]).tolist()
        [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
    """
    chosen = torch.zeros(len(drawn), drawn[0].pairs, dtype=torch.float64)
    for row, graph in zip(chosen, drawn, strict=True):
        row[rank(graph.edges, graph.n)] = 1
    return chosen


def many_bernoulli(n: int, p: float, draws: int, generator: torch.Generator) -> Tensor:
    """Return the :func:`indicators` of many Bernoulli graphs, drawn as one long row of trials.

    Example:
        >>> many_bernoulli(8, 0.5, 3, torch.Generator().manual_seed(0)).shape
        torch.Size([3, 28])
    """
    chosen = torch.zeros(draws, math.comb(n, 2), dtype=torch.float64)
    chosen.view(-1)[geometric_skips(chosen.numel(), p, generator)] = 1
    return chosen
