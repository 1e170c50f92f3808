"""Graph-SND where each observation has its own graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior.points import Points
from graphsnd.graphs import MovingGraph
from graphsnd.graphs.graph import ratio


@dataclass(frozen=True, eq=False)
class EdgeSums:
    """Sums over the edges of each observation, all float64 ``[observations]``."""

    sums: Tensor  # of weight times distance, differentiable
    weights: Tensor  # of the weights; both in units of the observation's largest weight, so that neither overflows

    def each(self) -> Tensor:
        """Return the Graph-SND of each observation, 0 without weight."""
        return ratio(self.sums, self.weights)

    def empty_share(self) -> float:
        """Return the share of observations without weight; waits for the device."""
        return float((self.weights == 0).double().mean())


def edge_sums(points: Points, graph: MovingGraph, *, backend: str = "auto") -> EdgeSums:
    """Return the sums over the edges of each observation; the graph is one on these agents and observations."""
    graph = graph.to(points.parts[0].device)
    weights = relative_weights(graph)
    terms = edge_lengths(points, graph, backend=backend) * weights
    # Each sum is in the order of its terms, whatever the threads.
    add = partial(torch.segment_reduce, reduce="sum", offsets=graph.starts, initial=0, unsafe=True)
    return EdgeSums(add(terms), add(weights))


def edge_lengths(points: Points, graph: MovingGraph, *, backend: str = "auto") -> Tensor:
    """Return the distances along all edges, float64 ``[m]``, differentiable."""
    graph = graph.to(points.parts[0].device)
    return kernels.ragged_edges(points, graph.edges, graph.starts, backend=backend)


def relative_weights(graph: MovingGraph) -> Tensor:
    """Return the weights of all edges ``[m]`` in units of the largest at their observation."""
    if graph.weights is None:
        return torch.ones(graph.m, dtype=torch.float64, device=graph.device)
    weights = graph.weights.double()
    units = torch.segment_reduce(weights.detach(), "max", offsets=graph.starts, initial=0, unsafe=True)
    return ratio(weights, units[graph.owners()])
