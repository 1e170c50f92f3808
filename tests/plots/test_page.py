from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import graphsnd as gs
from graphsnd.plots.demo import demo_page
from graphsnd.plots.page import HtmlTable, Section, render_page
from graphsnd.plots.study import Study


class Outline(HTMLParser):
    """Collects what a page refers to, and whether its tags balance."""

    VOID = frozenset({"meta", "img", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.alts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        values = dict(attrs)
        self.sources += [str(values[key]) for key in ("src", "href") if key in values]
        if tag == "img":
            self.alts.append(values.get("alt") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(small: Study) -> str:
    return demo_page(small, "graphsnd demo --seed 0")


def test_the_demo_page_needs_no_other_file(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.sources) == 9
    assert all(source.startswith("data:image/svg+xml;base64,") for source in outline.sources)
    assert all(outline.alts)
    ours = page.partition('id="plotly"')[0]  # what Plotly asks for is seen in the browser: nothing
    assert "@import" not in ours
    assert not re.search(r"url\((?!data:)", ours)


def test_it_says_what_made_it_and_what_it_does_not_claim(page: str) -> None:
    assert f"graphsnd {gs.__version__}" in page
    assert "torch " in page
    assert "graphsnd demo --seed 0" in page
    assert "not estimates of SND" in " ".join(page.split())


def test_text_is_escaped() -> None:
    nasty = "<script>alert('x')</script>\"&"
    table = HtmlTable(("a", nasty), [(nasty, nasty)])
    page = render_page(nasty, nasty, [(nasty, nasty, nasty)], [Section(nasty, nasty, table=table)], [nasty])
    assert "<script" not in page
    assert Outline(page).open == []
