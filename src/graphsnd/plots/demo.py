"""Everything the demo writes: its figures, and a page that tells what the library does on one team."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from graphsnd.arguments import checked
from graphsnd.plots.page import HtmlTable, Picture, Section, render_page
from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.readme_figure import overview_figure
from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import (
    contributions_figure,
    estimates_figure,
    graph_figure,
    graphs_figure,
    heatmap_figure,
)
from graphsnd.plots.style import DPI, group_look, save_png
from graphsnd.plots.tables import ESTIMATE_COLUMNS, estimate_rows
from graphsnd.storage import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

README_DPI = 120  # 1800 pixels across: twice the width of a README
FIGURES: dict[str, Callable[[Study], Figure]] = {
    "hero.png": overview_figure,
    "heatmap.png": heatmap_figure,
    "graphs.png": graphs_figure,
    "estimates.png": estimates_figure,
    "contributions.png": contributions_figure,
}


@checked
def write_demo(
    study: Study, folder: Path, command: str, *, step: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Draw all figures and the page into ``folder``.

    Args:
        study: The measurements.
        folder: Made when it does not exist.
        command: What made it, for the page's footer.
        step: Called with the name of each file before it is drawn.

    Returns:
        The files, the page first.
    """
    folder.mkdir(parents=True, exist_ok=True)
    step("index.html")
    page = folder / "index.html"
    write_whole(page, demo_page(study, command))
    written = [page]
    for name, draw in FIGURES.items():
        step(name)
        written.append(save_png(draw(study), folder / name, dpi=README_DPI if name == "hero.png" else DPI))
    return written


def demo_page(study: Study, command: str) -> str:
    """Return the page as a string.

    Args:
        study: The measurements, of :func:`~graphsnd.plots.study.run_study`.
        command: What made it, for the footer.
    """
    e = study.exact.estimate
    lead = (
        f"{e.agents} agents, four hidden roles, {e.observations:,} shared observations. How differently do they "
        f"behave, and how much of that can be seen from a tenth of the pairs?"
    )
    cards = [
        ("System Neural Diversity", f"{e.value:.3f}", f"mean over all {e.pairs_total:,} pairs"),
        ("Error from observations", f"± {e.observation_error or 0:.3f}", f"standard error, {e.observations:,} of them"),
        ("Hidden roles found", f"{study.recovered:.0%}", "of agents, from distances alone"),
        ("Seconds, exact", f"{study.exact.seconds:.2g}", "on this machine, every pair"),
    ]
    sections = [_matrix(study), _estimates(study), *_graphs(study), _agents(study)]
    title = f"How differently do {e.agents} agents act?"
    return render_page(title, lead, cards, sections, footer_lines(command, study.seed))


def _matrix(study: Study) -> Section:
    return Section(
        "Every pair",
        "The distance between two agents is the mean 2-Wasserstein distance between their action distributions on "
        "the same observations. The order comes from clustering these distances. The measure never sees the roles; "
        "the colours are added afterwards.",
        [
            Picture(heatmap_figure(study), "All distances, clustered, with the tree above: a block for each role."),
            Picture(contributions_figure(study), "Each agent's mean distance to the others; rare roles come first."),
        ],
    )


def _estimates(study: Study) -> Section:
    rows = estimate_rows(study)
    local = frozenset(range(1 + len(study.sampled), len(rows)))
    return Section(
        "A tenth of the pairs",
        "A random graph of pairs estimates SND. The guaranteed interval holds for every team at this sample size and "
        "is wide for that reason; the asymptotic one is narrow and relies on a large sample. The last rows, in "
        "italics, are exact but measure something else: diversity among near agents, or within roles. They are not "
        "estimates of SND and have no interval around it.",
        [Picture(estimates_figure(study), "Estimates of three sampling designs with both intervals around the truth.")],
        table=HtmlTable(ESTIMATE_COLUMNS, rows, local),
    )


def _graphs(study: Study) -> list[Section]:
    sampled = (
        "Agents stand where their behaviour puts them: near agents act alike (classical scaling of the matrix). "
        "Each line is a pair that was measured, drawn without regard to behaviour."
    )
    local = (
        "Agents stand where they are in the world, or are joined within their role. Here the graph is the "
        "question: how different are those who are near each other, or who share a role?"
    )
    key = [(name, group_look(role)[0]) for role, name in enumerate(study.team.role_names)]
    sections = []
    for title, text, results in (
        ("Graphs that estimate SND", sampled, study.sampled),
        ("Graphs that define another measure", local, study.local),
    ):
        pictures = [Picture(graph_figure(study, one), f"The graph {one.spec} over the agents.") for one in results]
        sections.append(Section(title, text, pictures, key=key))
    return sections


def _agents(study: Study) -> Section:
    order = list(enumerate(study.contributions.argsort(descending=True).tolist(), 1))
    rows = []
    for rank, agent in [*order[:5], *order[-3:]]:
        role = study.team.role_names[int(study.team.roles[agent])]
        name, value = f"agent {study.team.behavior.names[agent]}", f"{float(study.contributions[agent]):.3f}"
        rows.append((name, role, f"{rank} of {len(order)}", value))
    text = "Mean distance to all other agents, the most distinctive first, then the least. Their mean is SND."
    return Section("Whose diversity it is", text, table=HtmlTable(("agent", "role", "rank", "mean distance"), rows))
