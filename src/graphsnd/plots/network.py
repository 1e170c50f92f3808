"""Graphs over agents, drawn where the agents are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError
from graphsnd.graphs import Graph
from graphsnd.plots.distances import Array, behaviour_map, read_distances, to_array
from graphsnd.plots.matrix import draw_agents
from graphsnd.plots.style import FAINT, MUTED, drawing, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def graph(
    graph: Graph,
    source: Behavior | Array | None = None,
    *,
    positions: Array | None = None,
    ax: Axes | None = None,
    distance: Distance | str | None = None,
    groups: Array | None = None,
    size: float = 26,
) -> Axes:
    """Draw which pairs a graph measures: thin lines between agents.

    Args:
        graph: The graph.
        source: What the agents would do, or their distances ``[n, n]``. Agents then stand where their behaviour puts
            them, as in :func:`~graphsnd.plots.map`, and edges have the colours of the heatmap.
        positions: ``[n, 2]``, where the agents stand instead. On a circle when neither is given.
        ax: Where to draw; new axes when None.
        distance: A distance or its name, for a behaviour; the family's default when None.
        groups: ``[n]`` integers, shown by colours and markers.
        size: Area of a marker, in square points.

    Returns:
        The axes.

    Raises:
        InputError: When the behaviour, the matrix or the positions are of another number of agents.

    Example:
        >>> import torch, graphsnd as gs
        >>> ax = gs.plots.graph(gs.graphs.circulant(5, 2), gs.Deterministic(torch.randn(8, 5, 2)))
    """
    from matplotlib.collections import LineCollection

    given = None if source is None else read_distances(source, distance)
    angles = np.linspace(0, 2 * np.pi, graph.n, endpoint=False)
    where = np.stack([np.sin(angles), np.cos(angles)], 1) if given is None else behaviour_map(given.matrix)
    where = where if positions is None else to_array(positions, "positions")
    if where.shape != (graph.n, 2) or not np.isfinite(where).all():
        name = "source" if positions is None else "positions"
        raise InputError(name, f"of the graph's {graph.n} agents, in the plane", list(where.shape))
    edges = graph.edges.cpu().numpy()
    # Few edges are drawn dark and many light, so that a dense graph stays a texture and not a blot.
    opacity = float(np.clip(90 / max(graph.m, 1), 0.13, 0.8))
    with drawing(ax, 5.0, 4.6) as axes:
        if given is None:
            # One line with gaps: on a page a line for each edge would take a megabyte.
            broken = np.concatenate([where[edges], np.full((graph.m, 1, 2), np.nan)], 1).reshape(-1, 2)
            axes.plot(*broken.T, color=shade(MUTED), alpha=min(1.0, 1.6 * opacity), linewidth=0.7, zorder=1)
        else:
            values, scale = given.matrix[tuple(edges.T)], (0.0, given.matrix.max())
            look: dict[str, Any] = {"array": values, "clim": scale, "alpha": min(1.0, 2.5 * opacity)}
            axes.add_collection(LineCollection(list(where[edges]), linewidths=0.8, zorder=1, **look))
        names = graph.names or (given.names if isinstance(source, Behavior) and given and source.named else None)
        draw_agents(axes, where, groups, names, size=size)
        axes.set_title(f"{graph.family}: {graph.m:,} of {graph.pairs:,} pairs")
        if positions is None and given is None:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        elif given is not None and positions is None:
            axes.set(xlabel="near agents act alike", ylabel=f"[{given.unit}]")
        axes.grid(color=shade(FAINT), linewidth=0.5)
        return axes
