"""Numbers, machines and durations as text, the same for the terminal and for the page, and the terminal's table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Any

from rich.table import Table
from rich.text import Text

from graphsnd.errors import plural
from graphsnd.plots.tables import table
from paper.experiment import Number
from paper.judging.claims import Kind
from paper.judging.verdicts import Judged, Verdict, count_kinds
from paper.runner import Result

# A colour and a sign for each verdict, so that no verdict depends on colour alone.
LOOKS = {
    Verdict.CONFIRMED: ("green", "✓"),
    Verdict.IN_DIRECTION: ("cyan", "≈"),
    Verdict.CORRECTED: ("yellow", "↻"),
    Verdict.NOT_CONFIRMED: ("red", "✗"),
    Verdict.FOUND: ("blue", "◆"),
    Verdict.NOT_FOUND: ("magenta", "◇"),
    Verdict.UNDECIDED: ("dim", "?"),
    Verdict.NOT_MEASURED: ("dim", "·"),
}
COLOURS, SIGNS = ({verdict: look[k] for verdict, look in LOOKS.items()} for k in (0, 1))
KINDS = {
    Kind.THEOREM: "Theorems and identities",
    Kind.MEASUREMENT: "Measurements of the paper",
    Kind.CHECK: "Checks that can hardly fail",
    Kind.FINDING: "Findings that are not claims of the paper",
}


def format_number(value: float) -> str:
    """Return four significant digits, whole numbers in full.

    Example:
        >>> [format_number(v) for v in (0.0, 1.00412, 24000.0, 2.22e-16, 0.0004567, 123456.7, 3.5e9)]
        ['0', '1.004', '24,000', '2.22e-16', '0.0004567', '123,457', '3.5e+09']
    """
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def format_value(number: Number) -> str:
    """Return the value with its unit; a count is followed by its total.

    Example:
        >>> [format_value(Number(0.2, unit=unit)) for unit in ("x", "%", "s")]
        ['0.2x', '0.2%', '0.2 s']
        >>> format_value(Number(7, kind="of 8 cells"))
        '7 of 8'
    """
    unit = number.unit if number.unit in ("%", "x", "") else f" {number.unit}"
    whole = number.kind.split()[:2] if number.kind.startswith("of ") else []
    return " ".join([format_number(number.value) + unit, *whole])


def format_interval(number: Number) -> str:
    """Return both ends, or an empty string without an interval.

    Example:
        >>> [format_interval(number) for number in (Number(9.4, 9.21, 9.6), Number(9.4), Number(1.0, high=2.0))]
        ['[9.21, 9.6]', '', '[, 2]']
    """
    if number.low is None and number.high is None:
        return ""
    low, high = ("" if end is None else format_number(end) for end in (number.low, number.high))
    return f"[{low}, {high}]"


def describe_machine(result: Result) -> str:
    """Return the machine that measured a result, and the machine of the logs that it was computed from.

    Example:
        >>> from paper.experiment import Scale
        >>> ours = {"hardware": {"cpu": "Intel(R) Xeon(R) Processor @ 2.60GHz", "gpu": None, "cores": 2}}
        >>> logs = {"results/control/n50": {"hardware": {"cpu": "Xeon", "gpu": "NVIDIA H200", "cores": 16}}}
        >>> describe_machine(Result("mpe", "MPE", Scale.PAPER, {**ours, "sources": logs}, (), {}, {}))
        'Intel Xeon, 2 cores; logs from NVIDIA H200'
    """
    here = _machine(result.provenance.get("hardware"))
    sources = result.provenance.get("sources", {}).values()
    logs = dict.fromkeys(_machine(about["hardware"]) for about in sources if about)
    return "; logs from ".join([here, " and ".join(logs)] if logs else [here])


def _machine(hardware: dict[str, Any] | None) -> str:
    if not hardware:
        return "machine unknown"
    if hardware.get("gpu"):
        return str(hardware["gpu"])
    cpu = re.sub(r"\((R|TM)\)|\b(CPU|Processor)\b|@.*", "", str(hardware.get("cpu") or "CPU"))
    cores = hardware.get("cores")
    return " ".join(cpu.split()) + (f", {cores} {plural('core', cores)}" if cores else "")


def format_duration(seconds: float) -> str:
    """Return a duration in readable units.

    Example:
        >>> [format_duration(s) for s in (0.42, 41.2, 754, 9000)]
        ['0.4 s', '41 s', '13 min', '2.5 h']
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def verdicts_table(judged: Sequence[Judged]) -> Table:
    """Return a row for each claim, a block for each experiment. It fits a terminal of 80 characters."""
    verdicts = table(("claim", "paper", "measured", "verdict"), align="<")
    for at, one in enumerate(judged):
        last = at + 1 == len(judged) or judged[at + 1].claim.experiment != one.claim.experiment
        sign = Text(f"{SIGNS[one.verdict]} {fill(one.verdict.value, 13, subsequent_indent='  ')}", COLOURS[one.verdict])
        verdicts.add_row(Text(fill(one.claim.id, 22)), Text(one.claim.paper), _measured(one), sign, end_section=last)
    return verdicts


def summary(judged: Sequence[Judged]) -> Text:
    """Return a line for each kind of row: the number of each verdict."""
    lines = []
    for kind, counted in count_kinds(judged).items():
        parts = [Text(f"{count} {one.value}", style=COLOURS[one]) for one, count in counted.items() if count]
        if parts:
            lines.append(Text(f"{KINDS[kind]}, {sum(counted.values())}: ") + Text(", ").join(parts))
    return Text("\n").join(lines)


def _measured(one: Judged) -> Text:
    if one.number is None:
        return Text("-", style="dim")
    value, ends = format_value(one.number), format_interval(one.number)
    between = " " if len(value) + len(ends) < 17 else "\n"  # keeps the two ends on one line
    return Text(value, style="bold") + (Text(between + ends, style="not bold dim") if ends else Text(""))
