"""The distance matrix in pictures: as a heatmap, as a tree, and as one bar for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsnd.plots.clustering import Tree
from graphsnd.plots.study import Study
from graphsnd.plots.style import BLUE, INK, MUTED, UNIT, group_look, styled_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

Array = Any  # NDArray or Tensor: whatever numpy can read
DASHES = (0, (4, 3))


def draw_heatmap(ax: Axes, matrix: Array, order: NDArray[np.int64] | None = None) -> Any:
    """Draw a symmetric ``[n, n]`` matrix, agents in ``order``; returns the image for a colour bar."""
    values = np.asarray(matrix)
    if order is not None:
        values = values[np.ix_(order, order)]
    # The colour map is `image.cmap` of graphsnd.mplstyle: edges of graphs are drawn in the same colours.
    # Above a few hundred agents a cell is smaller than a pixel: averaging is honest, nearest neighbour drops agents.
    image = ax.imshow(values, interpolation="nearest" if len(values) <= 400 else "antialiased", vmin=0.0)
    ax.spines[:].set_visible(False)
    return image


def draw_scale(image: Any, label: str, **where: Any) -> None:
    """Draw the colour bar of a heatmap, in ``cax=`` or beside ``ax=``."""
    bar: Any = image.figure.colorbar(image, **where)
    bar.set_label(label)
    bar.outline.set_visible(False)


def draw_groups(ax: Axes, groups: Array, order: NDArray[np.int64], *, vertical: bool = False) -> None:
    """Mark the group of each agent in a thin strip outside the heatmap's left (or upper) edge."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(group_look(int(group))[0]) for group in np.asarray(groups)[order]])
    strip = ax.inset_axes((-0.015 - 0.03, 0.0, 0.03, 1.0) if vertical else (0.0, 1.015, 1.0, 0.03))
    strip.imshow(colours[:, None] if vertical else colours[None], aspect="auto", interpolation="nearest")
    strip.set_axis_off()


def draw_tree(ax: Axes, tree: Tree, groups: Array) -> None:
    """Draw the dendrogram upright; branches whose agents share one group take its colour."""
    from scipy.cluster.hierarchy import dendrogram

    members = [{int(group)} for group in np.asarray(groups)]
    for left, right, _, _ in tree.links:
        members.append(members[int(left)] | members[int(right)])

    def colour(node: int) -> str:
        return group_look(next(iter(members[node])))[0] if len(members[node]) == 1 else MUTED

    dendrogram(tree.links, ax=ax, no_labels=True, link_color_func=colour)
    for collection in ax.collections:
        collection.set_linewidth(0.9)
    ax.spines["bottom"].set_visible(False)
    ax.set_xlim(0, 10 * len(tree.order))


def draw_contributions(ax: Axes, values: Array, groups: Array | None = None) -> None:
    """Draw the mean distance of each agent to the others, largest first."""
    heights = np.asarray(values)
    order = np.argsort(-heights, kind="stable")
    colours = BLUE if groups is None else [group_look(int(group))[0] for group in np.asarray(groups)[order]]
    # Bars of thousands of agents would be thinner than a pixel; a filled step line is the same picture.
    if len(heights) <= 400:
        ax.bar(np.arange(len(heights)), heights[order], width=1.0, color=colours, linewidth=0)
    else:
        ax.fill_between(np.arange(len(heights)), heights[order], step="mid", color=BLUE, linewidth=0)
    ax.set(xlim=(-0.8, len(heights) - 0.2), ylim=(0, None))
    ax.grid(axis="y")


def group_legend(target: Any, names: Sequence[str], more: Sequence[Any] = (), **where: Any) -> None:
    """Add a legend of groups, and of whatever ``more`` holds, to an axes or a figure."""
    from matplotlib.lines import Line2D

    handles = []
    for group, name in enumerate(names):
        colour, marker = group_look(group)
        handles.append(Line2D([], [], color=colour, marker=marker, linestyle="", markersize=6, label=name))
    target.legend(handles=[*handles, *more], handletextpad=0.2, **where)


def heatmap_figure(study: Study) -> Figure:
    """Return the heatmap ordered by the tree, with the tree above it and the roles along two sides.

    The roles are only marked, never used for the order.
    """
    from matplotlib.ticker import MaxNLocator

    roles, order = study.team.roles, study.tree.order
    with styled_figure(5.9, 6.53, layout=None) as figure:
        # Placed by hand: constrained layout does not keep the tree, the strips and a square heatmap aligned.
        lower = figure.add_axes((0.115, 0.122, 0.715, 0.715 * 5.9 / 6.53))
        image = draw_heatmap(lower, study.matrix, order)
        upper = lower.inset_axes((0.0, 1.06, 1.0, 0.2))  # the same leaves, aligned
        draw_tree(upper, study.tree, roles)
        upper.set(title="Who acts like whom", ylabel="merge at")
        upper.yaxis.set_major_locator(MaxNLocator(3))
        draw_groups(lower, roles, order, vertical=True)
        draw_groups(lower, roles, order)
        group_legend(figure, study.team.role_names, ncols=4, loc="lower center", bbox_to_anchor=(0.46, 0.01))
        lower.set(xlabel="agent, in the order of the tree", yticks=[])
        lower.set_ylabel("agent, in the same order", labelpad=22)
        draw_scale(image, f"behavioural distance d(i, j)  [{UNIT}]", cax=lower.inset_axes((1.03, 0.0, 0.03, 1.0)))
        return figure


def tree_figure(study: Study) -> Figure:
    """Return the dendrogram alone, with SND, the mean distance, marked across it."""
    exact, names = study.exact.estimate.value, study.team.role_names
    with styled_figure(6.0, 4.1) as figure:
        ax = figure.subplots()
        draw_tree(ax, study.tree, study.team.roles)
        ax.grid(axis="y")
        ax.set(title="Agents merged by how alike they act", xlabel=f"{len(study.tree.order)} agents, one leaf each")
        ax.set_ylabel(f"mean distance between branches  [{UNIT}]")
        line = ax.axhline(exact, color=INK, linewidth=1, linestyle=DASHES, label=f"SND, {exact:.3f}")
        counts = torch.bincount(study.team.roles, minlength=len(names)).tolist()
        counted = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
        group_legend(figure, counted, [line], ncols=3, loc="outside lower center")
        return figure


def contributions_figure(study: Study) -> Figure:
    """Return the bars of :func:`draw_contributions`, coloured by role, with a line at their mean."""
    mean = float(study.contributions.mean())
    with styled_figure(6.0, 3.6) as figure:
        ax = figure.subplots()
        draw_contributions(ax, study.contributions, study.team.roles)
        ax.axhline(mean, color=INK, linewidth=1, linestyle=DASHES, label=f"mean over agents {mean:.3g}")
        ax.legend(loc="upper right")
        ax.set(title="How far each agent is from its team", xlabel="agents, most distinctive first")
        ax.set_ylabel(f"mean distance to the others  [{UNIT}]")
        group_legend(figure, study.team.role_names, ncols=4, loc="outside lower center")
        return figure
