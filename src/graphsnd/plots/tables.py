"""Tables for the terminal, all in one look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from graphsnd.errors import printable
from graphsnd.plots.study import CONFIDENCE, Study
from graphsnd.plots.summary import Lines

BAR = 24  # characters of the longest bar
ESTIMATE_COLUMNS = ("graph", "pairs", "value", "off by", f"guaranteed {CONFIDENCE:.0%}", f"asymptotic {CONFIDENCE:.0%}")


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


def estimate_rows(study: Study) -> list[tuple[str, ...]]:
    """Return a row under ``ESTIMATE_COLUMNS`` for each graph: the truth, the designs that estimate it, the others."""
    rows: list[tuple[str, ...]] = []
    for one in (study.exact, *study.sampled, *study.local):
        e = one.estimate
        cells: tuple[str, ...] = ("", "exact: SND", "")
        if e.target != "SND":
            cells = ("", "local, not SND", "")
        elif one is not study.exact:
            ends = (f"[{each[0]:.3f}, {each[1]:.3f}]" if each else "-" for each in (e.interval, e.asymptotic_interval))
            cells = (f"{e.value / study.exact.estimate.value - 1:+.1%}", *ends)
        rows.append((one.spec, f"{e.pairs_used:,}", f"{e.value:.3f}", *cells))
    return rows


def estimates_table(study: Study) -> Table:
    """Return :func:`estimate_rows`, with the truth in bold, and local measures dim and apart."""
    made, sampled = table(ESTIMATE_COLUMNS), len(study.sampled)
    for at, row in enumerate(estimate_rows(study)):
        style = "bold" if at == 0 else "" if at <= sampled else "dim italic"
        made.add_row(*row, style=style, end_section=at == sampled)
    return made


def agents_table(study: Study) -> Table:
    """Return the four most and the two least distinctive agents, with bars."""
    values = study.contributions.tolist()
    order = sorted(range(len(values)), key=lambda agent: -values[agent])
    made = table(("agent", "hidden role", "mean distance to the others"), align="><")
    for at, agent in enumerate([*order[:4], *order[-2:]]):
        role = study.team.role_names[int(study.team.roles[agent])]
        made.add_row(study.team.behavior.names[agent], role, bar(values[agent], values[order[0]]), end_section=at == 3)
    return made


def roles_table(study: Study) -> Table:
    """Return every hidden role: its size, how alike its agents are, and how far they are from the rest."""
    roles, values = study.team.roles, study.contributions
    means = [float(values[roles == role].mean()) for role in range(len(study.team.role_names))]
    rows = []
    for role, name in enumerate(study.team.role_names):
        mine = roles == role
        count = int(mine.sum())
        pairs = count * (count - 1)
        within = f"{float(study.matrix[mine][:, mine].sum()) / pairs:.3f}" if pairs else "-"
        rows.append((name, str(count), within, bar(means[role], max(means))))
    return table(("hidden role", "agents", "within", "mean distance to the others"), rows, align="<>><")


def bar(value: float, longest: float) -> str:
    """Return a value and a bar of eighths of a character.

    Example:
        >>> bar(1.0, 2.0)
        '1.000 ████████████'
    """
    eighths = round(8 * BAR * value / (longest or 1.0))
    rest = " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return f"{value:.3f} {'█' * (eighths // 8)}{rest}"
