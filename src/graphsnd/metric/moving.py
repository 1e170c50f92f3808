"""Graph-SND where each observation has its own graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Points
from graphsnd.graphs import MovingGraph
from graphsnd.sums import mean, total


@dataclass(frozen=True, eq=False)
class EdgeSums:
    """Sums over the edges of each observation, all float64 ``[observations]``."""

    sums: Tensor  # of weight times distance, differentiable
    weights: Tensor  # of the weights; both in units of the observation's largest weight, so that neither overflows
    units: Tensor  # that largest weight

    def each(self) -> Tensor:
        """Return the Graph-SND of each observation, 0 without weight."""
        return ratio(self.sums, self.weights)

    def pooled(self) -> Tensor:
        """Return the weighted mean over the edges of all observations, 0 without weight."""
        units = self.relative_units()
        return ratio(total(self.sums * units), total(self.weights * units))

    def relative_units(self) -> Tensor:
        """Return the units relative to the largest."""
        return ratio(self.units, self.units.max())

    def mean(self, *, pooled: bool) -> Tensor:
        """Return Graph-SND."""
        return self.pooled() if pooled else mean(self.each())

    def empty_share(self) -> float:
        """Return the share of observations without weight; waits for the device."""
        return float((self.weights == 0).double().mean())


def edge_sums(points: Points, graph: MovingGraph, *, backend: str = "auto") -> EdgeSums:
    """Return the sums over the edges of each observation; the graph is one on these agents and observations."""
    distances, weights, units = weigh_edges(points, graph, backend=backend)
    starts = graph.starts.to(distances.device)
    return EdgeSums(_add_segments(distances * weights, starts), _add_segments(weights, starts), units)


def weigh_edges(points: Points, graph: MovingGraph, *, backend: str = "auto") -> tuple[Tensor, Tensor, Tensor]:
    """Return distances and weights of all edges, ``[m]``, and the largest weight of each observation, their unit."""
    graph = graph.to(points.parts[0].device)
    distances = kernels.ragged_edges(points, graph.edges, graph.starts, backend=backend)
    if graph.weights is None:
        return distances, torch.ones_like(distances), distances.new_ones(len(graph))
    weights = graph.weights.double()
    units = torch.segment_reduce(weights.detach(), "max", offsets=graph.starts, initial=0, unsafe=True)
    return distances, ratio(weights, units[graph.owners()]), units


def _add_segments(values: Tensor, starts: Tensor) -> Tensor:
    """Return the sums of stretches of ``[m]``, each in the order of its terms."""
    return torch.segment_reduce(values, "sum", offsets=starts, initial=0, unsafe=True)


def ratio(sums: Tensor, weights: Tensor) -> Tensor:
    """Return sums over weights, 0 where there is no weight, and there without a gradient of 0 / 0."""
    return torch.where(weights > 0, sums / torch.where(weights > 0, weights, 1), 0)
