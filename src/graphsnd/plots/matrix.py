"""Who differs from whom: a distance matrix as a heatmap with its tree, as a map, and as one bar for each agent."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.behavior import Behavior, Distance
from graphsnd.errors import InputError
from graphsnd.estimation import Estimate
from graphsnd.plots.distances import Array, Distances, behaviour_map, read_distances, to_array, to_groups
from graphsnd.plots.style import BLUE, FAINT, INK, LABELLED, MUTED, drawing, group_look, label, shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

DASHES = (0, (4, 3))


def heatmap(
    source: Behavior | Estimate | Array,
    *,
    ax: Axes | None = None,
    distance: Distance | str | None = None,
    names: Sequence[str] | None = None,
    order: str | Array = "tree",
    groups: Array | None = None,
) -> Axes:
    """Draw the distance between every two agents, similar agents side by side, and above it the tree of their likeness.

    Pairs that an estimate did not measure stay blank; there is no tree then, and the agents are in their own order.

    Args:
        source: What the agents would do, an estimate that kept its pairs, or distances ``[n, n]``.
        ax: Where to draw; new axes when None.
        distance: A distance or its name, for a behaviour; the family's default when None.
        names: Names of the agents; the behaviour's, or numbers, when None. Where there are many, some are left out.
        order: ``tree`` (clustered), ``names`` (as given), ``contribution``, or the agents in an order.
        groups: ``[n]`` integers, such as ``gs.roles(behavior).labels``, shown as colours along two sides.

    Returns:
        The axes.

    Example:
        >>> import torch
        >>> line = torch.tensor([0.0, 9.0, 1.0, 8.0], requires_grad=True)
        >>> ax = heatmap((line[:, None] - line).abs(), names=["ann", "bob", "cid", "dan"])
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['ann', 'cid', 'dan', 'bob']
    """
    given = read_distances(source, distance, names)
    places = given.arrange(order)
    marked = None if groups is None else to_groups(groups, len(places))
    clustered = order == "tree" and given.complete if isinstance(order, str) else False
    with drawing(ax, 5.9, 5.6) as axes:
        draw_image(axes, given.matrix[np.ix_(places, places)], f"distance  [{given.unit}]")
        ordered = [given.names[place] for place in places]
        # Labels keep clear of the strip of groups, which is 4.5% of the axes wide.
        pad = 0.0 if marked is None else 0.045 * axes.bbox.width * 72 / axes.figure.dpi
        skipped = tick_names(axes, "x", ordered)
        tick_names(axes, "y", ordered, pad=pad)
        axes.set(xlabel="agent" + ", clustered" * clustered + skipped)
        if marked is not None:
            draw_groups(axes, marked[places], (-0.045, 0.0, 0.03, 1.0))
            draw_groups(axes, marked[places], (0.0, 1.015, 1.0, 0.03))
        if clustered:
            draw_tree(axes.inset_axes((0.0, 1.015 if marked is None else 1.06, 1.0, 0.2)), given, marked)
        return axes


def draw_image(ax: Axes, values: NDArray[np.float64], scale: str) -> Any:
    """Draw a square matrix, and its colour bar with the text ``scale``."""
    # The colour map is `image.cmap` of graphsnd.mplstyle: edges of graphs are drawn in the same colours.
    # Above a few hundred agents a cell is smaller than a pixel: averaging is honest, nearest neighbour drops agents.
    image = ax.imshow(values, interpolation="nearest" if len(values) <= 400 else "antialiased", vmin=0.0)
    ax.spines[:].set_visible(False)
    # Inside the axes, so that it is as high as they are in every layout.
    bar: Any = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.035, 1.0)))
    bar.set_label(scale)
    bar.outline.set_visible(False)
    bar.ax.tick_params(color=shade(MUTED), labelcolor=shade(INK))
    return image


def tick_names(ax: Axes, axis: str, names: Sequence[str], *, pad: float = 0.0) -> str:
    """Write the names that have room along an axis, and return a note on those left out, or nothing."""
    x = axis == "x"
    points = (ax.bbox.width if x else ax.bbox.height) * 72 / ax.figure.dpi
    every = max(1, math.ceil(len(names) * 9.0 / points))
    short = [label(name if len(name) <= 20 else f"{name[:19]}…") for name in names[::every]]
    setter = ax.set_xticks if x else ax.set_yticks
    setter(range(0, len(names), every), short, rotation=90 * (x and max(builtins.map(len, short)) > 1), fontsize=8)
    ax.tick_params(axis="x" if x else "y", length=2, pad=2 + pad)
    ordinal = {2: "2nd", 3: "3rd"}.get(every, f"{every}th")
    return f"; every {ordinal} is named" if every > 1 else ""


def draw_groups(ax: Axes, groups: NDArray[np.int64], place: tuple[float, float, float, float]) -> None:
    """Mark the group of each agent in a thin strip at this place outside the heatmap."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(group_look(int(group))[0]) for group in groups])
    strip = ax.inset_axes(place)
    strip.imshow(colours[None] if place[2] > place[3] else colours[:, None], aspect="auto", interpolation="nearest")
    strip.set_axis_off()


