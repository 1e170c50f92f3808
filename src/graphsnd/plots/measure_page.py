"""The page of one measurement."""

from __future__ import annotations

from graphsnd.plots.facts import Facts, number
from graphsnd.plots.measured import Detail, measured_panels
from graphsnd.plots.origin import provenance
from graphsnd.plots.page import Picture, Section, Table, render


def measure_page(detail: Detail, lines: Facts, *, source: str, command: str, seed: int) -> str:
    """The page as a string.

    Args:
        detail: The distances behind the estimate.
        lines: Its :func:`~graphsnd.plots.facts.facts`.
        source: Name of the measured file, without its folder.
        command: What made the page, for the footer.
        seed: Seed of the graph.
    """
    e = detail.estimate
    promise = "guaranteed for every team" if e.guaranteed else "for large samples"
    cards = [
        (e.target, number(e.value), e.distance),
        (
            f"Interval, {100 * e.confidence:.4g}%",
            "exact" if e.exact else f"{e.interval[0]:.3g} to {e.interval[1]:.3g}",
            e.method if e.exact else promise,
        ),
        ("Agents", f"{e.agents:,}", f"on {e.observations:,} shared observations"),
        ("Pairs used", f"{100 * e.pairs_used / e.pairs_total:.3g}%", f"{e.pairs_used:,} of {e.pairs_total:,}"),
    ]
    alts = (
        "Matrix of the measured distances, blank where no pair was measured.",
        "Histogram of the measured distances with the value and its interval.",
        "Mean measured distance of every agent, the most distinctive first.",
    )
    pictures = [Picture(figure, alt) for figure, alt in zip(measured_panels(detail), alts, strict=True)]
    lead = f"What the agents in {source} would do on the same observations, and how far apart that is."
    sections = [
        Section("The distances behind the number", pictures=pictures),
        Section("In full", table=Table(("", ""), lines)),
    ]
    return render(f"Behavioural diversity of {source}", lead, cards, sections, provenance(command, seed))
