"""SND and Graph-SND as torchmetrics: states are sums, so they add up over batches and over ranks.

The functions do the work; see :func:`graphsnd.snd` and :func:`graphsnd.graph_snd`.
For an interval use :class:`graphsnd.estimation.accumulator.SndAccumulator`.
"""

from __future__ import annotations

import hashlib
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import as_distance
from graphsnd.errors import InputError, require
from graphsnd.estimation.accumulator import fingerprint
from graphsnd.graphs import Graph
from graphsnd.metric.diversity import graph_snd, snd

__all__ = ["GraphSnd", "SystemNeuralDiversity"]

Metric = require("torchmetrics", "torchmetrics").Metric
COMMON = ("number of agents", "family and distance", "names of agents")  # what all updates must have in common
NONE = -(2**32)  # below all numbers that stand for these, and below their negatives


class SystemNeuralDiversity(Metric):  # type: ignore[misc, valid-type]
    """:func:`graphsnd.snd` over batches.

    Args:
        distance: Distance object; the family's default when None.
        **kwargs: Options of ``torchmetrics.Metric``.

    Example:
        >>> import torch, graphsnd as gs
        >>> metric = SystemNeuralDiversity()
        >>> metric.update(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]])))
        >>> float(metric.compute())
        4.0
    """

    is_differentiable = True
    higher_is_better = None
    full_state_update = False
    plot_lower_bound = 0.0
    total: Tensor  # sum over observations, float64
    observations: Tensor  # int64
    common: Tensor  # int64 [3, 2], the most over batches of numbers for these, and of their negatives
    fingerprint: Tensor  # int64 [32], of class, graph and distance

    def __init__(self, distance: Distance | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.distance = distance
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("observations", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("common", torch.full((len(COMMON), 2), NONE), dist_reduce_fx="max")
        self._identify(None)

    def update(self, behavior: Behavior) -> None:
        """Add a batch of observations that all agents have answered."""
        distance = as_distance(behavior, self.distance)
        self.total = self.total + (self.mean(behavior) * behavior.observations).to(self.total)
        self.observations = self.observations + behavior.observations
        named = (crc32(repr(each).encode()) for each in ((type(behavior).__name__, distance), behavior.names))
        own = torch.tensor([[number, -number] for number in (behavior.agents, *named)])
        if not behavior.named:
            own[2] = NONE  # which goes with any names
        self.common = self.common.maximum(own.to(self.common.device, non_blocking=True))

    def compute(self) -> Tensor:
        """Return the mean over all observations so far.

        Raises:
            InputError: Before the first update; for teams of several sizes, families or orders of agents, or several
                distances: the mean of their SND is that of none; and for a state of another metric.
        """
        if not int(self.observations):
            raise InputError("behavior", "in at least one update", "none", "Call update first.")
        self._check_fingerprint()
        # Here and not in update: this also sees forward and other ranks, and update does not wait for a GPU.
        for what, (most, fewest) in zip(COMMON, self.common.tolist(), strict=True):
            if -fewest < most:
                got = f"{-fewest} to {most} agents" if what == COMMON[0] else "several"
                fix = "Make a metric for each, or call reset between them."
                raise InputError("behavior", f"of the same {what} in all updates", got, fix)
        return self.total / self.observations

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Return a figure and its axes, of the value so far or of given values, as all of torchmetrics do."""
        return self._plot(val, ax)

    def mean(self, behavior: Behavior) -> Tensor:
        """Return the measure of one batch."""
        return snd(behavior, self.distance)

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._check_fingerprint()

    def _check_fingerprint(self) -> None:
        """Raise where a state of another class, distance or graph was loaded or merged, or came from another rank."""
        if self.fingerprint.tolist() != self._defaults["fingerprint"].tolist():
            fix = "Make the metric as it was made when the state was saved."
            raise InputError("state", "of a metric of the same class, graph and distance", "another's", fix)

    def _identify(self, graph: Graph | None) -> None:
        """Set the state that differs between metrics of another class, distance or graph."""
        # A MetricCollection takes metrics for one whose states are close after the first batch, as all are on identical
        # agents, and never updates the others again. Single bytes, because close means within 1e-5 of a number.
        sha = hashlib.sha256(repr((type(self), self.distance, fingerprint(graph))).encode())
        self.add_state("fingerprint", torch.tensor(list(sha.digest())), dist_reduce_fx="max")


class GraphSnd(SystemNeuralDiversity):
    """:func:`graphsnd.graph_snd` on one graph, over batches.

    Args:
        graph: Graph on the agents; the same on every rank.
        distance: Distance object; the family's default when None.
        **kwargs: Options of ``torchmetrics.Metric``.

    Example:
        >>> import torch, graphsnd as gs
        >>> metric = GraphSnd(gs.graphs.complete(3))
        >>> float(metric(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))
        4.0
    """

    def __init__(self, graph: Graph, distance: Distance | None = None, **kwargs: Any) -> None:
        super().__init__(distance, **kwargs)
        given: object = graph
        if not isinstance(given, Graph):
            fix = "Make one with graphsnd.graphs, for example graphsnd.graphs.circulant(16, 4)."
            raise InputError("graph", "to be a graphsnd Graph", repr(graph), fix)
        self.graph = graph
        self._identify(graph)

    def mean(self, behavior: Behavior) -> Tensor:  # noqa: D102
        return graph_snd(behavior, self.graph, self.distance)
