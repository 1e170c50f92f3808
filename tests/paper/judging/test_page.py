from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from paper.experiment import Number, Scale
from paper.judging.claims import Kind
from paper.judging.formatting import summary, verdicts_table
from paper.judging.page import verdicts_page
from paper.judging.rules import Rule
from paper.judging.verdicts import Judged, judge_all
from paper.published import Published, PublishedNumber
from paper.runner import run
from tests.paper.fakes import claim, squares
from tests.plots.test_page import Outline

LOGS = Published("github:a/b", "c0ffee", (PublishedNumber("recovery", "largest", Number(9.5, unit="x"), "logs.csv"),))
NASTY = "<script>alert('x')</script>\"&"


@pytest.fixture
def judged(tmp_path: Path) -> list[Judged]:
    run(squares(), Scale.LAPTOP, out=tmp_path, work=tmp_path / "work")
    run(squares("timing"), Scale.SMOKE, out=tmp_path, work=tmp_path / "work")
    run(squares("dico-10"), Scale.LAPTOP, out=tmp_path, work=tmp_path / "work")
    more = {"experiment": "timing"}
    claims = [
        claim(finding="It is 9.0e-1 times ten."),
        claim("weak", {"above": 10}, direction=Rule.parse({"above": 8}), tolerance="It is loose."),
        claim("mended", correction=Rule.parse({"at_least": 1}), **more),
        claim("wrong", {"above": 10}, says=NASTY, place=NASTY, paper=NASTY, note=NASTY, measured=NASTY, **more),
        claim("later", scales=(Scale.PAPER,), experiment="mpe", note="It waits for 9.0e-1.", finding="It came."),
        claim("ours", kind=Kind.FINDING, experiment="dico-10", why="Squares are not in the paper."),
    ]
    return judge_all(claims, tmp_path)


def test_every_claim_has_a_row_with_its_verdict(judged: list[Judged], tmp_path: Path) -> None:
    page = verdicts_page(judged, tmp_path, LOGS)
    outline = Outline(page)
    assert outline.open == []
    assert outline.rows == [
        ("nine", "confirmed"), ("weak", "confirmed-in-direction"), ("mended", "corrected"),
        ("wrong", "not-confirmed"), ("later", "not-measured"), ("ours", "found"),
    ]  # fmt: skip
    row = page[page.index('<tr id="nine"') : page.index('<tr id="weak"')]
    told = (
        "Three squared is nine.",
        "Section 1",
        ">9<",
        "9x",
        "[8, 10]",
        "range of &lt;cells&gt;",
        "recovery/laptop.json",
        "9.5x, by this rule not confirmed (logs.csv)",
        '<span class="rule">rule: exactly 9</span>',
    )
    for words in told:
        assert words in row, words
    assert "exactly 9" in row
    assert "Arithmetic." in row
    assert '<p class="told">It is' not in row  # findings are about the paper's scale
    last = page[page.index('<tr id="later"') :]
    assert '<p class="told">It waits for 9.0&' in last
    assert "It came" not in last  # nor is there one without a result


def test_the_page_loads_the_figures_beside_it_alone(judged: list[Judged], tmp_path: Path) -> None:
    page = verdicts_page(judged, tmp_path, LOGS)
    outline = Outline(page)
    assert outline.sources == ["recovery/laptop.png", "timing/smoke.png", "dico-10/laptop.png"]
    assert not re.search(r"url\(|@import|https?:", page)
    assert len(outline.ids) == len(set(outline.ids))
    places = {link[1:] for link in outline.links if link not in ("data:,", "#") and "=" not in link}
    assert places <= set(outline.ids)
    assert str(tmp_path) not in page


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_in_the_terminal(judged: list[Judged], width: int) -> None:
    console = Console(width=width, color_system=None, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(verdicts_table(judged))
    console.print(summary(judged))
    text = console.export_text()
    assert max(len(line) for line in text.splitlines()) <= width
    for words in (
        "nine",
        "9x [8, 10]",
        "✓ confirmed",
        "≈ confirmed in",
        "↻ corrected",
        "✗ not confirmed",
        "· not measured",
    ):
        assert words in text, words
    assert "Measurements of the paper, 5: 1 confirmed, 1 confirmed in direction" in text
    assert "Findings that are not claims of the paper, 1: 1 found" in text


def test_search_and_filter_in_a_browser(judged: list[Judged], tmp_path: Path, browser_page: Any) -> None:
    path = tmp_path / "page.html"
    path.write_text(verdicts_page(judged, tmp_path, LOGS), encoding="utf-8")

    def expect(names: list[str]) -> None:
        """Wait until these rows are shown: a browser tells the page of a new address some time after a click."""
        rows = "[...document.querySelectorAll('table.claims tbody tr')].filter(row => row.checkVisibility())"
        browser_page.wait_for_function(f"{rows}.map(row => row.id).join() === '{','.join(names)}'", timeout=5000)

    browser_page.goto(path.as_uri())
    everything = ["nine", "weak", "mended", "wrong", "later", "ours"]
    expect(everything)
    browser_page.click(".counts a:text-is('not confirmed')")
    expect(["wrong"])
    assert browser_page.url.endswith("#verdict=not-confirmed")
    assert browser_page.inner_text("#shown") == "1 of 6 shown"
    browser_page.click("#clear")
    expect(everything)
    browser_page.click(".counts a:text-is('Measurements of the paper')")
    browser_page.fill("#search", "Waits nine")  # in the order in which one types, whatever their order in the text
    expect(["later"])
    assert browser_page.url.endswith("#kind=measurement&q=Waits+nine")
    # The address alone brings the view back, and its search.
    browser_page.goto("about:blank")
    browser_page.goto(path.as_uri() + "#kind=measurement&q=loose")
    expect(["weak"])
    assert browser_page.input_value("#search") == "loose"
    browser_page.goto(path.as_uri() + "#ours")
    expect(everything)
    assert browser_page.is_visible("#ours .place")
