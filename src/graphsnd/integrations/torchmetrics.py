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

__all__ = ["SystemNeuralDiversity"]

Metric = require("torchmetrics", "torchmetrics").Metric


class SystemNeuralDiversity(Metric):  # type: ignore[misc, valid-type]
    """SND over batches, or Graph-SND on one graph.

    Args:
        distance: Distance or its name; the family's default when None.
        graph: Graph on the agents, the same on every rank; all pairs when None.
        **kwargs: Options of ``torchmetrics.Metric``.

    Example:
        >>> import torch, graphsnd as gs
        >>> metric = SystemNeuralDiversity(graph=gs.graphs.circulant(4, 2))
        >>> float(metric(gs.Deterministic(torch.tensor([[[0.0], [1.0], [3.0], [6.0]]]))))
        3.0
    """

    is_differentiable = True
    higher_is_better = None
    full_state_update = False
    plot_lower_bound = 0.0
    total: Tensor  # sum over observations, float64
    observations: Tensor  # int64
    common: Tensor  # int64 [2], the most over batches of a number for agents, family and distance, and of its negative
    fingerprint: Tensor  # int64 [32], of graph and distance

    def __init__(self, distance: Distance | str | None = None, *, graph: Graph | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.distance, self.graph = distance, graph
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("observations", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("common", torch.full((2,), -(2**32)), dist_reduce_fx="max")  # below both
        # A MetricCollection takes metrics for one whose states are close after the first batch, as all are on identical
        # agents, and never updates the others again. Single bytes, because close means within 1e-5 of a number.
        sha = hashlib.sha256(repr((type(self), distance, fingerprint(graph))).encode())
        self.add_state("fingerprint", torch.tensor(list(sha.digest())), dist_reduce_fx="max")

    def update(self, behavior: Behavior) -> None:
        """Add a batch of observations that all agents have answered."""
        distance = as_distance(behavior, self.distance)
        self.total = self.total + (self.mean(behavior) * behavior.observations).to(self.total)
        self.observations = self.observations + behavior.observations
        number = crc32(repr((behavior.names, type(behavior).__name__, distance)).encode())
        own = torch.tensor([number, -number])
        self.common = self.common.maximum(own.to(self.common.device, non_blocking=True))

    def compute(self) -> Tensor:
        """Return the mean over all observations so far.

        Raises:
            InputError: Before the first update, for teams that differ in size, family, distance or order of agents, and
                for the state of a different metric.
        """
        if not int(self.observations):
            raise InputError("behavior", "in at least one update", "none", "Call update first.")
        self._check_fingerprint()
        # Here and not in update: this also sees forward and other ranks, and update does not wait for a GPU.
        if int(self.common.sum()):
            fix = "Make a metric for each, or call reset between them."
            raise InputError("behavior", "of the same agents, family and distance in all updates", "several", fix)
        return self.total / self.observations

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Return a figure and its axes with the value so far or given values, as all torchmetrics do."""
        return self._plot(val, ax)

    def mean(self, behavior: Behavior) -> Tensor:
        """Return the measure of one batch."""
        return snd(behavior, self.distance) if self.graph is None else graph_snd(behavior, self.graph, self.distance)

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._check_fingerprint()

    def _check_fingerprint(self) -> None:
        """Raise if the state of a different distance or graph was loaded or merged, or came from another rank."""
        if self.fingerprint.tolist() != self._defaults["fingerprint"].tolist():
            fix = "Make the metric as it was made when the state was saved."
            raise InputError("state", "of a metric of the same graph and distance", "another's", fix)
