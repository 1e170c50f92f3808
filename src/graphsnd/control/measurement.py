"""The diversity that a controller reads: pairs that a design selected, and the number they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsnd import designs, kernels
from graphsnd.arguments import checked
from graphsnd.behavior.points import Norm, Points, widen
from graphsnd.designs import Design, Selection
from graphsnd.devices import copy_without_waiting
from graphsnd.errors import InputError, check_integer, check_shape, shape_of
from graphsnd.graphs import Graph, MovingGraph, complete
from graphsnd.metric.diversity import graph_mean
from graphsnd.metric.moving import ratio
from graphsnd.metric.pair_distances import check_graph
from graphsnd.sums import add_last, mean_last


@checked
@dataclass(frozen=True, eq=False)
class Measurement:
    """A measured diversity, ``[]`` or ``[runs]``.

    Example:
        >>> from graphsnd.designs import Complete
        >>> measured = measure_points(Complete(), torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> float(measured.value), int(measured.pairs), bool(measured.empty)
        (4.0, 3, False)
    """

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
        runs = self.value.shape[0] if self.value.dim() else 0
        check_integer("run", run, f"in 0 .. {runs - 1}", low=0, high=runs - 1)
        return Measurement(self.value[run], self.pairs[run], self.empty[run])


def as_design(design: Design | Graph | str) -> Design:
    """Return the design that a text such as ``bernoulli:0.1`` names, or that measures on a graph; or it as it is."""
    if isinstance(design, Graph):
        return designs.Fixed(design)
    return designs.parse(design) if isinstance(design, str) else design


@checked
def measure_points(
    design: Design | Graph | MovingGraph | str,
    values: Tensor,
    generator: torch.Generator | Sequence[torch.Generator] | None = None,
    *,
    positions: Tensor | None = None,
    norm: Norm = Norm.EUCLIDEAN,
) -> Measurement:
    """Measure the outputs of all agents with one draw of a design for each run.

    A draw without edges measures all pairs instead, the paper's rule, and says so.

    Args:
        design: The pairs to measure, as a design or as text; or a graph, or one for each observation of each run: then
            its Graph-SND is measured, with its weights.
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
    if values.dim() not in (3, 4) or values.shape[-2] < 2 or not values.shape[-1]:
        expected = "with shape (observations, agents, features), at least 2 agents and 1 feature"
        raise InputError("values", expected, shape_of(values))
    check_shape("values", values, values.shape, dtype="floating")
    values = widen(values)
    if positions is not None:
        check_shape("positions", positions, (*values.shape[:-1], "d"))
    if values.dim() == 3:
        places = None if positions is None else positions.unsqueeze(0)
        return measure_points(design, values.unsqueeze(0), generator, positions=places, norm=norm).select_run(0)
    runs, observations, agents = values.shape[:3]
    generators = list(generator) if isinstance(generator, Sequence) else [generator] * runs
    if len(generators) != runs:
        raise InputError("generator", f"to be {runs}, one for each run", len(generators))
    if isinstance(design, MovingGraph):
        check_graph(design, agents, observations=runs * observations, argument="design")
        parts = [design.slice(run * observations, (run + 1) * observations) for run in range(runs)]
        return measure_selected([Selection(part) for part in parts], values, norm)
    design = as_design(design)
    selections = [
        design.select(observations, agents, each, device=values.device, positions=place)
        for each, place in zip(generators, [None] * runs if positions is None else positions, strict=True)
    ]
    selected = torch.stack([selection.take(part) for selection, part in zip(selections, values, strict=True)])
    return measure_selected(selections, selected, norm)


@checked
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
    check_shape("values", values, (len(selections), "observations", "agents", "features"), dtype="floating")
    if not values.numel():
        raise InputError("values", "that are not empty", shape_of(values))
    values = widen(values)
    empty = torch.tensor([selection.empty for selection in selections])
    pairs = torch.tensor([selection.pairs(values.shape[2]) for selection in selections])
    empty, pairs = (copy_without_waiting(part, values.device) for part in (empty, pairs))
    return Measurement(_measure_values(selections, values, norm), pairs, empty)


def _measure_values(selections: Sequence[Selection], values: Tensor, norm: Norm) -> Tensor:
    runs, observations, agents = values.shape[:3]
    points = Points(values.flatten(0, 1), norm)
    if all(selection.edges is None for selection in selections):
        return mean_last(kernels.pair_totals(points).view(runs, observations)) / selections[0].pairs(agents)
    graphs = [selection.edges for selection in selections if isinstance(selection.edges, Tensor)]
    if graphs and graphs[0].dim() == 3:
        distances = kernels.observation_edges(points, graphs[0] if runs == 1 else torch.cat(graphs))
        filled = [each.weights for each in selections if each.weights is not None]
        if filled:
            weights = torch.cat(filled)
            distances = ratio(add_last(distances * weights), add_last(weights))
        return mean_last(distances.view(runs, -1))
    # A launch for each run would leave a GPU idle; on a CPU the padding of the shorter graphs would be computed.
    if graphs and values.device.type == "cuda":
        return _measure_together(selections, points)
    parts = points.values.unflatten(0, (runs, observations))
    return torch.stack([_measure_run(each, Points(part, norm)) for each, part in zip(selections, parts, strict=True)])


def _measure_together(selections: Sequence[Selection], points: Points) -> Tensor:
    """Graphs of all runs in one launch: shorter ones are filled up with an agent and itself, whose distance is 0."""
    runs, device = len(selections), points.values.device
    observations = len(points.values) // runs
    drawn = (selection.edges for selection in selections)
    graphs = [edges if isinstance(edges, Tensor) else complete(points.agents).edges for edges in drawn]
    filled = torch.zeros(runs, max(len(edges) for edges in graphs), 2, dtype=torch.int64, device=graphs[0].device)
    for run, edges in enumerate(graphs):
        filled[run, : len(edges)] = edges
    counts = copy_without_waiting(torch.tensor([len(edges) for edges in graphs]), device)
    own = copy_without_waiting(filled, device).unsqueeze(1).expand(-1, observations, -1, -1).flatten(0, 1)
    distances = kernels.observation_edges(points, own)
    return distances.view(runs, -1).sum(1) / (counts * observations)


def _measure_run(selection: Selection, points: Points) -> Tensor:
    if selection.edges is None:
        return mean_last(kernels.pair_totals(points)) / selection.pairs(points.agents)
    if isinstance(selection.edges, Graph | MovingGraph):
        return graph_mean(points, selection.edges)
    return mean_last(kernels.edge_totals(points, selection.edges)) / len(selection.edges)
