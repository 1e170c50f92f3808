"""The diversity that a controller reads: pairs that a design selected, and the number they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior.points import Norm, Points, widen
from graphsnd.designs import Design
from graphsnd.designs.design import as_design
from graphsnd.designs.template import Template
from graphsnd.errors import InputError, check_integer, check_shape, shape_of
from graphsnd.graphs import Graph, MovingGraph, complete
from graphsnd.graphs.graph import check_edges, check_graph, ratio
from graphsnd.metric.diversity import graph_mean
from graphsnd.sums import add_last, mean_last
from graphsnd.teams.engine import copy_without_waiting


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


@dataclass(frozen=True, eq=False)
class Selection:
    """The pairs that a design chose for O observations of n agents, before anything is evaluated.

    Example:
        >>> from graphsnd.designs import Matching
        >>> chosen = select_pairs(Matching(), 3, 10, torch.Generator().manual_seed(0), device=torch.device("cpu"))
        >>> chosen.edges.shape, chosen.pairs(10)  # [O, m, 2]
        (torch.Size([3, 5, 2]), 5)
    """

    edges: Tensor | Graph | MovingGraph | None  # None for all pairs; [O, m, 2] for each observation; or graphs
    agents: Tensor | None = None  # int64 [O, k], agents to evaluate, among whom edges then count; None for all agents
    empty: bool = False  # the draw had no pairs, so all are measured instead
    weights: Tensor | None = None  # [O, m] beside edges of each observation, 0 for what only fills up

    def pairs(self, agents: int) -> int:
        """Return the number of distances for each observation, rounded where they differ."""
        if isinstance(self.edges, MovingGraph):
            return round(self.edges.m / len(self.edges))
        if isinstance(self.edges, Graph):
            return self.edges.m
        return math.comb(agents, 2) if self.edges is None else self.edges.shape[-2]

    def take(self, values: Tensor) -> Tensor:
        """Return the outputs of the selected agents, from those of all agents ``[O, n, F]``."""
        if self.agents is None:
            return values
        rows = torch.arange(len(values), device=values.device).unsqueeze(1)
        return values[rows, self.agents.to(values.device)]


def select_pairs(
    design: Design,
    observations: int,
    agents: int,
    generator: torch.Generator | None,
    *,
    device: torch.device,
    positions: Tensor | None = None,
) -> Selection:
    """Choose the pairs of one call, as a controller does in each optimiser step.

    Args:
        design: Which pairs.
        observations: Number of observations.
        agents: Size of the team.
        generator: A generator on the CPU; only designs without chance do without.
        device: Where the outputs will be.
        positions: Positions of all agents at each observation, ``[observations, agents, d]``.

    Raises:
        InputError: When a generator or positions are missing.
    """
    drawn = design.draw(agents, generator, positions)
    if isinstance(drawn, MovingGraph):
        check_graph(drawn, agents, observations=observations, argument="positions")
    if not isinstance(drawn, Template):
        # Remark 8. Given that it is not empty a Bernoulli graph's mean is unbiased for SND, so the whole is.
        empty = isinstance(drawn, Graph) and drawn.estimates_snd and not drawn.m
        return Selection(None, empty=True) if empty else Selection(drawn)
    if drawn.m == math.comb(agents, 2):
        return Selection(None)
    if generator is None:
        raise InputError("generator", f"for {design}, which draws its pairs", None, "Pass a seeded torch.Generator.")
    check_edges("observations", observations * max(drawn.size, drawn.m))
    if 2 * drawn.size > agents:
        return Selection(drawn.lay(agents, observations, generator, device)[:, drawn.list_edges(device)])
    # Plain engines sort requests by agent, which on a GPU would have to be waited for.
    chosen = drawn.lay(agents, observations, generator, torch.device("cpu"))
    return Selection(drawn.list_edges(device).expand(observations, -1, -1), agents=chosen)


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
        norm: Norm of the distances.

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
        select_pairs(design, observations, agents, each, device=values.device, positions=place)
        for each, place in zip(generators, [None] * runs if positions is None else positions, strict=True)
    ]
    selected = torch.stack([selection.take(part) for selection, part in zip(selections, values, strict=True)])
    return measure_selected(selections, selected, norm)


def measure_selected(selections: Sequence[Selection], values: Tensor, norm: Norm = Norm.EUCLIDEAN) -> Measurement:
    """Measure stacked runs, each by its own selection.

    Args:
        selections: One for each run, all of one design.
        values: ``[runs, O, n, F]``, or ``[runs, O, k, F]`` where selections name k agents.
        norm: Norm of the distances.

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
    points, chosen = Points(values.flatten(0, 1), norm), [each.edges for each in selections]
    if all(edges is None for edges in chosen):
        return mean_last(kernels.pair_totals(points).view(runs, observations)) / math.comb(agents, 2)
    laid = [edges for edges in chosen if isinstance(edges, Tensor)]
    if laid:
        distances = kernels.observation_edges(points, laid[0] if runs == 1 else torch.cat(laid))
        filled = [each.weights for each in selections if each.weights is not None]
        if filled:
            weights = torch.cat(filled)
            distances = ratio(add_last(distances * weights), add_last(weights))
        return mean_last(distances.view(runs, -1))
    # A launch for each run would leave a GPU idle; on a CPU the padding of the shorter graphs would be computed.
    drawn = [edges for edges in chosen if edges is None or (isinstance(edges, Graph) and edges.estimates_snd)]
    if values.device.type == "cuda" and len(drawn) == runs:
        return _measure_together([complete(agents).edges if graph is None else graph.edges for graph in drawn], points)
    parts = points.values.unflatten(0, (runs, observations))
    return torch.stack([_measure_run(edges, Points(part, norm)) for edges, part in zip(chosen, parts, strict=True)])


def _measure_together(graphs: Sequence[Tensor], points: Points) -> Tensor:
    """Graphs of all runs in one launch: shorter ones are filled up with an agent and itself, whose distance is 0."""
    runs, device = len(graphs), points.values.device
    observations = len(points.values) // runs
    filled = torch.zeros(runs, max(len(edges) for edges in graphs), 2, dtype=torch.int64, device=graphs[0].device)
    for run, edges in enumerate(graphs):
        filled[run, : len(edges)] = edges
    counts = copy_without_waiting(torch.tensor([len(edges) for edges in graphs]), device)
    own = copy_without_waiting(filled, device).unsqueeze(1).expand(-1, observations, -1, -1).flatten(0, 1)
    distances = kernels.observation_edges(points, own)
    return distances.view(runs, -1).sum(1) / (counts * observations)


def _measure_run(edges: Any, points: Points) -> Tensor:
    if edges is None:
        return mean_last(kernels.pair_totals(points)) / math.comb(points.agents, 2)
    return graph_mean(points, edges)
