"""A claim on the page: what the paper says, what was measured, the verdict, and how to repeat it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template

from paper.experiment import Scale
from paper.judging.formatting import SIGNS, describe_machine, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict

HTML = Path(__file__).with_name("html")
POWER = re.compile(r"\b(\d+(?:\.\d+)?)e([+-]?)0*(\d+)\b")
RAISED = re.compile(r"\^(-?\d+|[a-z]\b)")
INDEX = re.compile(r"\b([A-Z]|lambda|SND)_([0-9a-z])\b")


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
