"""One measurement in pictures: the pairs that were measured, how their distances spread, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from graphsnd import graphs
from graphsnd.analysis import roles
from graphsnd.analysis.grouping import Roles
from graphsnd.behavior import Behavior, Distance
from graphsnd.behavior.behavior import embed
from graphsnd.errors import check_finite, plural
from graphsnd.estimation import Estimate
from graphsnd.estimation.estimate import round_outwards
from graphsnd.graphs import Graph, MovingGraph
from graphsnd.graphs.graph import check_graph
from graphsnd.graphs.pairs import from_keys, keys
from graphsnd.metric import pairwise
from graphsnd.metric.pair_distances import edge_lengths
from graphsnd.plots.clustering import Tree, cluster
from graphsnd.plots.explorer import LIVE, agents_table, describe_omission, explorer_html, explorer_script, is_live
from graphsnd.plots.intervals import estimate as draw_interval
from graphsnd.plots.matrix import describe_unit, draw_bars, draw_image, tick_names
from graphsnd.plots.page import HtmlTable, Picture, Section, render_page
from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.style import ESTIMATE, MUTED, TRUTH, phone_figure, styled_figure
from graphsnd.plots.summary import Lines, number_card

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

ORDERED = 2000  # agents up to which a full matrix is clustered for its order
DRAWN = 1_000_000  # pairs up to which all are drawn
MEETING = "pairs that meet, while they do"  # where each observation has its own graph
CELLS = 500  # cells along a side of the picture of a large matrix


@dataclass(frozen=True, eq=False)
class PairDistances:
    """The distances behind one number.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> pairs = pair_distances(team, None, None, gs.measure(team))
        >>> pairs.edges.tolist(), pairs.distances.tolist(), pairs.drawn
        ([[0, 1], [0, 2], [1, 2]], [3.0, 6.0, 3.0], 'all pairs')
    """

    estimate: Estimate  # the number
    edges: NDArray[np.int64]  # [m, 2]
    distances: NDArray[np.float64]  # [m]
    tree: Tree | None  # of the agents, where all pairs were measured
    drawn: str  # what part of the measured pairs this is, for people
    names: tuple[str, ...]  # [n], of the agents
    roles: Roles | None = None  # where all pairs were measured, of not too many agents

    @property
    def unit(self) -> str:
        """Unit of the distances, for axis labels."""
        return describe_unit(self.estimate.distance)

    def mean_by_agent(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return each agent's mean measured distance, 0 where it has no pair, and its number of pairs, ``[n]`` each."""
        n, ends = len(self.names), self.edges.T.reshape(-1)
        degree = np.bincount(ends, minlength=n)
        total = np.bincount(ends, weights=np.tile(self.distances, 2), minlength=n)
        return total / np.maximum(degree, 1), degree


def pair_distances(
    behavior: Behavior, graph: Graph | MovingGraph | None, distance: Distance | None, estimate: Estimate
) -> PairDistances:
    """Measure the pairs of an estimate again, at most a million of them, and return what the figures need.

    Args:
        behavior: What was measured.
        graph: On which graph; None for all pairs. Of a graph for each observation, a pair's distance is its mean over
            the observations that join it.
        distance: With which distance; None for the default.
        estimate: The result of the measurement.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> path = gs.Graph(3, torch.tensor([[0, 1], [1, 2]]))
        >>> pair_distances(team, path, None, gs.measure(team, design=path)).distances.tolist()
        [3.0, 3.0]
    """
    n, drawn, tree, groups = behavior.agents, "all measured pairs", None, None
    names = behavior.names if graph is None or graph.names is None else graph.names
    if graph is not None:
        check_graph(graph, n, observations=behavior.observations)
    if isinstance(graph, MovingGraph):
        values = edge_lengths(embed(behavior, distance).detach(), graph).cpu()
        i, j = graph.edges.cpu().unbind(1)
        met, place, counts = keys(i, j, n).unique(return_inverse=True, return_counts=True)
        means = values.new_zeros(len(met)).index_add(0, place, values) / counts
        return PairDistances(estimate, from_keys(met, n).numpy(), means.numpy(), None, MEETING, names)
    if graph is None and n <= ORDERED:
        graph = graphs.complete(n)
    elif graph is None:
        graph, drawn = graphs.uniform(n, min(DRAWN, estimate.pairs_total)), f"{DRAWN:,} of all pairs"
    with torch.no_grad():
        if graph.is_complete and n <= ORDERED:
            matrix, drawn = pairwise(behavior, distance).cpu(), "all pairs"
            check_finite("behavior", matrix)
            values, tree = matrix[tuple(graph.edges.cpu().T)], cluster(matrix)
            groups = roles(behavior, distance) if n <= LIVE else None
        else:
            if graph.m > DRAWN:
                chosen = torch.randperm(graph.m, generator=torch.Generator().manual_seed(0))[:DRAWN]
                graph = Graph(graph.n, graph.edges[chosen.to(graph.device)])
                drawn = f"{DRAWN:,} of the measured pairs"
            values = pairwise(behavior, distance, graph=graph).cpu()
    return PairDistances(estimate, graph.edges.cpu().numpy(), values.double().numpy(), tree, drawn, names, groups)


