from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from paper.experiment import Scale
from paper.judging.formatting import summary, verdicts_table
from paper.judging.page import verdicts_page
from paper.judging.rules import Rule
from paper.judging.verdicts import Judged, Verdict, judge_all
from paper.runner import run
from tests.paper.fakes import claim, squares

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NASTY = "<script>alert('x')</script>\"&"


class Outline(HTMLParser):
    """Collects what a page refers to, and whether its tags balance."""

    VOID = frozenset({"meta", "img", "link", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.rows: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in self.VOID:
            self.open.append(tag)
        values = {key: value or "" for key, value in attrs}
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        if tag == "tr" and "id" in values:
            self.rows.append((values["id"], values["class"]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture
def judged(tmp_path: Path) -> list[Judged]:
    run(squares(), Scale.LAPTOP, out=tmp_path, work=tmp_path / "work")
    run(squares("timing"), Scale.SMOKE, out=tmp_path, work=tmp_path / "work")
    more = {"experiment": "timing"}
    claims = [
        claim(finding="It is 9.0e-1 times ten."),
        claim("weak", {"above": 10}, direction=Rule.parse({"above": 8})),
        claim("mended", correction=Rule.parse({"at_least": 1}), **more),
        claim("wrong", {"above": 10}, says=NASTY, place=NASTY, paper=NASTY, note=NASTY, measured=NASTY, **more),
        claim("later", scales=(Scale.PAPER,), experiment="mpe", finding="It waits for 9.0e-1."),
    ]
    return judge_all(claims, tmp_path)


def test_every_claim_has_a_row_with_its_verdict(judged: list[Judged], tmp_path: Path) -> None:
    page = verdicts_page(judged, tmp_path, command="python -m paper run")
    outline = Outline(page)
    assert outline.open == []
    assert outline.rows == [
        ("nine", "confirmed"), ("weak", "confirmed-in-direction"), ("mended", "corrected"),
        ("wrong", "not-confirmed"), ("later", "not-measured"),
    ]  # fmt: skip
    row = page[page.index('<tr id="nine"') : page.index('<tr id="weak"')]
    told = (
        "Three squared is nine.",
        "Section 1",
        ">9<",
        "9x",
        "[8,\u00a010]",
        "range of &lt;cells&gt;",
        "laptop scale",
    )
    for words in (*told, 'href="#figure-recovery-laptop"', "python -m paper run recovery --scale laptop"):
        assert words in row, words
    assert "exactly 9" in row
    assert "Arithmetic." in row
    assert '<p class="told">It is' not in row  # findings are about the paper's scale
    last = page[page.index('<tr id="later"') :]
    assert '<p class="told">It waits for 9.0&' in last
    assert "python -m paper run mpe --scale paper" in last


def test_the_page_needs_no_other_file_and_no_script(judged: list[Judged], tmp_path: Path) -> None:
    page = verdicts_page(judged, tmp_path, command="python -m paper run")
    outline = Outline(page)
    assert outline.tags["script"] == 0
    assert len(outline.sources) == len(set(outline.sources)) == 2  # each figure once
    assert all(source.startswith("data:image/png;base64,") for source in outline.sources)
    assert not re.search(r"url\(|@import|https?:", page)
    assert len(outline.ids) == len(set(outline.ids))
    assert {link[1:] for link in outline.links if link != "data:,"} <= set(outline.ids)
    assert str(tmp_path) not in page


def test_the_filter_is_a_style_sheet(judged: list[Judged], tmp_path: Path) -> None:
    page = verdicts_page(judged, tmp_path, command="python -m paper run")
    assert page.count('type="radio"') == 1 + len(Verdict)
    assert page.count(" checked>") == 1
    for verdict in Verdict:
        key = verdict.value.replace(" ", "-")
        assert f"#show-{key}:checked ~ .experiment tbody tr:not(.{key})" in page
        assert f'for="show-{key}"' in page


def test_one_scale_and_no_figures(judged: list[Judged], tmp_path: Path) -> None:
    for png in tmp_path.rglob("*.png"):
        png.unlink()
    page = verdicts_page(judged, tmp_path, command="python -m paper run", scale=Scale.LAPTOP)
    assert "run at laptop scale" in page
    assert Outline(page).tags["img"] == 0
    assert "#figure" not in page


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
    assert "5 claims: 1 confirmed, 1 confirmed in direction, 1 corrected, 1 not confirmed, 1" in text


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_browser_finds_nothing_to_complain_about(judged: list[Judged], tmp_path: Path) -> None:
    assert CHROMIUM is not None
    path = tmp_path / "page.html"
    path.write_text(verdicts_page(judged, tmp_path, command="python -m paper run"), encoding="utf-8")
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}")
    done = subprocess.run(
        [CHROMIUM, *options, "--enable-logging=stderr", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "Three squared is nine." in done.stdout
    assert "CONSOLE" not in done.stderr
