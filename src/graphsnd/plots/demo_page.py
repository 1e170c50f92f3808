"""The demo's page: what the library does, told on one team."""

from __future__ import annotations

from graphsnd.plots.agents import contributions_figure
from graphsnd.plots.facts import interval
from graphsnd.plots.intervals import estimates_figure
from graphsnd.plots.matrix import heatmap_figure, tree_figure
from graphsnd.plots.network import graph_panel, group_key
from graphsnd.plots.origin import provenance
from graphsnd.plots.page import Picture, Section, Table, render
from graphsnd.plots.study import Measured, Study


def demo_page(study: Study, command: str) -> str:
    """The page as a string, from :func:`~graphsnd.plots.study.study`'s results.

    Args:
        study: The measurements.
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
    sections = [_matrix(study), _estimates(study), _graphs(study, "sampled"), _graphs(study, "local"), _agents(study)]
    footer = provenance(command, study.seed)
    return render(f"How differently do {e.agents} agents act?", lead, cards, sections, footer)


def _matrix(study: Study) -> Section:
    roles, names = study.team.roles, study.team.role_names
    heatmap = heatmap_figure(study.matrix, study.tree, groups=roles, group_names=names)
    tree = tree_figure(study.tree, groups=roles, group_names=names, exact=study.exact.estimate.value)
    agents = contributions_figure(study.contributions, groups=roles, group_names=names)
    return Section(
        "Every pair",
        "The distance between two agents is the mean 2-Wasserstein distance between their action distributions on "
        "the same observations. The order comes from clustering these distances. The measure never sees the roles; "
        "the colours are added afterwards.",
        [
            Picture(heatmap, "Heatmap of all distances in clustered order with blocks along the diagonal, one a role."),
            Picture(tree, "Dendrogram of the agents; its main branches are the roles."),
            Picture(agents, "Bars of each agent's mean distance to the others; rare roles come first."),
        ],
        tall=True,
    )


def _estimates(study: Study) -> Section:
    rows = [_row(one, study) for one in study.all]
    fixed = frozenset(range(1 + len(study.sampled), len(rows)))
    return Section(
        "A tenth of the pairs",
        "A random graph of pairs estimates SND. The guaranteed interval holds for every team at this sample size and "
        "is wide for that reason; the asymptotic one is narrow and relies on a large sample. The last rows, in "
        "italics, are exact but measure something else: diversity among near agents, or within roles. They are not "
        "estimates of SND and have no interval around it.",
        [Picture(estimates_figure(study), "Estimates of three sampling designs with both intervals around the truth.")],
        table=Table(("graph", "pairs", "value", "guaranteed", "asymptotic", "off by"), rows, fixed),
    )


def _row(one: Measured, study: Study) -> tuple[str, ...]:
    e = one.estimate
    name = one.spec if e.target == "SND" else f"{one.spec}, a local measure"
    start = (name, f"{e.pairs_used:,}", f"{e.value:.3f}")
    if one is study.exact:
        return (*start, "exact", "exact", "")
    if e.target != "SND":
        return (*start, "", "", "")
    error = e.value / study.exact.estimate.value - 1
    return (*start, interval(e.interval), interval(e.asymptotic_interval), f"{error:+.1%}")


def _graphs(study: Study, which: str) -> Section:
    measured = study.sampled if which == "sampled" else study.local
    title, text = {
        "sampled": (
            "Graphs that estimate SND",
            "Agents stand where their behaviour puts them: near agents act alike (classical scaling of the matrix). "
            "Each line is a pair that was looked at, drawn without regard to behaviour.",
        ),
        "local": (
            "Graphs that define another measure",
            "Agents stand where they are in the world, or are joined within their role. Here the graph is the "
            "question: how different are those who are near each other, or who share a role?",
        ),
    }[which]
    pictures = [Picture(graph_panel(study, one), f"The graph {one.spec} over the agents.") for one in measured]
    return Section(title, text, pictures, key=group_key(study.team.role_names))


def _agents(study: Study) -> Section:
    order = study.contributions.argsort(descending=True).tolist()
    rows = []
    for rank, agent in [*enumerate(order[:5], 1), *list(enumerate(order, 1))[-3:]]:
        role = study.team.role_names[int(study.team.roles[agent])]
        rows.append((f"agent {agent}", role, f"{rank} of {len(order)}", f"{float(study.contributions[agent]):.3f}"))
    text = "Mean distance to all other agents, the most distinctive first, then the least. Their mean is SND."
    return Section("Whose diversity it is", text, table=Table(("agent", "role", "rank", "mean distance"), rows))
