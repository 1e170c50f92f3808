"""The picture of the designs: error against distances and against policy evaluations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsnd.plots.style import BLUE, GREEN, INK, MUTED, ORANGE, PURPLE, SKY, VERMILLION, new_figure, style
from paper.designs.numbers import BERNOULLI, bernoulli

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# How a design's name begins or what its role is, what it is called, colour, fill and marker.
LOOKS = (
    ("fewest distances", "fewest redrawn pairs that are as good", BLUE, "white", "o"),
    ("fewest evaluations", "fewest random agents that are as good", GREEN, "white", "^"),
    ("fixed bernoulli:0.1, HT", "one Bernoulli graph, Horvitz-Thompson", VERMILLION, "white", "s"),
    ("fixed bernoulli", "one Bernoulli-0.1 graph (the paper)", VERMILLION, VERMILLION, "s"),
    ("fixed uniform", "one uniform graph", PURPLE, PURPLE, "D"),
    ("fixed regular", "one random regular graph", ORANGE, ORANGE, "P"),
    ("fresh circulant", "ring redrawn at every observation", BLUE, BLUE, "o"),
    ("fresh matching", "matching redrawn at every observation", SKY, SKY, "X"),
    ("", "agents redrawn at every observation", GREEN, GREEN, "^"),
)


def designs_figure(data: dict[str, Any]) -> Figure:
    """A column for each kind of team: error against the share of distances, and against the share of evaluations.

    Args:
        data: Of the experiment.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for team in data["teams"]:
        groups.setdefault(_group(team), []).append(team)
    with style():
        figure = new_figure(4.6 * max(2, len(groups)), 8.6)
        axes = figure.subplots(2, len(groups), sharey=True, squeeze=False)
        for column, (title, teams) in enumerate(groups.items()):
            for row, what in enumerate(("distances", "evaluations")):
                _panel(axes[row][column], teams, what)
            axes[0][column].set_title(title)
        for row in axes:
            row[0].set_ylabel(f"relative error, RMS over {data['teams'][0]['draws']} draws  [%]")
        handles, labels = axes[0][0].get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda k: [look[1] for look in LOOKS].index(labels[k]))
        shown = [handles[k] for k in order], [labels[k] for k in order]
        figure.legend(*shown, ncols=2 if len(groups) < 3 else 3, loc="outside lower center")
        return figure


def _group(team: dict[str, Any]) -> str:
    world = team["team"].partition(",")[0]
    what = "trained" if world == "trained" else f"untrained, {world}"
    return f"{team['n']} agents, {what}"


def _panel(ax: Axes, teams: list[dict[str, Any]], what: str) -> None:
    from matplotlib.ticker import FuncFormatter, StrMethodFormatter

    for k, team in enumerate(teams):
        n = team["n"]
        whole = team["observations"] * (n * (n - 1) // 2 if what == "distances" else n)
        ax.axhline(100 * bernoulli(team)["exact"], color=VERMILLION, linewidth=0.9, linestyle=":", zorder=1)
        for row in team["designs"]:
            _, label, colour, face, marker = _look(row)
            x, y = row[what] / whole, 100 * row["rmse"]
            low, high = (100 * end for end in row["rmse_interval"])
            ax.errorbar(x, y, [[y - low], [high - y]], color=colour, elinewidth=1.1, zorder=2)
            # The paper's is larger, so that it is seen behind others that are as good.
            large = 10 if row["name"] == BERNOULLI else 6.5
            look: dict[str, Any] = {"color": colour, "markerfacecolor": face, "markersize": large, "zorder": 3}
            ax.plot(x, y, marker, label=label if k == 0 else None, **look)
            if row["exact"]:
                ax.plot(x, 100 * row["exact"], "_", color=INK, markersize=9, markeredgewidth=1.1, zorder=4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.relim()
    ax.autoscale_view()
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.set_xlabel(f"share of {whole:,} {'distances' if what == 'distances' else 'policy evaluations'}")
    ax.grid()
    if what == "evaluations":
        ax.annotate("black bars: exact", (0.02, 0.02), xycoords="axes fraction", fontsize=8.5, color=MUTED)


def _look(row: dict[str, Any]) -> tuple[str, str, str, str, str]:
    return next(
        look for look in LOOKS if row["role"] == look[0] or (not row["role"] and row["name"].startswith(look[0]))
    )
