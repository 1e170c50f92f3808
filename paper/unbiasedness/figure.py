"""The picture of unbiasedness: mean estimates around SND at both checkpoints, and the variance against p."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.plots.style import BLUE, ESTIMATE, GREEN, MUTED, TRUTH, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def figure(data: dict[str, Any]) -> Figure:
    """Mean of the estimates relative to SND with 95% intervals, a panel for each checkpoint; then their variance."""
    with style():
        drawing = new_figure(12.4, 4.2)
        left, middle, right = drawing.subplots(1, 3)
        middle.sharey(left)
        for ax, team in zip((left, middle), data["teams"], strict=True):
            _means(ax, team, (data["draws"], data["long"]))
        left.set_ylabel("mean estimate / SND")
        _variances(right, data["teams"])
        drawing.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3)
        return drawing


def _means(ax: Axes, team: dict[str, Any], draws: tuple[int, int]) -> None:
    cells, exact = team["cells"], team["snd"]
    ax.axhline(1, color=TRUTH, linestyle="--", linewidth=1.2, label="SND, all pairs")
    looks = (("o", ESTIMATE, -0.1, cells), ("s", GREEN, 0.14, [cell["long"] for cell in cells]))
    for count, (marker, colour, shift, found) in zip(draws, looks, strict=True):
        at = np.arange(len(found)) + shift
        means, half = (
            np.asarray(each) / exact for each in zip(*((c["mean"], 1.96 * c["se"]) for c in found), strict=True)
        )
        label = f"mean of {count:,} graphs, 95% interval"
        ax.errorbar(at, means, half, fmt=marker, markersize=5, color=colour, capsize=3, label=label)
    for x, cell in enumerate(cells):
        label, top = f"z = {cell['z']:+.2f}", max(cell["high"] / exact, 1.0)
        ax.annotate(label, (x, top), (0, 4), textcoords="offset points", ha="center", fontsize=9)
    ax.set_xticks(range(len(cells)), [f"{cell['p']:g}" for cell in cells])
    ax.set_xlim(-0.6, len(cells) - 0.4)
    ax.margins(y=0.3)
    ax.set_xlabel("probability p of a pair")
    ax.set_title(f"Iteration {team['iteration']},  SND {exact:.4f}")


def _variances(ax: Axes, teams: list[dict[str, Any]]) -> None:
    p = np.linspace(0.08, 0.82, 200)
    ax.plot(p, (1 - p) / p, color=TRUTH, linewidth=1.4, label="exact: $(1-p)/p$")
    ax.plot(p, 1 / p, color=MUTED, linewidth=1.2, linestyle=(0, (4, 2)), label="the paper: $1/p$")
    for team, marker, colour in zip(teams, "os", (BLUE, GREEN), strict=True):
        for place, cell in enumerate(team["cells"]):
            unit = cell["exact_variance"] * cell["p"] / (1 - cell["p"])
            label = f"measured, iteration {team['iteration']}" if place == 0 else None
            half = 1.96 * cell["variance_ratio_error"] * cell["exact_variance"] / unit
            # Open and larger, so that two checkpoints that agree are both seen.
            look: dict[str, Any] = {"markerfacecolor": "none", "markersize": 9} if marker == "s" else {"markersize": 5}
            ax.errorbar(
                cell["p"], cell["variance"] / unit, half, fmt=marker, color=colour, capsize=3, label=label, **look
            )
    ax.set_yscale("log")
    ax.set_xlabel("probability p of a pair")
    ax.set_ylabel(r"variance $\cdot\ |P|^2 /\ \sum d^2$")
    ax.set_title("Variance")
    ax.grid()
    ax.legend(loc="lower left")
