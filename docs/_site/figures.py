"""Figures of the pages, drawn by the library when the site is built, once for light and once for dark pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from docutils import nodes
from docutils.parsers.rst import Directive

import graphsnd as gs
from graphsnd.control import DiCo
from graphsnd.plots.style import BLUE, GREEN, MUTED, VERMILLION, shade

FOLDER = Path(__file__).parents[1] / "images" / "drawn"
PHONE = 4.0  # inches wide: as wide as a phone, and a third of a desktop's column


def pipeline_distances(ax: Any) -> None:
    """Draw all distances of the demo's team."""
    team = gs.plots.example_team(100, 256)
    gs.plots.heatmap(team.behavior, ax=ax, groups=team.roles)
    ax.set_title("Distances of all pairs")


def pipeline_estimate(ax: Any) -> None:
    """Draw the estimate from a tenth of the pairs, beside the exact value."""
    team = gs.plots.example_team(100, 256)
    gs.plots.estimate(gs.measure(team.behavior, design="bernoulli:0.1"), ax=ax)
    ax.axvline(float(gs.snd(team.behavior)), color=shade(VERMILLION), linestyle="--", label="all pairs")
    ax.set_title("SND from a tenth of the pairs")


def observations(ax: Any) -> None:
    """Draw SND and the mean distance on own observations of teams that differ more and more."""
    generator = torch.Generator().manual_seed(0)
    shared, own = torch.randn(4, 2, generator=generator), 0.5 * torch.randn(5, 4, 2, generator=generator)
    seen = torch.randn(5, 400, 4, generator=generator)
    strengths = torch.linspace(0, 1, 10)
    snds, others = [], []
    for strength in strengths:
        weights = shared + strength * own
        snds.append(float(gs.snd(gs.Deterministic(torch.einsum("of,nfa->ona", seen.flatten(0, 1), weights)))))
        answers = torch.einsum("nof,nfa->ona", seen, weights)
        others.append(float(gs.snd(gs.Deterministic(answers))))
    ax.plot(strengths, others, color=shade(MUTED), marker="s", label="own observations")
    ax.plot(strengths, snds, color=shade(BLUE), marker="o", label="shared observations: SND")
    ax.set(xlabel="how much the agents' networks differ", ylabel="mean distance", ylim=(0, None))
    ax.legend(loc="center right")


def crowds() -> tuple[torch.Tensor, gs.Behavior]:
    """Return the team of the page on local measures: places and actions of two crowds."""
    torch.manual_seed(0)
    places = torch.cat([torch.randn(20, 2) * 0.3, torch.randn(20, 2) * 0.3 + 4])
    return places, gs.Deterministic(torch.cat([torch.zeros(20, 1), torch.ones(20, 1)]).expand(50, 40, 1))


def draw_pairs(ax: Any, graph: gs.Graph, title: str) -> None:
    """Draw agents where they are, with the pairs of a graph: those that differ in colour."""
    places, team = crowds()
    for (i, j), distance in zip(graph.edges.tolist(), gs.pairwise(team, graph=graph).tolist(), strict=True):
        colour = shade(VERMILLION if distance else MUTED)
        ax.plot(*places[[i, j]].T, color=colour, linewidth=0.8, alpha=0.6, zorder=1)
    for crowd, colour, marker in ((slice(0, 20), BLUE, "o"), (slice(20, 40), GREEN, "s")):
        ax.scatter(*places[crowd].T, color=shade(colour), marker=marker, s=24, zorder=2)
    value = float(gs.graph_snd(team, graph))
    ax.set_title(f"{title}: {value:.2g}")
    ax.set(xlabel="position", ylabel="position", aspect="equal")


def local_knn(ax: Any) -> None:
    """Draw neighbours."""
    draw_pairs(ax, gs.graphs.knn(crowds()[0], 5), "nearest neighbours")


def local_sample(ax: Any) -> None:
    """Draw random pairs."""
    draw_pairs(ax, gs.graphs.bernoulli(40, 0.2, seed=0), "random pairs")


def audit(ax: Any) -> None:
    """Draw what a controller that reads twice the diversity believes, and what is there."""
    dico, generator, believed, there = DiCo(target=0.3, tau=0.05), torch.Generator().manual_seed(0), [], []
    state = dico.initial()
    for _ in range(150):
        deviations = 0.2 * torch.randn(64, 5, 2, generator=generator)
        scale, state, _ = dico.step(2 * deviations, state, generator=generator)
        believed.append(float(scale * gs.snd(gs.Deterministic(2 * deviations))))
        there.append(float(scale * gs.snd(gs.Deterministic(deviations))))
    ax.plot(believed, color=shade(MUTED), label="estimate x scale")
    ax.plot(there, color=shade(BLUE), label="audit")
    ax.axhline(0.3, color=shade(VERMILLION), linestyle="--", label="target")
    ax.set(xlabel="step", ylabel="diversity", ylim=(0, 0.4))
    ax.legend(loc="lower right")


FIGURES: dict[str, tuple[Callable[[Any], None], float]] = {  # each with its height in inches
    "pipeline-distances": (pipeline_distances, 4.2),
    "pipeline-estimate": (pipeline_estimate, 4.2),
    "observations": (observations, 3.0),
    "local-knn": (local_knn, 4.0),
    "local-sample": (local_sample, 4.0),
    "audit": (audit, 3.0),
}


def draw(app: Any) -> None:
    """Write every figure, light and dark."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (function, height) in FIGURES.items():
        for theme in ("light", "dark"):
            with gs.plots.theme(theme):
                rcParams["svg.hashsalt"] = name
                figure = Figure(figsize=(PHONE, height), layout="constrained")
                function(figure.add_subplot())
                path = FOLDER / f"{name}-{theme}.svg"
                figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})


class Drawn(Directive):
    """A figure of ``FIGURES`` by its name, in the colours of the page; the content says what it shows."""

    required_arguments, has_content = 1, True

    def run(self) -> list[Any]:
        """Return both images, of which the theme hides one."""
        depth = self.state.document.settings.env.docname.count("/")
        path, alt = f"{'../' * depth}images/drawn/{self.arguments[0]}", " ".join(self.content)
        return [
            nodes.image(uri=f"{path}-{theme}.svg", alt=alt, classes=[f"only-{theme}"]) for theme in ("light", "dark")
        ]


def setup(app: Any) -> dict[str, bool]:
    """Draw them before pages are read."""
    app.add_directive("drawn", Drawn)
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
