"""The page "Paper against measurement": one HTML file that loads nothing; its script only filters and searches."""

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
from paper.judging.changes import claim_of_logs, describe_rules
from paper.judging.claims import Kind
from paper.judging.formatting import KINDS, SIGNS, describe_machine, format_duration, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict, count_kinds, counts, judge_number
from paper.published import Published
from paper.store import Result, read_results, result_path

SHEETS = (Path(plots.__file__).with_name("page.css"), Path(__file__).with_name("page.css"))
HTML = Path(__file__).with_name("html")
POWER = re.compile(r"\b(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b")
RAISED = re.compile(r"\^(-?\d+|[a-z]\b)")
INDEX = re.compile(r"\b([A-Z]|lambda|SND)_([0-9a-z])\b")


def verdicts_page(
    judged: Sequence[Judged],
    folder: Path,
    *,
    command: str,
    scale: Scale | None = None,
    published: Published | None = None,
) -> str:
    """Return the page as a string.

    Claims are grouped by experiment, in the order in which these first appear. Without its script the page shows all
    of them.

    Args:
        judged: Claims with their verdicts.
        folder: Of the results, where the figures are.
        command: What made the page, for the footer.
        scale: The only scale that counts; None when the largest that was run decided.
        published: Numbers of the author's logs, to be judged beside ours.
    """
    names = dict.fromkeys(one.claim.experiment for one in judged)
    groups = {name: [one for one in judged if one.claim.experiment == name] for name in names}
    results = {name: _shown_results(name, group, folder, scale) for name, group in groups.items()}
    titles = {name: mine[0].title if mine else name.capitalize() for name, mine in results.items()}
    decides = f"Everything here was run at {scale.value} scale" if scale else "The largest scale that was run decides"
    used = [verdict for verdict, count in counts(judged).items() if count]
    rows = {name: "".join(claim_row(one, published=published) for one in group) for name, group in groups.items()}
    return fill_template(
        "page.html",
        css="".join(sheet.read_text(encoding="utf-8") for sheet in SHEETS),
        script=(HTML / "filter.js").read_text(encoding="utf-8"),
        claims=len(judged),
        decides=decides,
        verdicts="".join(f'<th scope="col">{_link(verdict.value, verdict=verdict)}</th>' for verdict in used),
        kinds="".join(_kind_row(kind, mine, used) for kind, mine in count_kinds(judged).items()),
        experiments="".join(_experiment(titles[name], name, rows[name], results[name], folder) for name in groups),
        runs="".join(_run_row(result) for mine in results.values() for result in mine),
        footer="".join(f"<li>{escape(item)}</li>" for item in footer_lines(command)),
    )


def _kind_row(kind: Kind, counted: dict[Verdict, int], used: Sequence[Verdict]) -> str:
    links = {one: _link(str(counted[one]), kind, one) if counted[one] else "" for one in used}
    cells = [f'<td data-label="{one.value}">{link}</td>' for one, link in links.items()]
    total = f'<td data-label="all">{sum(counted.values())}</td>'
    return f'<tr><th scope="row">{_link(KINDS[kind], kind)}</th>{"".join(cells)}{total}</tr>'


def _link(words: str, kind: Kind | None = None, verdict: Verdict | None = None) -> str:
    """Return a link that filters; a badge where it is about a verdict."""
    parts = [f"kind={kind.name.lower()}" if kind else "", f"verdict={css_class(verdict)}" if verdict else ""]
    look, sign = ("", "") if verdict is None else (f' class="badge {css_class(verdict)}"', f"<i>{SIGNS[verdict]}</i>")
    return f'<a href="#{"&amp;".join(filter(None, parts))}"{look}>{sign}{escape(words)}</a>'


def _shown_results(name: str, group: Sequence[Judged], folder: Path, scale: Scale | None) -> list[Result]:
    """Return the results that decided claims; where none did, the largest there is, for its figure."""
    used = {one.result.scale: one.result for one in group if one.result}
    there = [result for at, result in read_results(folder, name).items() if scale in (None, at)]
    return list(used.values()) or there[-1:]


def _experiment(title: str, name: str, rows: str, results: Sequence[Result], folder: Path) -> str:
    figures = "".join(_figure(result, folder) for result in results)
    return fill_template("experiment.html", name=name, title=typeset(title), figures=figures, rows=rows)


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


def claim_row(one: Judged, *, published: Published | None = None) -> str:
    """Return a row of the table, which a narrow screen shows as a card.

    Args:
        one: The claim.
        published: Numbers of the author's logs.
    """
    claim, verdict, scale = one.claim, one.verdict, one.scale or one.claim.scales[-1]
    told = f'<p class="told">{typeset(one.told)}</p>'
    plain = verdict in (Verdict.CONFIRMED, Verdict.FOUND)  # and needs no explanation
    return fill_template(
        "claim.html",
        id=claim.id,
        kind=claim.kind.name.lower(),
        kind_words=claim.kind.value,
        verdict_class=css_class(verdict),
        says=typeset(claim.says),
        place=escape(claim.place),
        inside=told if plain else "",
        told="" if plain else told,
        details="".join(f"<dt>{name}</dt><dd>{typeset(text)}</dd>" for name, text in _details(one, scale, published)),
        command=f"python -m paper run {claim.experiment} --scale {scale.value}",
        paper=typeset(claim.paper),
        measured=_measured(one),
        sign=SIGNS[verdict],
        verdict=verdict.value,
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
    ends = format_interval(one.number).replace(" ", "\u00a0")
    interval = f'<span class="ends">{typeset(ends)}</span>' if ends else ""
    return f'<span class="number">{typeset(format_value(one.number))}</span>{interval}'


def _details(one: Judged, scale: Scale, published: Published | None) -> Iterator[tuple[str, str]]:
    claim, found = one.claim, claim_of_logs(one.claim, published)
    yield "Measured", claim.measured + (f" ({one.number.kind})" if one.number and one.number.kind else "")
    yield from describe_rules(claim)
    if claim.tolerance:
        yield "Tolerance", claim.tolerance
    if claim.was:
        same = one.number if claim.was.number == claim.number else None
        old = judge_number(claim.was, same).value if same else "see rules.md"
        yield "Rule before", f"{'; '.join(f'{name.lower()} {rule}' for name, rule in describe_rules(claim.was))}: {old}"
    if claim.why:
        yield ("Why it changed" if claim.was else "Why it is here"), claim.why
    if found:
        yield "Author's logs", f"{format_value(found[0].number)}, by this rule {found[1].value} ({found[0].file})"
    if claim.note and claim.note != one.told:
        yield "Note", claim.note
    if one.result is None:
        yield "Can be decided at", ", ".join(scale.value for scale in reversed(claim.scales)) + " scale"
        return
    yield "Number", f"{claim.number} in results/{claim.experiment}/{scale.value}.json, {describe_machine(one.result)}"
    if one.result.sources:
        yield "Computed from", ", ".join(one.result.sources)