def measurement_figure(pairs: PairDistances) -> Figure:
    """Return matrix, histogram and bars side by side.

    Args:
        pairs: The distances behind an estimate, of :func:`pair_distances`.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> figure = measurement_figure(pair_distances(team, None, None, gs.measure(team)))
        >>> figure.get_size_inches().tolist()
        [13.0, 4.3]
    """
    with styled_figure(13.0, 4.3) as figure:
        for ax, draw in zip(figure.subplots(1, 3, width_ratios=[1.15, 1.1, 1.1]), PANELS, strict=True):
            draw(ax, pairs)
        return figure


def draw_pairs(ax: Axes, pairs: PairDistances) -> None:
    """Draw the distance matrix, blank where no pair was measured; large ones in cells of several agents."""
    n = pairs.estimate.agents
    order = np.arange(n) if pairs.tree is None else pairs.tree.order
    i, j = np.argsort(order)[pairs.edges].T
    side = min(n, CELLS)
    rows, columns = (np.concatenate(ends) * side // n for ends in ((i, j), (j, i)))
    cells = rows * side + columns
    total = np.bincount(cells, weights=np.tile(pairs.distances, 2), minlength=side * side)
    count = np.bincount(cells, minlength=side * side)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(side, side)
    if side == n and pairs.tree is not None:
        np.fill_diagonal(mean, 0.0)
    draw_image(ax, mean, f"distance  [{pairs.unit}]").set_extent((-0.5, n - 0.5, n - 0.5, -0.5))
    ordered = [pairs.names[agent] for agent in order]
    skipped = tick_names(ax, "x", ordered)
    tick_names(ax, "y", ordered)
    ax.set(title=pairs.drawn.capitalize(), xlabel="agent" + ", clustered" * (pairs.tree is not None) + skipped)


def draw_histogram(ax: Axes, pairs: PairDistances) -> None:
    """Draw the histogram of the distances, with the value and its interval."""
    e, values = pairs.estimate, pairs.distances
    ax.set_title(f"{e.target} {e.value:.4g}", pad=20)
    kind = "guaranteed" if e.guaranteed else "asymptotic"
    note = f"the line; in grey the {kind} {100 * e.confidence:.4g}% interval"
    mean = "the line: mean over observations" if pairs.drawn == MEETING else "the line: their mean"
    note = mean if e.exact else note
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")
    ax.set(xlabel=f"distance of a pair  [{pairs.unit}]", ylabel="pairs")
    ax.grid(axis="y")
    if len(values):
        # Identical agents have no range to divide into bins; any width around their one value will do.
        low, high = float(values.min()), float(values.max())
        around = max(abs(high), 1.0) * 0.5 if high - low <= 1e-9 * abs(high) else 0.0
        bins = int(np.clip(np.sqrt(len(values)), 8, 60))
        ax.hist(values, bins=bins, range=(low - around, high + around), color=ESTIMATE, alpha=0.75, linewidth=0)
    if e.interval[0] < e.interval[1]:
        ax.axvspan(*e.interval, color=MUTED, alpha=0.18, linewidth=0)
    ax.axvline(e.value, color=TRUTH, linewidth=1.8)


def draw_agents(ax: Axes, pairs: PairDistances) -> None:
    """Draw the mean measured distance of every agent that has a measured pair."""
    means, degree = pairs.mean_by_agent()
    paired = degree > 0
    draw_bars(ax, means[paired], [name for name, there in zip(pairs.names, paired, strict=True) if there])
    missing = "" if paired.all() else f" ({(~paired).sum():,} without a pair)"
    ax.set(title="Whose diversity it is", xlabel=ax.get_xlabel() + missing)
    ax.set_ylabel(f"mean measured distance  [{pairs.unit}]")


WHO = (
    "The distance between two agents is the mean distance between what they would do on the same observations. Agents "
    "of one role act alike and may share parameters. Removing an agent can also raise SND; its value is then negative."
)
SURE = (
    "Blue: uncertainty from sampling pairs, for SND on these observations. Green: also from sampling observations, for "
    "SND on others like them. Where all pairs were measured, only the second error is left."
)
PANELS = (draw_pairs, draw_histogram, draw_agents)


def measurement_page(pairs: PairDistances, lines: Lines, *, source: str, command: str, seed: int) -> str:
    """Return the page of a measurement as a string.

    Args:
        pairs: The distances behind the estimate.
        lines: Its :func:`~graphsnd.plots.summary.summarise`.
        source: Name of the measured file, without its folder.
        command: What made the page, for the footer.
        seed: Seed of the graph.

    Example:
        >>> import torch, graphsnd as gs
        >>> team = gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))
        >>> estimate = gs.measure(team)
        >>> from graphsnd.plots.summary import summarise
        >>> pairs, lines = pair_distances(team, None, None, estimate), summarise(estimate)
        >>> page = measurement_page(pairs, lines, source="team.npz", command="graphsnd measure team.npz", seed=0)
        >>> page[:15]
        '<!doctype html>'
    """
    e = pairs.estimate
    promise = "on these observations, " + ("guaranteed for every team" if e.guaranteed else "approximate")
    if e.exact:
        promise = "on other observations like these, approximate" if e.population_interval else f"± {e.clusters}"
    ends = e.population_interval if e.exact else e.interval
    _, low, high = round_outwards(e.value, *(ends or e.interval), e.observation_error or e.standard_error)
    cards = [
        number_card(e),
        (f"Interval, {100 * e.confidence:.4g}%", f"{low} to {high}" if ends else "unknown", promise),
        ("Agents", f"{e.agents:,}", f"on {e.observations:,} {plural('shared observation', e.observations)}"),
        ("Pairs used", f"{100 * e.pairs_used / e.pairs_total:.3g}%", f"{e.pairs_used:,} of {e.pairs_total:,}"),
    ]
    matrix, spread, agents = (phone_figure(3.6, draw, pairs) for draw in PANELS)
    sure = phone_figure(2.7, lambda ax: draw_interval(e, ax=ax))
    table, order = agents_table(pairs)
    who, script = "", ""
    if is_live(e.agents):
        who = explorer_html(pairs, order)
        script = explorer_script()
    pictures = [
        Picture(matrix, "Matrix of the measured distances, blank where no pair was measured."),
        Picture(agents, "Mean measured distance of every agent, the most distinctive first."),
    ]
    certain = [
        Picture(sure, "The value with intervals for these observations and for others like them."),
        Picture(spread, "Histogram of the measured distances with the value and its interval."),
    ]
    lead = f"What the agents in {source} would do on the same observations, and how far apart that is."
    sections = [
        Section(
            "Who differs from whom", WHO + describe_omission(len(order), e.agents), pictures, live=who, table=table
        ),
        Section("How sure the number is", SURE, certain),
        Section("In full", table=HtmlTable(("", ""), lines)),
    ]
    title = f"Behavioural diversity of {source}"
    return render_page(title, lead, cards, sections, footer_lines(command, seed), script=script)
