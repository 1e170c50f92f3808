"""The page "Paper against measurement": one HTML file, no script, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path

from graphsnd.plots.provenance import footer_lines
from graphsnd.plots.style import DPI
from paper.experiment import Scale
from paper.judging.claim_row import claim_row, css_class, typeset
from paper.judging.formatting import SIGNS, describe_machine, format_duration
from paper.judging.verdicts import Judged, Verdict, counts
from paper.store import Result, read_results, result_path

TITLE = "Paper against measurement"
MEANS = {
    Verdict.CONFIRMED: "the rule is met",
    Verdict.IN_DIRECTION: "a weaker rule is met",
    Verdict.CORRECTED: "the statement had to be corrected",
    Verdict.NOT_CONFIRMED: "no rule is met",
    Verdict.NOT_MEASURED: "no run that can decide",
}


def verdicts_page(judged: Sequence[Judged], folder: Path, *, command: str, scale: Scale | None = None) -> str:
    """Return the page as a string.

    Claims are grouped by experiment, in the order in which these first appear. The filter is a group of radio buttons
    and a style sheet, so it needs no script.

    Args:
        judged: Claims with their verdicts.
        folder: Of the results, where the figures are.
        command: What made the page, for the footer.
        scale: The only scale that counts; None when the largest that was run decided.
    """
    names = dict.fromkeys(one.claim.experiment for one in judged)
    groups = {name: [one for one in judged if one.claim.experiment == name] for name in names}
    results = {name: _results(name, group, folder, scale) for name, group in groups.items()}
    titles = {name: mine[0].title if mine else name.capitalize() for name, mine in results.items()}
    parts = [
        f"<header><h1>{TITLE}</h1>{_lead(judged, scale)}</header>",
        _filter(judged),
        _glance(groups, titles),
        *(_experiment(titles[name], group, results[name], folder) for name, group in groups.items()),
        _runs([result for mine in results.values() for result in mine]),
    ]
    footer = "".join(f"<li>{escape(item)}</li>" for item in footer_lines(command))
    sheets = (resources.files(package).joinpath("page.css") for package in ("graphsnd.plots", "paper.judging"))
    css = "".join([*(sheet.read_text(encoding="utf-8") for sheet in sheets), *map(_hiding, Verdict)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{TITLE}</title>\n<style>\n{css}</style>\n</head>\n"
        '<body id="top">\n<main>\n'
        + "\n".join(parts)
        + f"\n<footer><h2>This page</h2><ul>{footer}</ul></footer>\n</main>\n"
        + '<a class="top" href="#top" aria-label="Back to the top">↑</a>\n</body>\n</html>\n'
    )


def _results(name: str, group: Sequence[Judged], folder: Path, scale: Scale | None) -> list[Result]:
    """The results that decided claims; where none did, the largest there is, for its figure."""
    used = {one.result.scale: one.result for one in group if one.result}
    there = [result for at, result in read_results(folder, name).items() if scale in (None, at)]
    return list(used.values()) or there[-1:]


def _lead(judged: Sequence[Judged], scale: Scale | None) -> str:
    at = (
        "The largest scale that was run decides" if scale is None else f"Everything here was run at {scale.value} scale"
    )
    return (
        f'<p class="lead">{len(judged)} claims of the Graph-SND paper, each compared with runs of this project\'s own '
        f"code. The rules were written down before these experiments were run; claims.yaml says what was known by "
        f"then. {at}.</p>"
    )


def _filter(judged: Sequence[Judged]) -> str:
    """Radio buttons in front of everything they hide, and a card for each that shows its count."""
    decided = counts(judged)
    choices = [("all", "", "All claims", len(judged), "show every one")]
    choices += [
        (css_class(verdict), SIGNS[verdict], verdict.value.capitalize(), count, MEANS[verdict])
        for verdict, count in decided.items()
    ]
    inputs = "".join(
        f'<input type="radio" name="show" id="show-{key}" class="show"{" checked" * (key == "all")}>'
        for key, *_ in choices
    )
    cards = "".join(
        f'<label for="show-{key}" class="card {key}"><span class="label"><i>{sign}</i>{escape(name)}</span>'
        f'<span class="value">{count}</span><span class="note">{escape(note)}</span></label>'
        for key, sign, name, count, note in choices
    )
    bar = "".join(
        f'<span class="{css_class(verdict)}" style="flex-grow:{count}" title="{count} {verdict.value}"></span>'
        for verdict, count in decided.items()
        if count
    )
    return f'{inputs}\n<div class="bar" aria-hidden="true">{bar}</div>\n<div class="cards choice">{cards}</div>'


def _hiding(verdict: Verdict) -> str:
    """What the radio button of a verdict does to the page."""
    key = css_class(verdict)
    chosen = f"#show-{key}:checked ~"
    return (
        f"{chosen} .experiment:not(.has-{key}), {chosen} .experiment tbody tr:not(.{key}) {{ display: none; }}\n"
        f"{chosen} .glance .chip:not(.{key}) {{ opacity: .25; }}\n"
        f"{chosen} .choice .card.{key} {{ outline: 2px solid var(--verdict); }}\n"
    )


def _glance(groups: dict[str, list[Judged]], titles: dict[str, str]) -> str:
    rows = []
    for name, group in groups.items():
        chips = "".join(
            f'<a class="chip {css_class(one.verdict)}" href="#{one.claim.id}" '
            f'title="{escape(one.claim.id)}: {one.verdict.value}" '
            f'aria-label="{escape(one.claim.id)}: {one.verdict.value}">{SIGNS[one.verdict]}</a>'
            for one in group
        )
        rows.append(f'<li><a class="name" href="#{name}">{typeset(titles[name])}</a><span>{chips}</span></li>')
    return f'<section class="glance"><h2>At a glance</h2><ul>{"".join(rows)}</ul></section>'


def _experiment(title: str, group: Sequence[Judged], results: Sequence[Result], folder: Path) -> str:
    name = group[0].claim.experiment
    figures = {result.scale: _figure(result, folder) for result in results}
    rows = "".join(claim_row(one, drawn=bool(one.scale and figures.get(one.scale))) for one in group)
    has = " ".join(f"has-{css_class(verdict)}" for verdict in dict.fromkeys(one.verdict for one in group))
    commands = "".join(f"<code>{escape(result.provenance['command'])}</code>" for result in results)
    repeat = f'<p class="repeat">{commands}</p>\n' if commands else ""
    head = "".join(f'<th scope="col">{word}</th>' for word in ("Claim", "Paper", "Measured", "Verdict"))
    return (
        f'<section class="experiment {has}" id="{name}"><h2>{typeset(title)}</h2>\n{repeat}{"".join(figures.values())}'
        f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></section>'
    )


def _figure(result: Result, folder: Path) -> str:
    """The figure once, at the size it was drawn for where there is room."""
    path = result_path(folder, result.experiment, result.scale).with_suffix(".png")
    if not path.is_file():
        return ""
    content = path.read_bytes()
    pixels = struct.unpack(">II", content[16:24])  # the first chunk of a PNG begins with its size
    width, height = (round(96 * side / DPI) for side in pixels)
    hint = '<span class="hint"> Scroll sideways to see all of it.</span>' if width > 360 else ""
    words = escape(f"{result.title}, {result.scale.value} scale")
    return (
        f'<figure id="figure-{result.experiment}-{result.scale.value}"><div class="scroll" tabindex="0">'
        f'<img src="data:image/png;base64,{base64.b64encode(content).decode("ascii")}" alt="Figure: {words}" '
        f'width="{width}" height="{height}" style="--drawn:{width}px"></div>'
        f"<figcaption>{typeset(result.title)}, {result.scale.value} scale. {escape(describe_machine(result))}.{hint}"
        "</figcaption></figure>\n"
    )


def _runs(results: Sequence[Result]) -> str:
    columns = ("experiment", "scale", "machine", "commit", "date", "took")
    head = "".join(f'<th scope="col">{name}</th>' for name in columns)
    rows = []
    for result in results:
        about = result.provenance
        commit = (about["commit"] or "unknown")[:7] + (" + changes" if about["dirty"] else "")
        date, duration = about["date"][:10], format_duration(about["took_s"])
        cells = (result.scale.value, describe_machine(result), commit, date, duration)
        shown = "".join(
            f'<td data-label="{name}">{escape(cell)}</td>' for name, cell in zip(columns[1:], cells, strict=True)
        )
        rows.append(f'<tr><th scope="row">{escape(result.experiment)}</th>{shown}</tr>')
    body = f'<table class="runs"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    text = "Seeds, versions, settings and all data behind the figures are in the JSON file of each run."
    return f'<section class="runs"><h2>Runs</h2><p>{text}</p>{body}</section>'
