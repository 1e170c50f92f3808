"""Graphs over agents, drawn where the agents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.graphs import Graph
from graphsnd.plots.clustering import behaviour_map
from graphsnd.plots.matrix import Array, group_legend
from graphsnd.plots.study import GraphResult, Study
from graphsnd.plots.style import FAINT, LABELLED, MUTED, UNIT, group_look, label, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_graph(
    ax: Axes, graph: Graph, places: Array, groups: Array, *, matrix: Array | None = None, size: float = 22
) -> None:
    """Draw the edges as thin lines and the agents on top, in the colour and shape of their group, with their names.

    Args:
        ax: Where to draw.
        graph: The graph.
        places: ``[n, 2]``.
        groups: ``[n]``.
        matrix: Distances ``[n, n]``, which then colour the edges as they do the heatmap; grey when None.
        size: Area of a marker, in square points.
    """
    from matplotlib.collections import LineCollection

    where = np.asarray(places)
    edges = graph.edges.cpu().numpy()
    # Few edges are drawn dark and many light, so that a dense graph stays a texture and not a blot.
    opacity = float(np.clip(90 / max(graph.m, 1), 0.13, 0.8))
    if matrix is None:
        look: dict[str, Any] = {"colors": MUTED, "alpha": opacity}
    else:
        values = np.asarray(matrix)
        look = {"array": values[tuple(edges.T)], "clim": (0.0, values.max()), "alpha": min(1.0, 2.5 * opacity)}
    ax.add_collection(LineCollection(where[edges], linewidths=0.8, zorder=1, **look))
    labels = np.asarray(groups)
    for group in np.unique(labels):
        shade, marker = group_look(int(group))
        chosen = where[labels == group]
        ax.scatter(
            chosen[:, 0], chosen[:, 1], s=size, color=shade, marker=marker, edgecolors="white", linewidths=0.5, zorder=2
        )
    for agent, name in enumerate(graph.names or ()) if graph.n <= LABELLED else ():
        ax.annotate(label(name), where[agent], xytext=(4, 4), textcoords="offset points", fontsize=8, zorder=3)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)


def graphs_figure(study: Study) -> Figure:
    """Return six graphs over the same agents: sampled ones on the map of behaviour, local ones in the world."""
    with styled_figure(11.0, 7.6) as figure:
        axes = figure.subplots(2, 3)
        for ax, result in zip(axes.flat, (*study.sampled, *study.local), strict=True):
            _draw_panel(ax, result, study)
        for ax in axes[:, 1:].flat:
            ax.set_ylabel("")  # the same as at the left
        group_legend(figure, study.team.role_names, ncols=4, loc="outside lower center")
        return figure


def graph_figure(study: Study, result: GraphResult) -> Figure:
    """Return one of those graphs alone, for narrow pages."""
    with styled_figure(4.0, 3.9) as figure:
        _draw_panel(figure.subplots(), result, study)
        return figure


def _draw_panel(ax: Axes, result: GraphResult, study: Study) -> None:
    local = result in study.local
    places: Any = study.team.positions if local else behaviour_map(study.matrix)
    draw_graph(ax, result.graph, places, study.team.roles)
    ax.set_title(result.spec, pad=20)
    kind = "a local measure" if local else "estimates SND"
    note = f"{result.graph.m} pairs, {kind}: {result.estimate.value:.3f}"
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")
    ax.grid(color=FAINT, linewidth=0.5)
    behaviour = (f"map of behaviour, {axis} axis  [{UNIT}]" for axis in ("1st", "2nd"))
    x, y = ("world, x  [m]", "world, y  [m]") if local else behaviour
    ax.set(xlabel=x, ylabel=y)
