"""Everything the demo writes: the team, its figures, and a page that tells what the library does on it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from graphsnd.analysis import roles
from graphsnd.behavior import Gaussian
from graphsnd.files import write_whole
from graphsnd.plots.explorer import agents_table, describe_omission, explorer_html, explorer_script, is_live
from graphsnd.plots.measurement import PairDistances
from graphsnd.plots.page import HtmlTable, Picture, Section, render_page
from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import (
    contributions_figure,
    draw_panel,
    estimates_figure,
    graphs_figure,
    heatmap_figure,
    overview_figure,
)
from graphsnd.plots.style import DPI, group_look, phone_figure, save_png
from graphsnd.plots.summary import number_card
from graphsnd.plots.tables import ESTIMATE_COLUMNS, estimate_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEAM = "team.npz"
README_DPI = 120  # 1800 pixels across: twice the width of a README
FIGURES: dict[str, Callable[[Study], Figure]] = {
    "hero.png": overview_figure,
    "heatmap.png": heatmap_figure,
    "graphs.png": graphs_figure,
    "estimates.png": estimates_figure,
    "contributions.png": contributions_figure,
}


def write_demo(
    study: Study, folder: Path, command: str, *, step: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Write the page, the team as a file, and all figures into ``folder``.

    Args:
        study: The measurements.
        folder: Made when it does not exist.
        command: What made it, for the page's footer.
        step: Called with the name of each file before it is drawn.

    Returns:
        The files, the page and the team first.

    Example:
        >>> import tempfile, graphsnd as gs
        >>> from graphsnd.plots.study import run_study
        >>> study = run_study(gs.plots.example_team(12, 64))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in write_demo(study, Path(folder), "graphsnd demo")][:2]
        ['index.html', 'team.npz']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    step("index.html")
    page = folder / "index.html"
    write_whole(page, demo_page(study, command))
    step(TEAM)
    write_whole(folder / TEAM, _team_file(study))
    written = [page, folder / TEAM]
    for name, draw in FIGURES.items():
        step(name)
        written.append(save_png(draw(study), folder / name, dpi=README_DPI if name == "hero.png" else DPI))
    return written


def _team_file(study: Study) -> bytes:
    """Return the team as a ``.npz`` file that ``graphsnd measure`` reads."""
    behavior, buffer = study.team.behavior, io.BytesIO()
    assert isinstance(behavior, Gaussian)
    loc, scale, positions = (t.numpy() for t in (behavior.loc, behavior.scale, study.team.positions))
    np.savez_compressed(buffer, loc=loc, scale=scale, positions=positions, names=np.array(agent_names(study)))
    return buffer.getvalue()


def agent_names(study: Study) -> tuple[str, ...]:
    """Return names that tell the hidden role, for people: no measure reads them."""
    return tuple(f"{study.team.role_names[int(role)]}-{agent}" for agent, role in enumerate(study.team.roles))


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
        number_card(e),
        ("Agents", f"{e.agents:,}", f"{e.pairs_total:,} pairs on {e.observations:,} shared observations"),
        ("Hidden roles found", f"{study.recovered:.0%}", "of agents, from distances alone"),
        ("Error from a tenth of the pairs", f"± {study.sampled[1].estimate.standard_error:.3f}", "standard error"),
    ]
    sections = [_matrix(study), _estimates(study), *_graphs(study)]
    title = f"How differently do {e.agents} agents act?"
    script = explorer_script() if is_live(e.agents) else ""
    return render_page(title, lead, cards, sections, footer_lines(command, study.seed), script=script)


def _matrix(study: Study) -> Section:
    estimate, names = study.exact.estimate, agent_names(study)
    edges = np.stack(np.triu_indices(len(names), 1), 1)
    distances = study.matrix.double().numpy()[tuple(edges.T)]
    pairs = PairDistances(estimate, edges, distances, study.tree, "all pairs", names, roles(study.team.behavior))
    table, order = agents_table(pairs)
    live = explorer_html(pairs, order) if is_live(len(names)) else ""
    return Section(
        "Every pair",
        "The distance between two agents is the mean 2-Wasserstein distance between their action distributions on "
        "the same observations. Order and roles come from clustering these distances. The measure never sees the "
        "hidden roles: they are in the names for readers. What SND loses without an agent may be negative."
        + describe_omission(len(order), len(names)),
        [
            Picture(heatmap_figure(study), "All distances, clustered, with the tree above: a block for each role."),
            Picture(contributions_figure(study), "Each agent's mean distance to the others; rare roles come first."),
        ],
        live=live,
        table=table,
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
        figures = [(phone_figure(3.9, draw_panel, one, study), one.spec) for one in results]
        pictures = [Picture(figure, f"The graph {spec} over the agents.") for figure, spec in figures]
        sections.append(Section(title, text, pictures, key=key))
    return sections
