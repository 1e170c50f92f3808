"""The page in a real browser: hover and sort; no error and no request, with and without scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsnd as gs
from graphsnd import plots

pytestmark = pytest.mark.browser

NASTY = "</script><img src=x onerror=alert(1)>"
TEAM = plots.example_team(24, 200)
NAMES = (*(f"{TEAM.role_names[int(role)]}_{agent}" for agent, role in enumerate(TEAM.roles[:-1])), NASTY)
BEHAVIOR = TEAM.behavior.with_names(NAMES)
MATRIX = gs.pairwise(BEHAVIOR).numpy()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("plotly")
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(plots.report(gs.measure(BEHAVIOR), title="a <b>"), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser_page: Any, address: str) -> Any:
    browser_page.goto(address)
    browser_page.wait_for_selector("#chart-matrix .hm image")
    return browser_page


def column(page: Any, at: int) -> list[str]:
    """Return the texts of a column of the table of agents."""
    return page.locator(f"table:has(thead) tbody tr > *:nth-child({at})").all_inner_texts()


def test_hovering_shows_the_agents_and_their_distance(page: Any) -> None:
    shown = page.evaluate("document.getElementById('chart-matrix').data[0].y")
    order = [NAMES.index(name.replace("&lt;", "<").replace("&gt;", ">")) for name in shown]
    chart = page.locator("#chart-matrix .nsewdrag").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 20.5 / 24 * box["width"], box["y"] + 2.5 / 24 * box["height"])
    text = page.locator("#chart-matrix .hovertext").text_content()
    one, other = order[2], order[20]
    assert f"{NAMES[one]}, {NAMES[other]}" in text
    assert f"{MATRIX[one, other]:.4g}" in text


def test_the_table_sorts_both_ways_by_number_and_by_name(page: Any) -> None:
    means = MATRIX.sum(1) / 23
    assert column(page, 3) == [f"{value:#.4g}" for value in sorted(means, reverse=True)]
    head = page.get_by_role("button", name="mean distance")
    head.click()
    assert column(page, 1) == [NAMES[agent] for agent in np.argsort(means)]
    head.click()
    assert column(page, 3) == [f"{value:#.4g}" for value in sorted(means, reverse=True)]
    page.get_by_role("button", name="SND lost without").click()
    lost = [float(text) for text in column(page, 4)]
    assert lost == sorted(lost)
    assert lost[0] < 0 < lost[-1]
    page.get_by_role("button", name="agent", exact=True).click()
    numbers = [int(name.partition("_")[2]) for name in column(page, 1) if name.startswith("scout_")]
    assert numbers == sorted(numbers)  # 4 before 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_take_the_readers_colours_and_fit_on_a_phone(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(f"document.documentElement.scrollWidth <= {width}")
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert page.locator("#chart-map .xtick text").first.evaluate("text => getComputedStyle(text).fill") == ink


def test_without_javascript_the_number_and_the_tables_are_there(browser_page: Any, address: str) -> None:
    context = browser_page.context.browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(address)
    assert gs.measure(BEHAVIOR).number() in still.locator(".card").first.inner_text()
    assert still.locator("table:has(thead) tbody tr").count() == 24
    context.close()


def test_without_plotly_pictures_follow_the_readers_colours(
    browser_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsnd.plots.page.find_spec", lambda name: None)
    (tmp_path / "page.html").write_text(plots.report(gs.measure(BEHAVIOR)), encoding="utf-8")
    browser_page.goto((tmp_path / "page.html").as_uri())
    pictures = browser_page.locator("figure img")
    assert pictures.count() == 4
    light = pictures.first.evaluate("image => image.currentSrc")
    browser_page.emulate_media(color_scheme="dark")
    browser_page.wait_for_function("light => document.querySelector('figure img').currentSrc !== light", arg=light)
