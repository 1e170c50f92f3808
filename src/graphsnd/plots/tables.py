"""Tables in one look, estimates in words, and numbers as text, for the terminal, pages and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from graphsnd.errors import printable
from graphsnd.estimation import Estimate
from graphsnd.estimation.estimate import round_outwards

Lines = list[tuple[str, str]]  # names and sentences


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | Text]] = (), *, align: str = "<>", caption: str | None = None
) -> Table:
    """Return a table of this project's look; rows with a style of their own are added with ``add_row``.

    Args:
        columns: The heads.
        rows: Cells, as text or with a style; text is shown as it is, brackets included.
        align: ``<`` for words, which may wrap, or ``>`` for numbers, which may not; the last counts for the rest.
        caption: A line below.
    """
    made = Table(box=SIMPLE_HEAD, pad_edge=False, caption=caption, caption_justify="left")
    for name, side in zip(columns, align.ljust(len(columns), align[-1]), strict=True):
        if side == "<":
            made.add_column(name, overflow="fold")
        else:
            made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    return made


def lines_table(lines: Lines) -> Table:
    """Return names and sentences, the first line in bold."""
    made = table(("", ""), align="<")
    made.show_header = False
    made.columns[0].style, made.columns[0].no_wrap = "dim", True
    for at, (name, text) in enumerate(lines):
        made.add_row(Text(printable(name)), Text(printable(text), style="bold" if at == 0 else ""), end_section=at == 0)
    return made


def summarise(estimate: Estimate) -> Lines:
    """Return everything an :class:`~graphsnd.Estimate` says, as names and sentences.

    Args:
        estimate: What :func:`graphsnd.measure` returned.

    Example:
        >>> import torch, graphsnd as gs
        >>> summarise(gs.measure(gs.Deterministic(torch.tensor([[[0.0], [3.0], [6.0]]]))))[0]
        ('SND', '4 ± unknown (2-Wasserstein of actions, all 3 pairs, 1 observation)')
    """
    e = estimate
    lines: Lines = [(e.target, str(e).removeprefix(f"{e.target} ")), *_certainty(e)]
    if e.met is not None:
        looks = "once" if e.looks == 1 else f"{e.looks} times"
        lines.append(("tolerance", f"{'met' if e.met else 'NOT met'}, looked {looks}"))
    if e.population_interval is not None:
        others = f"{format_interval(e, e.population_interval)}, for other observations like these"
        lines.append((f"on others {100 * e.confidence:.4g}%", others))
    lines.append(("clusters", e.clusters))
    used = f"{e.observations:,}"
    lines += [
        ("agents", format_agents(e.agents, e.names)),
        ("observations", used if e.observations == e.observations_total else f"{used} of {e.observations_total:,}"),
        ("pairs used", f"{e.pairs()} ({100 * e.pairs_used / e.pairs_total:.3g}%)"),
        ("distance", e.distance),
        ("design", e.design),
    ]
    if e.empty_share:
        lines.append(("no neighbours", f"at {100 * e.empty_share:.3g}% of the observations, which count as 0"))
    if e.why:
        lines += [("why", e.why), ("cost", f"{e.distances:,} distances, {e.policy_evaluations:,} policy evaluations")]
    return [*lines, ("seconds", f"{e.seconds:.3g}")]


def _certainty(e: Estimate) -> Lines:
    sure = f"{100 * e.confidence:.4g}%"
    if e.target.startswith("Graph-SND"):
        return [("certainty", "exact on this graph, which defines a local measure: not an estimate of SND")]
    if e.exact:
        return [("certainty", "exact: every pair was used")]
    ends = e.asymptotic_interval and format_interval(e, e.asymptotic_interval)
    few = f"none: the pairs and draws tell as much as {e.freedom:.2g} independent ones, and it takes 30"
    asymptotic = (f"asymptotic {sure}", f"{ends}, valid for large samples" if ends else few)
    sampled = "pairs" if e.observations == e.observations_total else "pairs and observations"
    error = ("standard error", f"{e.standard_error:.3g}, from looking at some {sampled} only")
    if not e.guaranteed:
        return [asymptotic, error]
    guaranteed = f"{format_interval(e, e.interval)}, valid for every team ({e.method})"
    return [(f"guaranteed {sure}", guaranteed), asymptotic, error]


def escape(text: str) -> str:
    """Return text for HTML, without control characters."""
    return html.escape(printable(text), quote=False)


def format_interval(e: Estimate, ends: tuple[float, float]) -> str:
    """Return one of an estimate's intervals, rounded outwards to the digits that the error leaves."""
    _, low, high = round_outwards(e.value, *ends, e.observation_error or e.standard_error)
    return f"[{low}, {high}]"


def format_count(value: float) -> str:
    """Return a count in full while it is short.

    Example:
        >>> format_count(20_480), format_count(20_275_200), format_count(6.42e11)
        ('20,480', '2.0e7', '6.4e11')
    """
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}".replace("e+0", "e").replace("e+", "e")


def format_duration(seconds: float) -> str:
    """Return three digits and a unit.

    Example:
        >>> [format_duration(s) for s in (0.00000512, 0.0213, 3.0, 22200.0)]
        ['5.12 us', '21.3 ms', '3.00 s', '22,200 s']
    """
    value, unit = next(((seconds * f, u) for f, u in ((1e6, "us"), (1e3, "ms")) if seconds * f < 999.5), (seconds, "s"))
    return f"{value:,.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"


def format_agents(count: int, names: Sequence[str] | None, most: int = 12) -> str:
    """Return the number of agents, and their names where they have any; the first ones where there are many.

    Example:
        >>> format_agents(3, ["scout", "guard", "medic"], most=2), format_agents(1000, None)
        ('3: scout, guard and 1 more', '1,000')
    """
    if not names:
        return f"{count:,}"
    return f"{count:,}: {', '.join(names[:most])}" + f" and {count - most:,} more" * (count > most)
