"""The diversity that a controller reads: pairs that a design selected, and the number they make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from graphsnd import kernels
from graphsnd.behavior.points import Norm, Points, widen
from graphsnd.designs import Design
from graphsnd.designs.design import as_design
from graphsnd.errors import InputError, check_shape, shape_of
from graphsnd.graphs import Graph, MovingGraph, complete
from graphsnd.graphs.graph import check_edges, check_graph, ratio
from graphsnd.metric.diversity import graph_mean
from graphsnd.sums import add_last, mean_last
from graphsnd.teams.engine import copy_without_waiting


class Measurement(NamedTuple):
    """A measured diversity, ``[]`` or ``[runs]``.

    Example:
        >>> from graphsnd.designs.design import Complete
        >>> measured = measure_points(Complete(), torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> float(measured.value), bool(measured.empty)
        (4.0, False)
    """

    value: Tensor  # float64
    empty: Tensor  # bool: the draw had no pairs, all were measured instead


@dataclass(frozen=True, eq=False)
class Selection:
    """The pairs that a design chose for O observations of n agents, before anything is evaluated.

    Example:
        >>> from graphsnd.designs.design import Matching
        >>> chosen = select_pairs(Matching(), 3, 10, torch.Generator().manual_seed(0), device=torch.device("cpu"))
        >>> chosen.edges.shape  # [O, m, 2]
        torch.Size([3, 5, 2])
    """

    edges: Tensor | Graph | MovingGraph | None  # None for all pairs; [O, m, 2] for each observation; or graphs
    agents: Tensor | None = None  # int64 [O, k], agents to evaluate, among whom edges then count; None for all agents
    empty: bool = False  # the draw had no pairs, so all are measured instead
    weights: Tensor | None = None  # [O, m] beside edges of each observation, 0 for what only fills up


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
        design: Design that chooses the pairs.
        observations: Number of observations.
        agents: Size of the team.
        generator: A generator on the CPU; only designs without chance do without.
        device: Device of the outputs.
        positions: Positions of all agents at each observation, ``[observations, agents, d]``.

    Raises:
        InputError: When a generator or positions are missing, and for a graph of other agents or observations.
    """
    drawn = design.draw(agents, generator, positions)
    if isinstance(drawn, MovingGraph):
        check_graph(
            drawn, agents, observations=observations, argument="positions" if design.needs_positions else "design"
        )
    if isinstance(drawn, Graph | MovingGraph):
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
    generator: torch.Generator | None = None,
    *,
    positions: Tensor | None = None,
) -> Measurement:
    """Measure the outputs of all agents with one draw of a design.

    A draw without edges measures all pairs instead, the paper's rule, and says so.

    Args:
        design: The pairs to measure, as a design or as text; or a graph, or one for each observation: then its
            Graph-SND is measured, with its weights.
        values: ``[observations, agents, features]``.
        generator: Generator of the draw.
        positions: ``[observations, agents, d]``.

    Returns:
        ``[]``, differentiable in ``values``.

    Raises:
        InputError: For other shapes, or what the design misses.

    Example:
        >>> from graphsnd.designs.design import Complete
        >>> measure_points(Complete(), torch.tensor([[[0.0], [3.0], [6.0]]])).value
        tensor(4., dtype=torch.float64)
    """
    check_shape("values", values, ("observations", "agents", "features"), dtype="floating")
    observations, agents = values.shape[:2]
    if positions is not None:
        check_shape("positions", positions, (observations, agents, "d"))
    selection = select_pairs(
        as_design(design), observations, agents, generator, device=values.device, positions=positions
    )
    if selection.agents is not None:
        rows = torch.arange(observations, device=values.device).unsqueeze(1)
        values = values[rows, selection.agents.to(values.device)]
    return Measurement(*(part[0] for part in measure_selected([selection], values.unsqueeze(0))))


def measure_selected(selections: Sequence[Selection], values: Tensor) -> Measurement:
    """Measure stacked runs, each by its own selection.

    Args:
        selections: Selection of each run, all of one design.
        values: ``[runs, O, n, F]``, or ``[runs, O, k, F]`` where selections name k agents.

    Returns:
        ``[runs]``, differentiable.

    Example:
        >>> measure_selected([Selection(None)], torch.tensor([[[[0.0], [3.0], [6.0]]]])).value
        tensor([4.], dtype=torch.float64)
    """
    empty = copy_without_waiting(torch.tensor([selection.empty for selection in selections]), values.device)
    return Measurement(_measure_values(selections, widen(values)), empty)


def _measure_values(selections: Sequence[Selection], values: Tensor) -> Tensor:
    runs, observations, agents = values.shape[:3]
    if agents < 2 or not values.numel():
        expected = "with shape (observations, agents, features), at least 2 agents and 1 feature"
        raise InputError("values", expected, shape_of(values[0]))
    points, chosen = Points(values.flatten(0, 1), Norm.EUCLIDEAN), [each.edges for each in selections]
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
    graphs = [complete(agents) if edges is None else edges for edges in chosen if not isinstance(edges, Tensor)]
    if values.is_cuda and all(isinstance(graph, Graph) and graph.estimates_snd for graph in graphs):
        return _measure_together([graph.edges for graph in graphs], points)
    parts = points.values.unflatten(0, (runs, observations))
    return torch.stack(
        [graph_mean(Points(part, Norm.EUCLIDEAN), graph) for graph, part in zip(graphs, parts, strict=True)]
    )


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
