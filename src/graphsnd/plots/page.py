"""One self-contained HTML page: text, tables and inline figures, and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape as escape_html
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from graphsnd.errors import printable
from graphsnd.plots.style import DARK, svg_uri

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure on the page."""

    figure: Figure
    alt: str  # what a reader who cannot see it should know


@dataclass(frozen=True)
class HtmlTable:
    """A table; the first column heads its rows."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    muted: frozenset[int] = frozenset()  # rows set back, because they are of another kind
    id: str = ""  # of a long table, which scrolls, and which a script may sort


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, a paragraph, and what follows it, in this order."""

    title: str
    text: str = ""
    pictures: list[Picture] = field(default_factory=list)
    live: str = ""  # HTML that a script brings to life, and that then takes the place of the pictures
    table: HtmlTable | None = None
    key: list[tuple[str, str]] = field(default_factory=list)  # names and colours of the light style


def escape(text: str) -> str:
    """Return text for HTML, without control characters."""
    return escape_html(printable(text))


def render_page(
    title: str,
    lead: str,
    cards: Sequence[tuple[str, str, str]],
    sections: Sequence[Section],
    footer: Sequence[str],
    *,
    script: str = "",
) -> str:
    """Return the page as a string. All text is escaped; nothing is loaded from anywhere.

    Args:
        title: Heading and window title.
        lead: The paragraph below it.
        cards: The main numbers, as (label, value, note).
        sections: The body.
        footer: Items of the footer, see :func:`graphsnd.plots.provenance.footer_lines`.
        script: HTML of the scripts at the end, which is not escaped.
    """
    html, css = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.html", "page.css"))
    tiles = "".join(
        f'<div class="card"><div class="label">{escape(label)}</div><div class="value">{escape(value)}</div>'
        f'<div class="note">{escape(note)}</div></div>'
        for label, value, note in cards
    )
    return Template(html).substitute(
        title=escape(title),
        lead=escape(lead),
        css=css,
        cards=tiles,
        sections="\n".join(_section(section) for section in sections),
        footer="".join(f"<li>{escape(item)}</li>" for item in footer),
        script=script,
    )


def _section(section: Section) -> str:
    key = "".join(
        f'<li><i style="background:light-dark({colour},{DARK[colour]})"></i>{escape(name)}</li>'
        for name, colour in section.key
    )
    pictures = "".join(
        f'<figure class="themed"><img src="{svg_uri(picture.figure)}" alt="{escape(picture.alt)}"></figure>'
        for picture in section.pictures
    )
    columns = f"n{min(len(section.pictures), 3)}" + " static" * bool(section.live)
    parts = [
        f"<section><h2>{escape(section.title)}</h2>",
        f"<p>{escape(section.text)}</p>" if section.text else "",
        f'<ul class="key">{key}</ul>' if key else "",
        section.live,
        f'<div class="pictures {columns}">{pictures}</div>' if pictures else "",
        _table(section.table) if section.table else "",
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _table(table: HtmlTable) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    body = []
    for at, (first, *rest) in enumerate(table.rows):
        # The label travels with each cell, so that on a narrow screen a row can stand as a little card.
        cells = "".join(
            f'<td data-label="{escape(name)}">{escape(cell)}</td>'
            for name, cell in zip(table.columns[1:], rest, strict=True)
        )
        kind = ' class="muted"' if at in table.muted else ""
        body.append(f'<tr{kind}><th scope="row">{escape(first)}</th>{cells}</tr>')
    shown = f"<thead><tr>{head}</tr></thead>" if any(table.columns) else ""
    named = f' id="{escape(table.id)}"' if table.id else ""
    made = f'<table class="w{len(table.columns)}"{named}>{shown}<tbody>{"".join(body)}</tbody></table>'
    return f'<div class="agents">{made}</div>' if table.id else made
