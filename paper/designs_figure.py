"""The rows of the experiment on designs, and their figure: error by distances and by policy evaluations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, StrMethodFormatter

from benchmarks.designs import DesignErrors
from graphsnd.plots.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILLION, styled_figure


class Role(str, Enum):
    """Why a design takes part."""

    BERNOULLI = "bernoulli"  # the paper's design
    HORVITZ_THOMPSON = "bernoulli, HT"
    UNIFORM = "uniform"
    REGULAR = "regular"
    RING = "ring"
    MATCHING = "matching"
    AGENTS = "agents"
    FEWEST_DISTANCES = "fewest distances"  # the fewest that are as accurate as the paper's design
    FEWEST_EVALUATIONS = "fewest evaluations"


# Label of each design in the figure, colour, fill and marker.
LOOKS = {
    Role.FEWEST_DISTANCES: ("fewest redrawn pairs that are as good", BLUE, "white", "o"),
    Role.FEWEST_EVALUATIONS: ("fewest random agents that are as good", GREEN, "white", "^"),
    Role.HORVITZ_THOMPSON: ("one Bernoulli graph, Horvitz-Thompson", VERMILLION, "white", "s"),
    Role.BERNOULLI: ("one Bernoulli-0.1 graph (the paper)", VERMILLION, VERMILLION, "s"),
    Role.UNIFORM: ("one uniform graph", PURPLE, PURPLE, "D"),
    Role.REGULAR: ("one random regular graph", ORANGE, ORANGE, "P"),
    Role.RING: ("ring redrawn at every observation", BLUE, BLUE, "o"),
    Role.MATCHING: ("matching redrawn at every observation", SKY, SKY, "X"),
    Role.AGENTS: ("agents redrawn at every observation", GREEN, GREEN, "^"),
}


@dataclass(frozen=True)
class Row(DesignErrors):
    """One design on one team."""

    role: Role
    exact: float  # root mean square error relative to SND, from the variance of the design


@dataclass(frozen=True)
class TeamRows:
    """All designs on one team."""

    world: str
    trained_seed: int | None  # None for an untrained team
    n: int
    observations: int
    snd: float
    draws: int
    designs: tuple[Row, ...]

    def row(self, role: Role) -> Row:
        """Return the row of the design with a role."""
        return next(row for row in self.designs if row.role is role)

    def error_ratio(self, role: Role) -> float:
        """Return a design's error over that of the paper's Bernoulli graph."""
        return self.row(role).rmse / self.row(Role.BERNOULLI).rmse

    def count(self, what: str) -> int:
        """Return the number of ``"distances"`` over all pairs, or of ``"evaluations"`` of all policies."""
        return self.observations * (math.comb(self.n, 2) if what == "distances" else self.n)

    def share(self, role: Role, what: str) -> float:
        """Return the share of all distances, or evaluations, that a design takes."""
        return float(getattr(self.row(role), what) / self.count(what))


@dataclass(frozen=True)
class Evaluations:
    """Times of all policies and of all pairs on all observations, and the agents that a sparse graph touches."""

    n: int
    seconds: dict[str, list[float]]  # seconds of every trial for "answers" (of the policies) and for "pairs"
    touched: list[float]  # share of 100 agents that have an edge in a Bernoulli-0.1 graph


@dataclass(frozen=True)
class Data:
    """What the figure draws."""

    teams: tuple[TeamRows, ...]
    evaluations: Evaluations


def draw_designs(data: Data) -> Figure:
    """Draw a column for each kind of team: error by the share of distances, and by the share of evaluations."""
    groups: dict[str, list[TeamRows]] = {}
    for team in data.teams:
        kind = "trained" if team.trained_seed is not None else f"untrained, {team.world}"
        groups.setdefault(f"{team.n} agents, {kind}", []).append(team)
    with styled_figure(4.6 * max(2, len(groups)), 8.6) as figure:
        axes = figure.subplots(2, len(groups), sharey=True, squeeze=False)
        for column, (title, teams) in enumerate(groups.items()):
            for row, what in enumerate(("distances", "evaluations")):
                _draw_panel(axes[row][column], teams, what)
            axes[0][column].set_title(title)
        for row in axes:
            row[0].set_ylabel(f"relative error, RMS over {data.teams[0].draws} draws  [%]")
        handles = dict(zip(*reversed(axes[0][0].get_legend_handles_labels()), strict=True))
        labels = [label for label, *_ in LOOKS.values() if label in handles]
        shown = [handles[label] for label in labels], labels
        figure.legend(*shown, ncols=2 if len(groups) < 3 else 3, loc="outside lower center")
        return figure


def _draw_panel(ax: Axes, teams: list[TeamRows], what: str) -> None:
    for k, team in enumerate(teams):
        whole = team.count(what)
        ax.axhline(100 * team.row(Role.BERNOULLI).exact, color=VERMILLION, linewidth=0.9, linestyle=":", zorder=1)
        for row in team.designs:
            label, colour, face, marker = LOOKS[row.role]
            x, y = team.share(row.role, what), 100 * row.rmse
            low, high = (100 * end for end in row.rmse_interval)
            ax.errorbar(x, y, [[y - low], [high - y]], color=colour, elinewidth=1.1, zorder=2)
            # The paper's marker is larger, so that it stays visible behind designs with the same error.
            large = 10 if row.role is Role.BERNOULLI else 6.5
            look: dict[str, Any] = {"color": colour, "markerfacecolor": face, "markersize": large, "zorder": 3}
            ax.plot(x, y, marker, label=label if k == 0 else None, **look)
            if row.exact:  # black bars
                ax.plot(x, 100 * row.exact, "_", color=INK, markersize=9, markeredgewidth=1.1, zorder=4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.relim()
    ax.autoscale_view()
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.set_xlabel(f"share of {whole:,} {'distances' if what == 'distances' else 'policy evaluations'}")
    ax.grid()
