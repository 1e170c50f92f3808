"""The distance matrix, as a heatmap and as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsnd.plots.style import INK, MUTED, group_look, new_figure, style
from graphsnd.plots.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Array = Any  # NDArray or Tensor: whatever numpy can read


def draw_heatmap(ax: Axes, matrix: Array, order: NDArray[np.int64] | None = None) -> Any:
    """Draw a symmetric ``[n, n]`` matrix, agents in ``order``; returns the image for a colour bar."""
    values = np.asarray(matrix)
    if order is not None:
        values = values[np.ix_(order, order)]
    # Above a few hundred agents a cell is smaller than a pixel: averaging is honest, nearest neighbour drops agents.
    image = ax.imshow(values, interpolation="nearest" if len(values) <= 400 else "antialiased", vmin=0.0)
    ax.spines[:].set_visible(False)
    return image


def draw_scale(image: Any, label: str, **where: Any) -> None:
    """The colour bar of a heatmap, in ``cax=`` or beside ``ax=``."""
    bar: Any = image.figure.colorbar(image, **where)
    bar.set_label(label)
    bar.outline.set_visible(False)


def draw_groups(
    ax: Axes, groups: Array, order: NDArray[np.int64], *, vertical: bool = False, width: float = 0.03
) -> None:
    """Mark the group of every agent in a thin strip outside the heatmap's left (or upper) edge."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(group_look(int(group))[0]) for group in np.asarray(groups)[order]])
    bounds = (-0.015 - width, 0.0, width, 1.0) if vertical else (0.0, 1.015, 1.0, width)
    strip = ax.inset_axes(bounds)
    strip.imshow(colours[:, None] if vertical else colours[None], aspect="auto", interpolation="nearest")
    strip.set_axis_off()


def draw_tree(ax: Axes, tree: Tree, groups: Array | None = None) -> None:
    """Draw the dendrogram upright; branches whose agents share one group take its colour."""
    from scipy.cluster.hierarchy import dendrogram

    n = len(tree.order)
    members = [{int(g)} for g in np.asarray(groups)] if groups is not None else [{0, 1}] * n
    for left, right, _, _ in tree.links:
        members.append(members[int(left)] | members[int(right)])

    def colour(node: int) -> str:
        return group_look(next(iter(members[node])))[0] if len(members[node]) == 1 else MUTED

    dendrogram(tree.links, ax=ax, no_labels=True, link_color_func=colour)
    for collection in ax.collections:
        collection.set_linewidth(0.9)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlim(0, 10 * n)


def group_legend(
    target: Any, names: Sequence[str], counts: Sequence[int] | None = None, more: Sequence[Any] = (), **where: Any
) -> None:
    """A legend of groups, and of whatever ``more`` holds, on an axes or a figure."""
    from matplotlib.lines import Line2D

    handles = []
    for group, name in enumerate(names):
        colour, marker = group_look(group)
        label = name if counts is None else f"{name} ({counts[group]})"
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, label=label))
    target.legend(handles=[*handles, *more], handletextpad=0.2, **where)


def heatmap_figure(
    matrix: torch.Tensor,
    tree: Tree,
    *,
    groups: torch.Tensor | None = None,
    group_names: Sequence[str] = (),
    unit: str = "action units",
    title: str = "Who acts like whom",
) -> Figure:
    """Heatmap ordered by the tree, with the tree above it and the groups along two sides.

    Args:
        matrix: Distances ``[n, n]``.
        tree: Their clustering.
        groups: Known group of every agent ``[n]``; it is only marked, never used for the order.
        group_names: Names for the legend.
        unit: Unit of the distances.
        title: Title.
    """
    with style():
        # Placed by hand: constrained layout does not keep the tree, the strips and a square heatmap aligned.
        figure = new_figure(5.9, 6.53, layout=None)
        lower = figure.add_axes((0.115, 0.122, 0.715, 0.715 * 5.9 / 6.53))
        image = draw_heatmap(lower, matrix, tree.order)
        upper = lower.inset_axes((0.0, 1.06 if groups is not None else 1.015, 1.0, 0.2))  # the same leaves, aligned
        draw_tree(upper, tree, groups)
        upper.set_ylabel("merge at")
        upper.set_title(title)
        upper.yaxis.set_major_locator(_few_ticks())
        if groups is not None:
            draw_groups(lower, groups, tree.order, vertical=True)
            draw_groups(lower, groups, tree.order)
            group_legend(figure, group_names, ncols=4, loc="lower center", bbox_to_anchor=(0.46, 0.01))
        lower.set_xlabel("agent, in the order of the tree")
        lower.set_yticks([])
        lower.set_ylabel("agent, in the same order", labelpad=22 if groups is not None else 4)
        draw_scale(image, f"behavioural distance d(i, j)  [{unit}]", cax=lower.inset_axes((1.03, 0.0, 0.03, 1.0)))
        return figure


def tree_figure(
    tree: Tree,
    *,
    groups: torch.Tensor | None = None,
    group_names: Sequence[str] = (),
    exact: float | None = None,
    unit: str = "action units",
    title: str = "Agents merged by how alike they act",
) -> Figure:
    """The dendrogram alone; ``exact`` marks SND, the mean distance, across it."""
    with style():
        figure = new_figure(6.0, 4.1)
        ax = figure.subplots()
        draw_tree(ax, tree, groups)
        ax.grid(axis="y")
        ax.set_title(title)
        ax.set_xlabel(f"{len(tree.order)} agents, one leaf each")
        ax.set_ylabel(f"mean distance between branches  [{unit}]")
        if exact is not None:
            line = ax.axhline(exact, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"SND, {exact:.3f}")
        more = [] if exact is None else [line]
        counts = None if groups is None else torch.bincount(groups, minlength=len(group_names)).tolist()
        group_legend(figure, group_names, counts, more, ncols=3, loc="outside lower center")
        return figure


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(3)
