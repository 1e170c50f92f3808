"""Whose diversity it is: one bar for each agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphsnd.plots.matrix import group_legend
from graphsnd.plots.style import BLUE, INK, group_look, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_contributions(ax: Axes, values: Any, groups: Any | None = None, *, mean: float | None = None) -> None:
    """Mean distance of every agent to the others, largest first; a line at ``mean``."""
    heights = np.asarray(values)
    order = np.argsort(-heights, kind="stable")
    labels = None if groups is None else np.asarray(groups)[order]
    colours = BLUE if labels is None else [group_look(int(group))[0] for group in labels]
    # Bars of thousands of agents would be thinner than a pixel; a filled step line is the same picture.
    if len(heights) <= 400:
        ax.bar(np.arange(len(heights)), heights[order], width=1.0, color=colours, linewidth=0)
    else:
        ax.fill_between(np.arange(len(heights)), heights[order], step="mid", color=BLUE, linewidth=0)
    if mean is not None:
        ax.axhline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)), label=f"mean over agents {mean:.3g}")
        ax.legend(loc="upper right")
    ax.set_xlim(-0.8, len(heights) - 0.2)
    ax.set_ylim(bottom=0)
    ax.grid(axis="y")


def contributions_figure(
    values: torch.Tensor,
    *,
    groups: torch.Tensor | None = None,
    group_names: Sequence[str] = (),
    unit: str = "action units",
    title: str = "How far each agent is from its team",
) -> Figure:
    """Bars of :func:`draw_contributions`, coloured by group."""
    with style():
        figure = new_figure(6.0, 3.6)
        ax = figure.subplots()
        draw_contributions(ax, values, groups, mean=float(values.mean()))
        ax.set_title(title)
        ax.set_xlabel("agents, most distinctive first")
        ax.set_ylabel(f"mean distance to the others  [{unit}]")
        if groups is not None:
            group_legend(figure, group_names, ncols=4, loc="outside lower center")
        return figure
