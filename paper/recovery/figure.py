"""The picture of recovery: two values that are the same, and a difference that is rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import ESTIMATE, MUTED, TRUTH, new_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RESOLUTION = 1e-12  # of the paper's figure


def figure(data: dict[str, Any]) -> Figure:
    """Both values at both checkpoints, their difference, and two clusters as fixed and random graphs see them."""
    with style():
        drawing = new_figure(12.4, 3.8)
        values, errors, clusters = drawing.subplots(1, 3, width_ratios=(1, 1.15, 1))
        _values(values, data["teams"])
        _errors(errors, data["teams"])
        _clusters(clusters, data["teams"][-1]["clusters"])
        return drawing


def _values(ax: Axes, teams: list[dict[str, Any]]) -> None:
    for place, team in enumerate(teams):
        route = next(route for route in team["routes"] if route["route"] == "direct")
        for side, (name, colour, hatch) in enumerate((("snd", TRUTH, ""), ("graph_snd", ESTIMATE, "//"))):
            at = place + 0.4 * side - 0.2
            label = ("SND", "Graph-SND on $K_4$")[side] if place == 0 else None
            ax.bar(at, route[name], 0.36, color=colour, hatch=hatch, edgecolor="white", linewidth=0, label=label)
            ax.annotate(f"{route[name]:.4f}", (at, route[name]), (0, 3), textcoords="offset points", ha="center")
    ax.set_xticks(range(len(teams)), [f"iteration {team['iteration']}" for team in teams])
    ax.set_ylabel("diversity  [action units]")
    ax.set_title("Values")
    ax.margins(y=0.12)
    ax.legend(loc="upper left")


def _errors(ax: Axes, teams: list[dict[str, Any]]) -> None:
    marks = {"matrix": "s", "direct": "o"}
    kernels = list(dict.fromkeys(route["kernel"] for route in teams[0]["routes"]))
    for place, team in enumerate(teams):
        for route in team["routes"]:
            shift = (kernels.index(route["kernel"]) - 0.5) * 0.3 + (0.07 if route["route"] == "direct" else -0.07)
            error = abs(route["graph_snd"] - route["snd"])
            colour = (ESTIMATE, MUTED)[kernels.index(route["kernel"]) % 2]
            label = f"{route['route']}, {route['kernel']} kernel" if place == 0 else None
            ax.plot(place + shift, error, marks[route["route"]], color=colour, markersize=7, label=label)
    ax.axhline(RESOLUTION, color=TRUTH, linestyle="--", linewidth=1)
    ax.annotate(
        "resolution of the paper's figure", (-0.45, RESOLUTION), (0, 4), textcoords="offset points", color=TRUTH
    )
    ax.set_yscale("symlog", linthresh=1e-18)
    ax.set_ylim(-4e-19, 1e-10)
    ax.set_xlim(-0.5, len(teams) - 0.5)
    ax.set_xticks(range(len(teams)), [f"iteration {team['iteration']}" for team in teams])
    ax.set_ylabel("|Graph-SND - SND|  [action units]")
    ax.set_title("Difference")
    ax.grid(axis="y")
    ax.legend(loc="center left", bbox_to_anchor=(0.0, 0.58), frameon=True, edgecolor="none")


def _clusters(ax: Axes, found: dict[str, float]) -> None:
    ax.axhline(1, color=TRUTH, linestyle="--", linewidth=1.2)
    ax.annotate("SND, all pairs", (-0.45, 1), (0, -13), textcoords="offset points", color=TRUTH)
    ax.plot(0, found["share"], "s", color=MUTED, markersize=8)
    ax.errorbar(1, found["sampled"], found["half_width"], fmt="o", color=ESTIMATE, markersize=7, capsize=5)
    for place, name in enumerate(("share", "sampled")):
        ax.annotate(f"{found[name]:.2f}", (place, found[name]), (0, 14), textcoords="offset points", ha="center")
    ax.set_xticks([0, 1], ["edges within\nclusters only", "Bernoulli graphs\nmean, 99% interval"])
    ax.set_xlim(-0.5, 1.5)
    ax.set_ylim(0, 1.25)
    ax.set_ylabel("Graph-SND / SND")
    ax.set_title("Two clusters of agents")