def draw_tree(ax: Axes, given: Distances, groups: Array | None = None) -> None:
    """Draw agents merged by how alike they act (average linkage); branches of one group take its colour."""
    from scipy.cluster.hierarchy import dendrogram

    members = [{int(group)} for group in (np.full(len(given.names), -1) if groups is None else groups)]
    for left, right, _, _ in given.links:
        members.append(members[int(left)] | members[int(right)])

    def colour(node: int) -> str:
        [group, *others] = members[node]
        return shade(MUTED) if others or group < 0 else group_look(group)[0]

    with warnings.catch_warnings():  # of a tree of identical agents, which has no height until the limits below
        warnings.filterwarnings("ignore", "Attempting to set identical")
        dendrogram(given.links, ax=ax, no_labels=True, link_color_func=colour)
    for collection in ax.collections:
        collection.set_linewidth(0.9)
    ax.set(xlim=(0, 10 * len(given.names)), ylim=(0, 1.04 * given.links[-1, 2] or 1.0))
    ax.set_axis_off()


def map(
    source: Behavior | Estimate | Array,
    *,
    ax: Axes | None = None,
    distance: Distance | str | None = None,
    names: Sequence[str] | None = None,
    groups: Array | None = None,
) -> Axes:
    """Draw agents in the plane, close where they act alike (classical multidimensional scaling).

    Args:
        source: What the agents would do, an estimate that kept its pairs, or distances ``[n, n]``.
        ax: Where to draw; new axes when None.
        distance: A distance or its name, for a behaviour; the family's default when None.
        names: Names of the agents; the behaviour's, or numbers, when None. Not written where there are more than 40.
        groups: ``[n]`` integers, shown by colours and markers.

    Returns:
        The axes. Their label says how much of the squared distances the plane shows.

    Example:
        >>> import torch, graphsnd as gs
        >>> ax = gs.plots.map(gs.Deterministic(torch.randn(8, 5, 2)))
    """
    given = read_distances(source, distance, names)
    if not given.complete:
        raise InputError("source", "to have all pairs", "an estimate of some")
    places = behaviour_map(given.matrix)
    # Twice the sum of squared coordinates is the mean squared distance of the picture; the same of the matrix.
    shown = min(1.0, (places**2).sum() / max((given.matrix**2).sum() / (2 * len(places)), 1e-300))
    with drawing(ax, 5.0, 4.6) as axes:
        draw_agents(axes, places, groups, given.names)
        axes.set(xlabel=f"near agents act alike; {shown:.0%} of squared distances shown", ylabel=f"[{given.unit}]")
        axes.grid(color=shade(FAINT), linewidth=0.5)
        return axes


def draw_agents(
    ax: Axes, places: Array, groups: Array | None, names: Sequence[str] | None = None, *, size: float = 26
) -> None:
    """Draw agents at places ``[n, 2]`` in the colour and shape of their group, few of them with their names."""
    where = to_array(places)
    labels = np.zeros(len(where)) if groups is None else to_groups(groups, len(where))
    for group in np.unique(labels):
        colour, marker = group_look(int(group))
        x, y = where[labels == group].T
        ax.scatter(x, y, s=size, color=colour, marker=marker, edgecolors=shade("#FFFFFF"), linewidths=0.5, zorder=2)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.1 if names and len(where) <= LABELLED else 0.06)
    if names and len(where) <= LABELLED:
        draw_names(ax, where, names)


