"""The page "Paper against measurement": one HTML file, and the figures beside it; its script filters and searches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from paper.judging.claims import Kind
from paper.judging.formatting import KINDS, SIGNS, describe_machine, format_duration, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict, count_kinds, judge_number
from paper.published import Published
from paper.runner import Result, read_results

POWER = re.compile(r"\b(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b")
RAISED = re.compile(r"\^(-?\d+|[a-z]\b)")
INDEX = re.compile(r"\b([A-Z]|lambda|SND)_([0-9a-z])\b")


def verdicts_page(judged: Sequence[Judged], folder: Path, published: Published) -> str:
    """Return the page.

    Claims are grouped by experiment, in the order of first appearance. Without its script the page shows all claims.

    Args:
        judged: Claims with their verdicts.
        folder: Folder of the results, where the page and the figures are.
        published: Numbers of the author's logs, which are judged beside ours.
    """
    names = dict.fromkeys(one.claim.experiment for one in judged)
    groups = {name: [one for one in judged if one.claim.experiment == name] for name in names}
    kinds = count_kinds(judged)
    page = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page.filters |= {"typeset": typeset, "sign": SIGNS.__getitem__, "css": css_class, "machine": describe_machine}
    page.filters |= {"value": format_value, "interval": format_interval, "duration": format_duration}
    page.filters["details"] = lambda one: list(_details(one, published))
    return page.get_template("page.html").render(
        judged=judged,
        groups=groups,
        results={name: _shown_results(name, group, folder) for name, group in groups.items()},
        kinds=kinds,
        kind_words=KINDS,
        used=[verdict for verdict in Verdict if any(counted[verdict] for counted in kinds.values())],
    )


def _shown_results(name: str, group: Sequence[Judged], folder: Path) -> list[Result]:
    """Return the results that decided claims; if none did, the one at the largest scale, for its figure."""
    used = {one.result.scale: one.result for one in group if one.result}
    return list(used.values()) or list(read_results(folder, name).values())[-1:]


def css_class(verdict: Verdict) -> str:
    """Return the CSS class of a verdict.

    Example:
        >>> css_class(Verdict.IN_DIRECTION)
        'confirmed-in-direction'
    """
    return verdict.value.replace(" ", "-")


def typeset(text: str) -> Markup:
    """Escape a text, and typeset its powers of ten and its indices.

    Example:
        >>> str(typeset("lambda_2 on K_4 < 1e-12 n^2"))
        'λ<sub>2</sub> on K<sub>4</sub> &lt; 10<sup>&minus;12</sup> n<sup>2</sup>'
    """
    text = RAISED.sub(r"<sup>\1</sup>", POWER.sub(_power, escape(text)))
    return Markup(INDEX.sub(lambda match: f"{match[1].replace('lambda', 'λ')}<sub>{match[2]}</sub>", text))


def _power(match: re.Match[str]) -> str:
    digits, minus, power = match.groups()
    start = "" if digits == "1" else f"{digits}&nbsp;&times;&nbsp;"
    return f"{start}10<sup>{'&minus;' * (minus == '-')}{power}</sup>"


def _details(one: Judged, published: Published) -> Iterator[tuple[str, str]]:
    claim, number = one.claim, one.number
    yield "Measured", claim.measured + (f" ({number.kind})" if number and number.kind else "")
    yield "Found when" if claim.kind is Kind.FINDING else "Confirmed when", str(claim.rule)
    texts = {
        "In direction when": claim.direction,
        "Corrected when": claim.correction,
        "Undecided when": claim.undecided,
        "Tolerance": claim.tolerance,
        "Why it can hardly fail" if claim.kind is Kind.CHECK else "Why it is here": claim.why,
        "Note": claim.note if claim.note != one.told else "",
    }
    yield from ((name, str(text)) for name, text in texts.items() if text)
    if found := published.find(claim.experiment, claim.number):
        verdict = judge_number(claim, found.number).value
        yield "Author's logs", f"{format_value(found.number)}, by this rule {verdict} ({found.file})"
    if one.result is None:
        yield "Can be decided at", ", ".join(scale.value for scale in reversed(claim.scales)) + " scale"
        return
    where = f"results/{claim.experiment}/{one.result.scale.value}.json, {describe_machine(one.result)}"
    yield "Number", f"{claim.number} in {where}"
