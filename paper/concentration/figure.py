"""The picture of concentration: measured errors below two radii, against the number of sampled pairs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.style import ESTIMATE, GREEN, INK, MUTED, ORANGE, TRUTH, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(data: dict[str, Any]) -> Figure:
    """A panel for each checkpoint: 95th percentile and largest error, Hoeffding, Serfling, and the exact spread."""
    with style():
        drawing = new_figure(10.4, 4.5)
        axes = drawing.subplots(1, 2)
        for ax, team in zip(axes, data["teams"], strict=True):
            _panel(ax, team, data["pairs"])
        axes[0].set_ylabel("|Graph-SND - SND|  [action units]")
        handles, labels = axes[0].get_legend_handles_labels()
        title = f"{data['draws']:,} draws of each size, {data['agents']} agents, {data['pairs']} pairs"
        drawing.legend(handles, labels, loc="outside lower center", ncols=3, title=title)
        return drawing


def _panel(ax: Axes, team: dict[str, Any], pairs: int) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    cells = team["cells"]
    m = np.asarray([cell["m"] for cell in cells])
    column = {key: np.asarray([cell[key] for cell in cells]) for key in cells[0]}
    ax.plot(m, column["hoeffding"], color=TRUTH, marker="^", label="Hoeffding's radius")
    ax.plot(m, column["serfling"], color=ORANGE, marker="v", label="Serfling's radius")
    ax.plot(m, column["largest"], "x", color=MUTED, label="largest error of all draws")
    low, high = column["quantile"] - column["quantile_low"], column["quantile_high"] - column["quantile"]
    label = "95% of the errors are below, with interval"
    ax.errorbar(m, column["quantile"], [low, high], fmt="o", color=ESTIMATE, capsize=3, label=label, zorder=3)
    fine = np.geomspace(m[0], m[-1], 200)
    spread = float(np.std(team["distances"], ddof=1))
    exact = 1.96 * spread * np.sqrt((1 - fine / pairs) / fine)
    ax.plot(fine, exact, color=ESTIMATE, linewidth=1.2, label=r"$1.96\, S \sqrt{(1 - m/N)/m}$, no fit", zorder=2)
    start = exact[0] * math.sqrt(m[0]) / np.sqrt(fine)
    ax.plot(fine, start, color=GREEN, linewidth=1.1, linestyle=(0, (4, 2)), label=r"slope $-1/2$", zorder=1)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(m, [f"{each}\n{each / pairs:.0%}" for each in m])
    ax.set_xlabel("sampled pairs m, and their share")
    ax.set_title(f"Iteration {team['iteration']},  SND {team['snd']:.4f}", color=INK)
    ax.grid()
