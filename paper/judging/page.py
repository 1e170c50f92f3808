"""The page "Paper against measurement": one HTML file, no script, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template

from graphsnd import plots
from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.style import DPI
from paper.experiment import Scale
from paper.judging.formatting import SIGNS, describe_machine, format_duration, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict, counts
from paper.store import Result, read_results, result_path

SHEETS = (Path(plots.__file__).with_name("page.css"), Path(__file__).with_name("page.css"))
MEANS = {
    Verdict.CONFIRMED: "the rule is met",
    Verdict.IN_DIRECTION: "a weaker rule is met",
    Verdict.CORRECTED: "the statement had to be corrected",
    Verdict.NOT_CONFIRMED: "no rule is met",
    Verdict.NOT_MEASURED: "no run that can decide",
}
HTML = Path(__file__).with_name("html")
POWER = re.compile(r"\b(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b")
RAISED = re.compile(r"\^(-?\d+|[a-z]\b)")
INDEX = re.compile(r"\b([A-Z]|lambda|SND)_([0-9a-z])\b")


def verdicts_page(judged: Sequence[Judged], folder: Path, *, command: str, scale: Scale | None = None) -> str:
    """Return the page as a string.

    Claims are grouped by experiment, in the order in which these first appear. The filter is a group of radio buttons
    in front of everything they hide, and a style sheet, so it needs no script.

    Args:
        judged: Claims with their verdicts.
        folder: Of the results, where the figures are.
        command: What made the page, for the footer.
        scale: The only scale that counts; None when the largest that was run decided.
    """
    names = dict.fromkeys(one.claim.experiment for one in judged)
    groups = {name: [one for one in judged if one.claim.experiment == name] for name in names}
    results = {name: _shown_results(name, group, folder, scale) for name, group in groups.items()}
    titles = {name: mine[0].title if mine else name.capitalize() for name, mine in results.items()}
    keys = {verdict: css_class(verdict) for verdict in Verdict}
    sheets = [sheet.read_text(encoding="utf-8") for sheet in SHEETS]
    return fill_template(
        "page.html",
        css="".join(sheets + [fill_template("hiding.css", key=key) for key in keys.values()]),
        claims=len(judged),
        decides=f"Everything here was run at {scale.value} scale"
        if scale
        else "The largest scale that was run decides",
        inputs="".join(f'<input type="radio" name="show" id="show-{key}" class="show">' for key in keys.values()),
        cards="".join(_card(verdict, count) for verdict, count in counts(judged).items()),
        experiments="".join(_experiment(titles[name], group, results[name], folder) for name, group in groups.items()),
        runs="".join(_run_row(result) for mine in results.values() for result in mine),
        footer="".join(f"<li>{escape(item)}</li>" for item in footer_lines(command)),
    )


def _shown_results(name: str, group: Sequence[Judged], folder: Path, scale: Scale | None) -> list[Result]:
    """Return the results that decided claims; where none did, the largest there is, for its figure."""
    used = {one.result.scale: one.result for one in group if one.result}
    there = [result for at, result in read_results(folder, name).items() if scale in (None, at)]
    return list(used.values()) or there[-1:]


def _card(verdict: Verdict, count: int) -> str:
    words = {"sign": SIGNS[verdict], "name": verdict.value.capitalize(), "note": MEANS[verdict]}
    return fill_template("card.html", key=css_class(verdict), count=count, **words)


def _experiment(title: str, group: Sequence[Judged], results: Sequence[Result], folder: Path) -> str:
    figures = {result.scale: _figure(result, folder) for result in results}
    return fill_template(
        "experiment.html",
        name=group[0].claim.experiment,
        has=" ".join(dict.fromkeys(f"has-{css_class(one.verdict)}" for one in group)),
        title=typeset(title),
        commands="".join(f"<code>{escape(result.provenance['command'])}</code>" for result in results),
        figures="".join(figures.values()),
        rows="".join(claim_row(one, drawn=bool(one.scale and figures.get(one.scale))) for one in group),
    )


def _figure(result: Result, folder: Path) -> str:
    """Return the figure at the size it was drawn for where there is room."""
    path = result_path(folder, result.experiment, result.scale).with_suffix(".png")
    if not path.is_file():
        return ""
    content = path.read_bytes()
    pixels = struct.unpack(">II", content[16:24])  # the first chunk of a PNG begins with its size
    width, height = (round(96 * side / DPI) for side in pixels)
    return fill_template(
        "figure.html",
        experiment=result.experiment,
        scale=result.scale.value,
        content=base64.b64encode(content).decode("ascii"),
        title=escape(result.title),
        caption=typeset(result.title),
        machine=escape(describe_machine(result)),
        hint='<span class="hint"> Scroll sideways to see all of it.</span>' if width > 360 else "",
        width=width,
        height=height,
    )


def _run_row(result: Result) -> str:
    about = result.provenance
    cells = {
        "scale": result.scale.value,
        "machine": describe_machine(result),
        "commit": (about["commit"] or "unknown")[:7] + (" + changes" if about["dirty"] else ""),
        "date": about["date"][:10],
        "took": format_duration(about["took_s"]),
    }
    shown = "".join(f'<td data-label="{name}">{escape(cell)}</td>' for name, cell in cells.items())
    return f'<tr><th scope="row">{escape(result.experiment)}</th>{shown}</tr>'


def css_class(verdict: Verdict) -> str:
    """Return the verdict as a class of the style sheet.

    Example:
        >>> css_class(Verdict.IN_DIRECTION)
        'confirmed-in-direction'
    """
    return verdict.value.replace(" ", "-")


def claim_row(one: Judged, *, drawn: bool) -> str:
    """Return a row of the table, which a narrow screen shows as a card.

    Args:
        one: The claim.
        drawn: Whether the page has the figure of its result.
    """
    claim, verdict, scale = one.claim, one.verdict, one.scale or one.claim.scales[-1]
    return fill_template(
        "claim.html",
        id=claim.id,
        verdict_class=css_class(verdict),
        says=typeset(claim.says),
        place=escape(claim.place),
        # The finding is about the paper's scale; elsewhere stands what the comparison means.
        told=typeset(claim.finding or claim.note if one.scale in (None, Scale.PAPER) else claim.note),
        where=_where(one, drawn=drawn),
        details="".join(f"<dt>{name}</dt><dd>{typeset(text)}</dd>" for name, text in _details(one, scale)),
        command=f"python -m paper run {claim.experiment} --scale {scale.value}",
        paper=typeset(claim.paper),
        measured=_measured(one),
        how=typeset(claim.measured),
        sign=SIGNS[verdict],
        verdict=verdict.value,
        decided=typeset(_decided(one)),
    )


@lru_cache
def _template(name: str) -> Template:
    return Template((HTML / name).read_text(encoding="utf-8"))


def fill_template(name: str, /, **values: str | int) -> str:
    """Return a template of ``html/`` with values, which are HTML already, in place of its names."""
    return _template(name).substitute(values)


def typeset(text: str) -> str:
    """Escape a text, and write its powers of ten and its indices as people do.

    Example:
        >>> typeset("lambda_2 on K_4 < 1e-12 n^2")
        'λ<sub>2</sub> on K<sub>4</sub> &lt; 10<sup>&minus;12</sup> n<sup>2</sup>'
    """
    text = RAISED.sub(r"<sup>\1</sup>", POWER.sub(_power, escape(text)))
    return INDEX.sub(_index, text)


def _power(match: re.Match[str]) -> str:
    digits, minus, power = match.groups()
    start = "" if digits == "1" else f"{digits}&nbsp;&times;&nbsp;"
    return f"{start}10<sup>{'&minus;' * (minus == '-')}{power}</sup>"


def _index(match: re.Match[str]) -> str:
    return f"{match[1].replace('lambda', 'λ')}<sub>{match[2]}</sub>"


def _measured(one: Judged) -> str:
    if one.number is None:
        return '<span class="none">&ndash;</span>'
    ends, kind = format_interval(one.number).replace(" ", "\u00a0"), one.number.kind
    parts = [f'<span class="number">{typeset(format_value(one.number))}</span>']
    if ends:
        parts.append(f'<span class="ends">{typeset(ends)}</span>')
    if kind:
        parts.append(f'<span class="kind">{escape(kind)}</span>')
    return "".join(parts)


def _decided(one: Judged) -> str:
    """Return the rule behind the verdict."""
    if one.verdict is Verdict.CORRECTED:
        return f"corrected: {one.claim.correction}"
    weaker = f"; weaker: {one.claim.direction}" if one.verdict is Verdict.IN_DIRECTION else ""
    return f"rule: {one.claim.rule}{weaker}"


def _where(one: Judged, *, drawn: bool) -> str:
    if one.result is None:
        return ""
    parts = [f"{one.result.scale.value} scale", escape(describe_machine(one.result))]
    if drawn:
        parts.append(f'<a href="#figure-{one.claim.experiment}-{one.result.scale.value}">figure</a>')
    return f"<span>{' · '.join(parts)}</span>"


def _details(one: Judged, scale: Scale) -> Iterator[tuple[str, str]]:
    claim = one.claim
    yield "Confirmed when", str(claim.rule)
    if claim.direction:
        yield "In direction when", str(claim.direction)
    if claim.correction:
        yield "Corrected when", str(claim.correction)
    if claim.finding:
        yield "Note", claim.note
    if one.result is None:
        yield "Can be decided at", ", ".join(scale.value for scale in reversed(claim.scales)) + " scale"
        return
    yield "Number", f"{claim.number} in results/{claim.experiment}/{scale.value}.json"
    if one.result.sources:
        yield "Computed from", ", ".join(one.result.sources)
