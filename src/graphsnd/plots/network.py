"""Graphs over agents, drawn where the agents are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.graphs import Graph
from graphsnd.plots.matrix import Array, group_legend
from graphsnd.plots.study import Measured, Study
from graphsnd.plots.style import FAINT, MUTED, group_look, new_figure, style
from graphsnd.plots.tree import behaviour_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_graph(
    ax: Axes, graph: Graph, places: Array, groups: Array | None = None, *, matrix: Array | None = None, size: float = 22
) -> None:
    """Draw the edges as thin lines and the agents on top, in the colour and shape of their group.

    Args:
        ax: Where to draw.
        graph: The graph.
        places: ``[n, 2]``.
        groups: ``[n]``; one group when None.
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
    labels = np.zeros(graph.n, dtype=int) if groups is None else np.asarray(groups)
    for group in np.unique(labels):
        shade, marker = group_look(int(group))
        chosen = where[labels == group]
        ax.scatter(
            chosen[:, 0], chosen[:, 1], s=size, color=shade, marker=marker, edgecolors="white", linewidths=0.5, zorder=2
        )
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.06)


def graphs_figure(study: Study, *, unit: str = "action units") -> Figure:
    """Six graphs over the same agents: sampled ones on the map of behaviour, local ones in the world."""
    with style():
        figure = new_figure(11.0, 7.6)
        axes = figure.subplots(2, 3)
        for row, (measured, kind) in enumerate([(study.sampled, "estimates SND"), (study.local, "a local measure")]):
            for ax, one in zip(axes[row], measured, strict=True):
                _panel(ax, one, kind, study)
        for ax in axes[0]:
            ax.set_xlabel(f"map of behaviour, 1st axis  [{unit}]")
        for ax in axes[1]:
            ax.set_xlabel("world, x  [m]")
        axes[0, 0].set_ylabel(f"map of behaviour, 2nd axis  [{unit}]")
        axes[1, 0].set_ylabel("world, y  [m]")
        group_legend(figure, study.team.role_names, ncols=4, loc="outside lower center")
        return figure


def graph_panel(study: Study, one: Measured, *, unit: str = "action units") -> Figure:
    """One of those graphs alone, for narrow pages."""
    local = one in study.local
    with style():
        figure = new_figure(4.0, 3.9)
        ax = figure.subplots()
        _panel(ax, one, "a local measure" if local else "estimates SND", study)
        ax.set_xlabel("world, x  [m]" if local else f"map of behaviour, 1st axis  [{unit}]")
        ax.set_ylabel("world, y  [m]" if local else f"map of behaviour, 2nd axis  [{unit}]")
        return figure


def group_key(names: Sequence[str]) -> list[tuple[str, str]]:
    """Name and colour of every group, for legends outside matplotlib."""
    return [(name, group_look(group)[0]) for group, name in enumerate(names)]


def _panel(ax: Axes, one: Measured, kind: str, study: Study) -> None:
    places: Any = study.team.positions if one in study.local else behaviour_map(study.matrix)
    draw_graph(ax, one.graph, places, study.team.roles)
    ax.set_title(one.spec, pad=20)
    note = f"{one.graph.m} pairs, {kind}: {one.estimate.value:.3f}"
    ax.text(0.0, 1.02, note, transform=ax.transAxes, fontsize=9, color=MUTED, va="bottom")
    ax.grid(color=FAINT, linewidth=0.5)
