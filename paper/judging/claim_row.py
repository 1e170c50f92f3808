"""A claim on the page: what the paper says, what was measured, the verdict, and how to repeat it."""

from __future__ import annotations

import re
from html import escape

from paper.experiment import Scale
from paper.judging.formatting import SIGNS, describe_machine, format_interval, format_value
from paper.judging.verdicts import Judged, Verdict

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
    claim, verdict = one.claim, one.verdict
    return (
        f'<tr id="{claim.id}" class="{css_class(verdict)}"><th scope="row"><p class="says">{typeset(claim.says)}</p>'
        f'<p class="place">{escape(claim.place)} · <a href="#{claim.id}">{claim.id}</a></p>'
        f'<p class="told">{typeset(_told(one))}</p>'
        f'<div class="foot">{_where(one, drawn=drawn)}{_how(one)}</div></th>'
        f'<td data-label="Paper" class="paper"><div>{typeset(claim.paper)}</div></td>'
        f'<td data-label="Measured" class="measured"><div>{_measured(one)}'
        f'<span class="kind how">{typeset(claim.measured)}</span></div></td>'
        f'<td data-label="Verdict" class="verdict"><div><span class="badge {css_class(verdict)}">'
        f"<i>{SIGNS[verdict]}</i>{verdict.value}</span>{_decided(one)}</div></td></tr>\n"
    )


def _told(one: Judged) -> str:
    """Return the finding, which is about the paper's scale; elsewhere what the comparison means."""
    return one.claim.finding or one.claim.note if one.scale in (None, Scale.PAPER) else one.claim.note


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
    """The rule behind the verdict."""
    claim = one.claim
    rule = claim.correction if one.verdict is Verdict.CORRECTED else claim.rule
    text = f"{'corrected' if one.verdict is Verdict.CORRECTED else 'rule'}: {rule}"
    if one.verdict is Verdict.IN_DIRECTION:
        text += f"; weaker: {claim.direction}"
    return f'<span class="kind">{typeset(text)}</span>'


def _where(one: Judged, *, drawn: bool) -> str:
    if one.result is None:
        return ""
    parts = [f"{one.result.scale.value} scale", escape(describe_machine(one.result))]
    if drawn:
        parts.append(f'<a href="#figure-{one.claim.experiment}-{one.result.scale.value}">figure</a>')
    return f"<span>{' · '.join(parts)}</span>"


def _how(one: Judged) -> str:
    claim, scale = one.claim, one.scale or one.claim.scales[-1]
    lines = [("Confirmed when", str(claim.rule))]
    if claim.direction:
        lines.append(("In direction when", str(claim.direction)))
    if claim.correction:
        lines.append(("Corrected when", str(claim.correction)))
    if claim.finding:
        lines.append(("Note", claim.note))
    if one.result:
        lines.append(("Number", f"{claim.number} in results/{claim.experiment}/{scale.value}.json"))
        if one.result.sources:
            lines.append(("Computed from", ", ".join(one.result.sources)))
    else:
        lines.append(("Can be decided at", ", ".join(one.value for one in reversed(claim.scales)) + " scale"))
    body = "".join(f"<dt>{name}</dt><dd>{typeset(text)}</dd>" for name, text in lines)
    command = f"<dt>Repeat it</dt><dd><code>python -m paper run {claim.experiment} --scale {scale.value}</code></dd>"
    return f"<details><summary>rules and command</summary><dl>{body}{command}</dl></details>"
