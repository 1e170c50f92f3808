"""One measurement in pictures: the pairs that were looked at, how their distances spread, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsnd import graphs
from graphsnd.behavior import Behavior, Distance
from graphsnd.estimation import Estimate
from graphsnd.graphs import Graph
from graphsnd.metric import edge_distances, pairwise
from graphsnd.plots.agents import draw_contributions
from graphsnd.plots.facts import unit
from graphsnd.plots.matrix import draw_heatmap, draw_scale
from graphsnd.plots.style import ESTIMATE, MUTED, TRUTH, new_figure, style
from graphsnd.plots.tree import cluster

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ORDERED = 2000  # agents up to which a full matrix is clustered for its order
DRAWN = 1_000_000  # pairs up to which all are drawn
CELLS = 500  # cells along a side of the picture of a large matrix


@dataclass(frozen=True, eq=False)
class Detail:
    """The distances behind one number."""

    estimate: Estimate
    edges: NDArray[np.int64]  # [m, 2], agents renumbered by the tree where there is one
    distances: NDArray[np.float64]  # [m]
    ordered: bool  # whether the agents were reordered
    drawn: str  # what part of the measured pairs this is, for people


def detail(behavior: Behavior, graph: Graph | None, distance: Distance | None, estimate: Estimate) -> Detail:
    """Look again at the measured pairs, at most a million of them, and keep what the figures need.

    Args:
        behavior: What was measured.
        graph: On which graph; None for all pairs.
        distance: With which distance; None for the default.
        estimate: What came out.
    """
    n, drawn = behavior.agents, "all measured pairs"
    if graph is None and n <= ORDERED:
        graph = graphs.complete(n)
    elif graph is None:
        graph, drawn = graphs.uniform(n, min(DRAWN, estimate.pairs_total)), f"{DRAWN:,} of all pairs"
    with torch.no_grad():
        if graph.is_complete and n <= ORDERED:
            matrix = pairwise(behavior, distance)
            place = torch.from_numpy(np.argsort(cluster(matrix).order))
            i, j = graph.edges.cpu().unbind(1)
            return Detail(estimate, place[graph.edges.cpu()].numpy(), _array(matrix.cpu()[i, j]), True, "all pairs")
        if graph.m > DRAWN:
            chosen = torch.randperm(graph.m, generator=torch.Generator().manual_seed(0))[:DRAWN]
            graph = Graph(graph.n, graph.edges[chosen.to(graph.device)])
            drawn = f"{DRAWN:,} of the measured pairs"
        return Detail(
            estimate, graph.edges.cpu().numpy(), _array(edge_distances(behavior, graph, distance)), False, drawn
        )


def measured_figure(detail: Detail) -> Figure:
    """All three panels side by side."""
    with style():
        figure = new_figure(13.0, 4.3)
        pairs, spread, agents = figure.subplots(1, 3, width_ratios=[1.15, 1.1, 1.1])
        draw_pairs(pairs, detail)
        draw_spread(spread, detail)
        draw_agents(agents, detail)
        return figure


def measured_panels(detail: Detail) -> list[Figure]:
    """The same three, each a figure of its own, for narrow pages."""
    figures = []
    with style():
        for draw in (draw_pairs, draw_spread, draw_agents):
            figures.append(new_figure(4.9, 4.0))
            draw(figures[-1].subplots(), detail)
    return figures


def draw_pairs(ax: Axes, detail: Detail) -> None:
    """The distance matrix with nothing where no pair was measured; large ones in cells of several agents."""
    n, (i, j) = detail.estimate.agents, detail.edges.T
    side = min(n, CELLS)
    rows, columns = (np.concatenate(pair) * side // n for pair in ((i, j), (j, i)))
    twice = np.concatenate([detail.distances, detail.distances])
    cells = rows * side + columns
    total = np.bincount(cells, weights=twice, minlength=side * side)
    count = np.bincount(cells, minlength=side * side)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(side, side)
    if side == n and detail.ordered:
        np.fill_diagonal(mean, 0.0)
    image = draw_heatmap(ax, mean)
    image.set_extent((-0.5, n - 0.5, n - 0.5, -0.5))
    draw_scale(image, f"distance  [{unit(detail.estimate.distance)}]", ax=ax, shrink=0.9, aspect=26, pad=0.02)
    ax.set_title(detail.drawn.capitalize())
    ax.set_xlabel("agent, ordered by clustering" if detail.ordered else "agent")
    ax.set_ylabel("agent")


def draw_spread(ax: Axes, detail: Detail) -> None:
    """Histogram of the distances, with the value and its interval."""
    e, values = detail.estimate, detail.distances
    ax.set_title(f"{e.target} {e.value:.4g}", pad=20)
    kind = "guaranteed" if e.guaranteed else "asymptotic"
    note = f"the line; in grey the {kind} {100 * e.confidence:.4g}% interval"
    note = "the line: their mean" if e.exact else note
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")
    ax.set_xlabel(f"distance of a pair  [{unit(e.distance)}]")
    ax.set_ylabel("pairs")
    ax.grid(axis="y")
    if len(values):
        # Identical agents have no range to cut into bins; any width around their one value will do.
        low, high = float(values.min()), float(values.max())
        around = max(abs(high), 1.0) * 0.5 if high - low <= 1e-9 * abs(high) else 0.0
        bins = int(np.clip(np.sqrt(len(values)), 8, 60))
        ax.hist(values, bins=bins, range=(low - around, high + around), color=ESTIMATE, alpha=0.75, linewidth=0)
    if e.interval[0] < e.interval[1]:
        ax.axvspan(*e.interval, color=MUTED, alpha=0.18, linewidth=0)
    ax.axvline(e.value, color=TRUTH, linewidth=1.8)


def draw_agents(ax: Axes, detail: Detail) -> None:
    """Mean measured distance of every agent that has a measured pair."""
    n = detail.estimate.agents
    ends = detail.edges.T.reshape(-1)
    degree = np.bincount(ends, minlength=n)
    total = np.bincount(ends, weights=np.concatenate([detail.distances, detail.distances]), minlength=n)
    seen = degree > 0
    draw_contributions(ax, total[seen] / degree[seen])
    ax.set_title("Whose diversity it is")
    ax.set_xlabel("agents, most distinctive first" + ("" if seen.all() else f" ({(~seen).sum():,} without a pair)"))
    ax.set_ylabel(f"mean measured distance  [{unit(detail.estimate.distance)}]")


def _array(values: torch.Tensor) -> Any:
    return values.detach().cpu().double().numpy()
