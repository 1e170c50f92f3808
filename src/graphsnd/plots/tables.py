"""Tables for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsnd.plots.facts import Facts
from graphsnd.plots.study import Study

if TYPE_CHECKING:
    from rich.table import Table

BAR = 24  # characters of the longest bar


def facts_table(lines: Facts) -> Table:
    """Names and sentences, the first line in bold."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for at, (name, text) in enumerate(lines):
        # Text, not markup: a file or a graph name may hold brackets.
        table.add_row(Text(name), Text(text, style="bold" if at == 0 else ""), end_section=at == 0)
    return table


def estimates_table(study: Study) -> Table:
    """Every graph with its value and intervals beside the truth; local measures dim and apart."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    sure = f"{100 * study.exact.estimate.confidence:.4g}%"
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("graph", no_wrap=True)
    for name in ("pairs", "value", "off by", f"guaranteed {sure}", f"asymptotic {sure}"):
        table.add_column(name, justify="right", no_wrap=name != "pairs")
    truth = study.exact.estimate
    table.add_row("complete", f"{truth.pairs_used:,}", f"{truth.value:.3f}", "", "exact: SND", "", style="bold")
    for at, one in enumerate(study.sampled):
        e = one.estimate
        off = f"{e.value / truth.value - 1:+.1%}"
        row = (one.spec, f"{e.pairs_used:,}", f"{e.value:.3f}", off, _ends(e.interval), _ends(e.asymptotic_interval))
        table.add_row(*row, end_section=at == len(study.sampled) - 1)
    for one in study.local:
        e = one.estimate
        table.add_row(one.spec, f"{e.pairs_used:,}", f"{e.value:.3f}", "", "local, not SND", "", style="dim italic")
    return table


def agents_table(study: Study, *, top: int = 4, bottom: int = 2) -> Table:
    """The most and the least distinctive agents, with bars."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    values = study.contributions.tolist()
    order = sorted(range(len(values)), key=lambda agent: -values[agent])
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("agent", justify="right")
    table.add_column("hidden role", no_wrap=True)
    table.add_column("mean distance to the others", no_wrap=True)
    longest = values[order[0]] or 1.0
    for at, agent in enumerate([*order[:top], *order[-bottom:]]):
        role = study.team.role_names[int(study.team.roles[agent])]
        table.add_row(str(agent), role, bar(values[agent], longest), end_section=at == top - 1)
    return table


def roles_table(study: Study) -> Table:
    """Every hidden role: its size, how alike its agents are, and how far they are from the rest."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("hidden role", no_wrap=True)
    table.add_column("agents", justify="right")
    table.add_column("within", justify="right")
    table.add_column("mean distance to the others", no_wrap=True)
    roles, values = study.team.roles, study.contributions
    means = [float(values[roles == role].mean()) for role in range(len(study.team.role_names))]
    for role, name in enumerate(study.team.role_names):
        mine = roles == role
        count = int(mine.sum())
        pairs = count * (count - 1)
        within = f"{float(study.matrix[mine][:, mine].sum()) / pairs:.3f}" if pairs else "-"
        table.add_row(name, str(count), within, bar(means[role], max(means) or 1.0))
    return table


def bar(value: float, longest: float) -> str:
    """A value and a bar of eighths of a character.

    Example:
        >>> bar(1.0, 2.0)
        '1.000 ████████████'
    """
    eighths = round(8 * BAR * value / longest)
    rest = " ▏▎▍▌▋▊▉"[eighths % 8].strip()
    return f"{value:.3f} {'█' * (eighths // 8)}{rest}"


def _ends(ends: tuple[float, float]) -> str:
    return f"[{ends[0]:.3f}, {ends[1]:.3f}]"
