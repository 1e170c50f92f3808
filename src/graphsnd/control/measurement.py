"""The diversity that a controller reads: pairs that a design selected, and the number they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import designs, kernels
from graphsnd.behavior import Norm, Points
from graphsnd.designs import Design, Selection
from graphsnd.errors import InputError, shape_of
from graphsnd.graphs import complete


@dataclass(frozen=True, eq=False)
class Measurement:
    """A measured diversity, ``[]`` or ``[runs]``."""

    value: Tensor  # float64
    pairs: Tensor  # int64, distances at each observation
    empty: Tensor  # bool: the draw had no pairs, all were measured instead

    @classmethod
    def given(cls, value: Tensor) -> Measurement:
        """Wrap a number that was measured elsewhere."""
        wide = value.double()
        return cls(wide, torch.zeros_like(wide, dtype=torch.int64), torch.zeros_like(wide, dtype=torch.bool))

    def select_run(self, run: int) -> Measurement:
        """Return the measurement of one of several runs."""
        return Measurement(self.value[run], self.pairs[run], self.empty[run])


def as_design(design: Design | str) -> Design:
    """Return the design that a text such as ``bernoulli:0.1`` names; a design is returned as it is."""
    return designs.parse(design) if isinstance(design, str) else design


def measure_points(
    design: Design | str,
    values: Tensor,
    generator: torch.Generator | Sequence[torch.Generator] | None = None,
    *,
    positions: Tensor | None = None,
    norm: Norm = Norm.EUCLIDEAN,
) -> Measurement:
    """Measure the outputs of all agents with one draw of a design for each run.

    A draw without edges measures all pairs instead, the paper's rule, and says so.

    Args:
        design: The pairs to measure, as a design or as text.
        values: ``[observations, agents, features]``, or ``[runs, ...]`` of the same.
        generator: For the draws; one for each run where runs are stacked.
        positions: ``[observations, agents, d]``, or ``[runs, ...]`` of the same.
        norm: Of the distances.

    Returns:
        ``[]`` or ``[runs]``, differentiable in ``values``.

    Raises:
        InputError: For other shapes, or what the design misses.

    Example:
        >>> from graphsnd.designs import Complete
        >>> measure_points(Complete(), torch.tensor([[[0.0], [3.0], [6.0]]])).value
        tensor(4., dtype=torch.float64)
    """
    if values.dim() not in (3, 4) or values.shape[-2] < 2:
        expected = "with shape (observations, agents, features), at least 2 agents"
        raise InputError("values", expected, shape_of(values))
    if values.dim() == 3:
        places = None if positions is None else positions.unsqueeze(0)
        return measure_points(design, values.unsqueeze(0), generator, positions=places, norm=norm).select_run(0)
    runs, observations, agents = values.shape[:3]
    generators = list(generator) if isinstance(generator, Sequence) else [generator] * runs
    if len(generators) != runs:
        raise InputError("generator", f"to be {runs}, one for each run", len(generators))
    design = as_design(design)
    selections = [
        design.select(observations, agents, each, device=values.device, positions=place)
        for each, place in zip(generators, [None] * runs if positions is None else positions, strict=True)
    ]
    selected = torch.stack([selection.take(part) for selection, part in zip(selections, values, strict=True)])
    return measure_selected(selections, selected, norm)


def measure_selected(selections: Sequence[Selection], values: Tensor, norm: Norm = Norm.EUCLIDEAN) -> Measurement:
    """Measure stacked runs, each by its own selection.

    Args:
        selections: One for each run, all of one design.
        values: ``[runs, O, n, F]``, or ``[runs, O, k, F]`` where selections name k agents.
        norm: Of the distances.

    Returns:
        ``[runs]``, differentiable.

    Example:
        >>> measure_selected([Selection(None)], torch.tensor([[[[0.0], [3.0], [6.0]]]])).value
        tensor([4.], dtype=torch.float64)
    """
    counts = [selection.pairs(values.shape[2]) for selection in selections]
    device = values.device
    empty = torch.tensor([selection.empty for selection in selections])
    pairs = torch.tensor(counts)
    if device.type == "cuda":  # from pinned memory a copy does not wait for the device
        empty, pairs = (part.pin_memory().to(device, non_blocking=True) for part in (empty, pairs))
    return Measurement(_values(selections, values, norm), pairs, empty)


def _values(selections: Sequence[Selection], values: Tensor, norm: Norm) -> Tensor:
    runs, observations = values.shape[:2]
    if all(selection.edges is None for selection in selections):
        totals = kernels.pair_totals(Points(values.flatten(0, 1), norm))
        return totals.view(runs, observations).mean(1) / selections[0].pairs(values.shape[2])
    own = [selection.edges for selection in selections if selection.edges is not None and selection.edges.dim() == 3]
    if len(own) == runs:
        edges = own[0] if runs == 1 else torch.cat(own)
        distances = kernels.observation_edges(Points(values.flatten(0, 1), norm), edges)
        distances = distances.view(runs, observations, -1)
        if selections[0].weights is None:
            return distances.mean((1, 2))
        weights = torch.stack([selection.weights for selection in selections if selection.weights is not None]).to(
            distances.dtype
        )
        # No pair in range is no diversity. A single direction of a mutual pair, one half, is the least sum above 0.
        return ((distances * weights).sum(2) / weights.sum(2).clamp_min(0.5)).mean(1)
    if values.device.type == "cuda" and all(
        selection.edges is None or selection.edges.dim() == 2 for selection in selections
    ):
        return _together(selections, values, norm)
    return torch.stack([_one(selection, part, norm) for selection, part in zip(selections, values, strict=True)])


def _together(selections: Sequence[Selection], values: Tensor, norm: Norm) -> Tensor:
    """Graphs of all runs in one launch: shorter ones are filled up with an agent and itself, whose distance is 0."""
    runs, observations, agents = values.shape[:3]
    graphs = [complete(agents).edges if selection.edges is None else selection.edges for selection in selections]
    filled = torch.zeros(runs, max(len(edges) for edges in graphs), 2, dtype=torch.int64, device=graphs[0].device)
    for run, edges in enumerate(graphs):
        filled[run, : len(edges)] = edges
    counts = torch.tensor([len(edges) for edges in graphs])
    if values.is_cuda and not filled.is_cuda:
        filled, counts = (part.pin_memory().to(values.device, non_blocking=True) for part in (filled, counts))
    own = filled.unsqueeze(1).expand(-1, observations, -1, -1).flatten(0, 1)
    distances = kernels.observation_edges(Points(values.flatten(0, 1), norm), own)
    return distances.view(runs, -1).sum(1) / (counts.to(values.device) * observations)


def _one(selection: Selection, values: Tensor, norm: Norm) -> Tensor:
    points = Points(values, norm)
    if selection.edges is None:
        return kernels.pair_totals(points).mean() / selection.pairs(points.agents)
    return kernels.edge_totals(points, selection.edges).mean() / len(selection.edges)
