"""Verdicts in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rich.table import Table
from rich.text import Text

from graphsnd.plots.tables import table
from paper.judging.formatting import SIGNS, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict, counts

COLOURS = {
    Verdict.CONFIRMED: "green",
    Verdict.IN_DIRECTION: "cyan",
    Verdict.CORRECTED: "yellow",
    Verdict.NOT_CONFIRMED: "red",
    Verdict.NOT_MEASURED: "dim",
}


def verdicts_table(judged: Sequence[Judged]) -> Table:
    """Return a row for each claim, a block for each experiment. It fits a terminal of 80 characters."""
    verdicts = table(("claim", "paper", "measured", "verdict"), align="<")
    for at, one in enumerate(judged):
        last = at + 1 == len(judged) or judged[at + 1].claim.experiment != one.claim.experiment
        sign = Text(f"{SIGNS[one.verdict]} {fill(one.verdict.value, 13, subsequent_indent='  ')}", COLOURS[one.verdict])
        verdicts.add_row(Text(fill(one.claim.id, 22)), Text(one.claim.paper), _measured(one), sign, end_section=last)
    return verdicts


def summary(judged: Sequence[Judged]) -> Text:
    """Return one line: the number of claims with each verdict."""
    decided = [(count, verdict) for verdict, count in counts(judged).items() if count]
    parts = [Text(f"{count} {verdict.value}", style=COLOURS[verdict]) for count, verdict in decided]
    return Text(f"{len(judged)} claim{'s' * (len(judged) != 1)}: ") + Text(", ").join(parts)


def _measured(one: Judged) -> Text:
    if one.number is None:
        return Text("-", style="dim")
    value, ends = format_value(one.number), format_interval(one.number)
    between = " " if len(value) + len(ends) < 17 else "\n"  # the two ends stay together
    return Text(value, style="bold") + (Text(between + ends, style="not bold dim") if ends else Text(""))
