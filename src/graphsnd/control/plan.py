"""Which distances an estimate takes, drawn before anything is evaluated, and the number they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior import Norm, Points
from graphsnd.graphs import complete


@dataclass(frozen=True, eq=False)
class Measurement:
    """A diversity, ``[]`` or ``[runs]``."""

    value: Tensor  # float64
    pairs: Tensor  # int64, distances at each observation
    empty: Tensor  # bool: the draw had no pairs, all were measured instead

    @classmethod
    def given(cls, value: Tensor) -> Measurement:
        """A number from elsewhere."""
        wide = value.double()
        return cls(wide, torch.zeros_like(wide, dtype=torch.int64), torch.zeros_like(wide, dtype=torch.bool))


@dataclass(frozen=True, eq=False)
class Plan:
    """What to ask of whom, for O observations of n agents."""

    edges: Tensor | None  # int64: None for all pairs; [m, 2] the same at all observations; [O, m, 2] for each its own
    agents: Tensor | None = None  # int64 [O, k], who must answer; edges then count among these; None for everybody
    weights: Tensor | None = None  # [O, m], with edges of each observation; None for one each
    empty: bool = False

    def pairs(self, agents: int) -> int:
        """Distances at each observation, in a team of so many."""
        return agents * (agents - 1) // 2 if self.edges is None else self.edges.shape[-2]

    def take(self, values: Tensor) -> Tensor:
        """Of everybody's outputs ``[O, n, F]``, those that were asked for."""
        if self.agents is None:
            return values
        rows = torch.arange(len(values), device=values.device).unsqueeze(1)
        return values[rows, self.agents.to(values.device)]


def carry_out(plans: Sequence[Plan], values: Tensor, norm: Norm = Norm.EUCLIDEAN) -> Measurement:
    """Measure stacked runs, each by its own plan.

    Args:
        plans: One for each run, all of one estimator.
        values: ``[runs, O, n, F]``, or ``[runs, O, k, F]`` where plans name k agents.
        norm: Of the distances.

    Returns:
        ``[runs]``, differentiable.

    Example:
        >>> carry_out([Plan(None)], torch.tensor([[[[0.0], [3.0], [6.0]]]])).value
        tensor([4.], dtype=torch.float64)
    """
    counts = [plan.pairs(values.shape[2]) for plan in plans]
    device = values.device
    empty = torch.tensor([plan.empty for plan in plans])
    pairs = torch.tensor(counts)
    if device.type == "cuda":  # from pinned memory a copy does not wait for the device
        empty, pairs = (part.pin_memory().to(device, non_blocking=True) for part in (empty, pairs))
    return Measurement(_values(plans, values, norm), pairs, empty)


def _values(plans: Sequence[Plan], values: Tensor, norm: Norm) -> Tensor:
    runs, observations = values.shape[:2]
    if all(plan.edges is None for plan in plans):
        totals = kernels.pair_totals(Points(values.flatten(0, 1), norm))
        return totals.view(runs, observations).mean(1) / plans[0].pairs(values.shape[2])
    own = [plan.edges for plan in plans if plan.edges is not None and plan.edges.dim() == 3]
    if len(own) == runs:
        edges = own[0] if runs == 1 else torch.cat(own)
        found = kernels.observation_edges(Points(values.flatten(0, 1), norm), edges)
        found = found.view(runs, observations, -1)
        if plans[0].weights is None:
            return found.mean((1, 2))
        weights = torch.stack([plan.weights for plan in plans if plan.weights is not None]).to(found.dtype)
        return ((found * weights).sum(2) / weights.sum(2)).mean(1)
    if values.device.type == "cuda" and all(plan.edges is None or plan.edges.dim() == 2 for plan in plans):
        return _together(plans, values, norm)
    return torch.stack([_one(plan, part, norm) for plan, part in zip(plans, values, strict=True)])


def _together(plans: Sequence[Plan], values: Tensor, norm: Norm) -> Tensor:
    """Graphs of all runs in one launch: shorter ones are filled up with an agent and itself, whose distance is 0."""
    runs, observations, agents = values.shape[:3]
    graphs = [complete(agents).edges if plan.edges is None else plan.edges for plan in plans]
    filled = torch.zeros(runs, max(len(edges) for edges in graphs), 2, dtype=torch.int64, device=graphs[0].device)
    for run, edges in enumerate(graphs):
        filled[run, : len(edges)] = edges
    counts = torch.tensor([len(edges) for edges in graphs])
    if values.is_cuda and not filled.is_cuda:
        filled, counts = (part.pin_memory().to(values.device, non_blocking=True) for part in (filled, counts))
    own = filled.unsqueeze(1).expand(-1, observations, -1, -1).flatten(0, 1)
    found = kernels.observation_edges(Points(values.flatten(0, 1), norm), own)
    return found.view(runs, -1).sum(1) / (counts.to(values.device) * observations)


def _one(plan: Plan, values: Tensor, norm: Norm) -> Tensor:
    points = Points(values, norm)
    if plan.edges is None:
        return kernels.pair_totals(points).mean() / plan.pairs(points.agents)
    return kernels.edge_totals(points, plan.edges).mean() / len(plan.edges)