def draw_names(ax: Axes, where: NDArray[np.float64], names: Sequence[str]) -> None:
    """Write names beside points, each on the side where it covers least of the others."""
    ax.apply_aspect()
    points = ax.transData.transform(where) * 72 / ax.figure.dpi
    taken = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    for (x, y), place, name in zip(points, where, names, strict=True):
        width, height = 4.6 * len(name) + 2, 9.0
        # Right, left, above and below of the point, and the corners, as shares of the label's size.
        sides = [(1, 0.5), (0, 0.5), (0.5, 1), (0.5, 0), (1, 1), (0, 1), (1, 0), (0, 0)]
        corners = [(x + 5 * (2 * a - 1) - (1 - a) * width, y + 5 * (2 * b - 1) - (1 - b) * height) for a, b in sides]
        boxes = [(left, low, left + width, low + height) for left, low in corners]
        best = min(boxes, key=lambda box: sum(_shared(box, other) for other in taken))
        taken.append(best)
        offset = (best[0] - x, best[1] - y + 1)
        ax.annotate(label(name), place, xytext=offset, textcoords="offset points", fontsize=8, zorder=3)


def _shared(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the area that two boxes (left, bottom, right, top) share."""
    wide, high = (min(one[k + 2], other[k + 2]) - max(one[k], other[k]) for k in (0, 1))
    return max(0.0, wide) * max(0.0, high)


def contributions(
    source: Behavior | Estimate | Array,
    *,
    ax: Axes | None = None,
    distance: Distance | str | None = None,
    names: Sequence[str] | None = None,
    groups: Array | None = None,
) -> Axes:
    """Draw each agent's mean distance to the others, largest first; their mean, SND, is the line.

    Args:
        source: What the agents would do, an estimate that kept its pairs, or distances ``[n, n]``.
        ax: Where to draw; new axes when None.
        distance: A distance or its name, for a behaviour; the family's default when None.
        names: Names of the agents; the behaviour's, or numbers, when None. Where there are many, some are left out.
        groups: ``[n]`` integers, shown by colours.

    Returns:
        The axes.

    Example:
        >>> import torch, graphsnd as gs
        >>> gs.plots.contributions(gs.Deterministic(torch.randn(8, 5, 2))).get_xlabel()
        'most distinctive first'
    """
    given = read_distances(source, distance, names)
    with drawing(ax, 5.9, 3.4) as axes:
        draw_bars(axes, given.contributions, given.names, groups)
        mean = float(given.contributions.mean())
        axes.axhline(
            mean,
            color=shade(INK),
            linewidth=1,
            linestyle=DASHES,
            label=f"mean over agents{': SND' * given.complete} {mean:.3g}",
        )
        axes.legend(loc="upper right")
        axes.set_ylabel(f"mean distance  [{given.unit}]")
        axes.set_ylim(0, 1.15 * given.contributions.max() or 1.0)  # room for the legend
        return axes


def draw_bars(ax: Axes, heights: NDArray[np.float64], names: Sequence[str], groups: Array | None = None) -> None:
    """Draw one bar for each agent, the highest first, with names below."""
    order = np.argsort(-heights, kind="stable")
    colours: str | list[str] = shade(BLUE)
    if groups is not None:
        colours = [group_look(group)[0] for group in to_groups(groups, len(order))[order].tolist()]
    # Bars of thousands of agents would be thinner than a pixel; one filled line of steps is the same picture.
    if len(heights) <= 400:
        ax.bar(np.arange(len(heights)), heights[order], width=0.9 if len(heights) < 60 else 1.0, color=colours)
    else:
        ax.stairs(heights[order], np.arange(len(order) + 1) - 0.5, fill=True, color=shade(BLUE))
    ax.set(xlim=(-0.8, len(heights) - 0.2), ylim=(0, None))
    skipped = tick_names(ax, "x", [names[place] for place in order]) if len(names) else ""
    ax.set_xlabel(f"most distinctive first{skipped}")
    ax.grid(axis="y", color=shade(FAINT))
