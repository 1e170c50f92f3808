"""The page in a real browser: hover, click, sort, reorder, slide; no error and no request, with and without scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsnd as gs
from graphsnd import plots
from graphsnd.plots.measurement import measurement_page, pair_distances
from graphsnd.plots.style import DARK, INK
from graphsnd.plots.summary import summarise

pytestmark = pytest.mark.browser

NASTY = "</script><img src=x onerror=alert(1)>"
TEAM = plots.example_team(24, 200)
NAMES = (*(f"{TEAM.role_names[int(role)]}_{agent}" for agent, role in enumerate(TEAM.roles[:-1])), NASTY)
BEHAVIOR = TEAM.behavior.with_names(NAMES)
MATRIX = gs.pairwise(BEHAVIOR).numpy()


def make_page(folder: Path, graph: gs.Graph | None = None) -> str:
    """Write the page and return its address."""
    estimate = gs.measure(BEHAVIOR, design=graph)
    pairs = pair_distances(BEHAVIOR, graph, None, estimate)
    lines = summarise(estimate)
    path = folder / "page.html"
    path.write_text(measurement_page(pairs, lines, source="a <b>", command="graphsnd", seed=0), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_page(tmp_path_factory.mktemp("page"))


@pytest.fixture
def page(browser_page: Any, address: str) -> Any:
    browser_page.goto(address)
    browser_page.wait_for_selector("html[data-ready]")
    return browser_page


def order(page: Any) -> list[int]:
    """Return the agents along the heat map."""
    shown = page.evaluate("document.getElementById('heatmap').data[0].y")
    return [NAMES.index(name.replace("&lt;", "<").replace("&gt;", ">")) for name in shown]


def cell(page: Any, row: int, column: int) -> tuple[float, float]:
    """Return where a cell of the heat map is on the screen."""
    box = page.locator("#heatmap .nsewdrag").bounding_box()
    return box["x"] + (column + 0.5) / 24 * box["width"], box["y"] + (row + 0.5) / 24 * box["height"]


def column(page: Any, at: int) -> list[str]:
    """Return the texts of a column of the table."""
    return page.locator(f"#agents tbody tr > *:nth-child({at})").all_inner_texts()


def test_hovering_shows_the_pair_and_its_distance(page: Any) -> None:
    page.mouse.move(*cell(page, 2, 20))
    text = page.locator("#heatmap .hovertext").text_content()
    one, other = (order(page)[at] for at in (2, 20))
    assert f"{NAMES[one]} and {NAMES[other]}" in text
    assert f"{MATRIX[one, other]:.4g}" in text


def test_clicking_an_agent_shows_its_neighbours(page: Any) -> None:
    assert page.locator("#neighbours").is_hidden()
    page.mouse.click(*cell(page, 5, 9))
    agent = order(page)[5]
    page.wait_for_selector("#neighbours .bars")
    assert page.locator("#picked").inner_text().startswith(f"{NAMES[agent]} acts most like")
    drawn = page.evaluate("document.getElementById('neighbours').data[0].customdata")
    nearest = [other for other in np.argsort(MATRIX[agent], kind="stable").tolist() if other != agent]
    assert drawn == nearest[:10]
    assert NAMES[agent] in page.locator("#agents tr.picked").inner_text()
    page.locator("#agents tr.picked").click()  # once more: none is picked
    assert page.locator("#neighbours").is_hidden()


def test_the_table_sorts_both_ways_by_number_and_by_name(page: Any) -> None:
    means = MATRIX.sum(1) / 23
    assert column(page, 3) == [f"{value:.4f}" for value in sorted(means, reverse=True)]
    head = page.get_by_role("button", name="mean distance")
    head.click()
    assert column(page, 3) == [f"{value:.4f}" for value in sorted(means)]
    assert column(page, 1) == [NAMES[agent] for agent in np.argsort(means)]
    head.click()
    assert column(page, 3) == [f"{value:.4f}" for value in sorted(means, reverse=True)]
    page.get_by_role("button", name="agent", exact=True).click()
    names = column(page, 1)
    numbers = [int(name.partition("_")[2]) for name in names if name.startswith("scout_")]
    assert numbers == sorted(numbers)  # 4 before 10


def test_what_snd_loses_without_an_agent_is_in_the_table(page: Any) -> None:
    agent = NAMES.index(column(page, 1)[0])
    others = [other for other in range(24) if other != agent]
    rest = MATRIX[np.ix_(others, others)].sum() / (23 * 22)
    assert column(page, 4)[0] == f"{MATRIX.sum() / (24 * 23) - rest:+.4f}"


def test_the_order_changes_and_cells_go_with_their_names(page: Any) -> None:
    for name, expected in (("names", [*range(24)]), ("contribution", np.argsort(-MATRIX.sum(1)).tolist())):
        page.select_option("#order", name)
        assert order(page) == expected
        drawn = page.evaluate("document.getElementById('heatmap').data[0].z")
        np.testing.assert_allclose(drawn, MATRIX[np.ix_(expected, expected)], rtol=1e-3)


def test_the_slider_cuts_the_tree(page: Any) -> None:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    links = linkage(squareform(MATRIX.astype(float), checks=False), "average")
    assert page.locator("#roles-shown").inner_text() == f"{gs.roles(BEHAVIOR).count}, as found"
    for count in (1, 6):
        page.locator("#roles").fill(str(count))
        branches = fcluster(links, count, "maxclust")
        shown = dict(zip(column(page, 1), column(page, 2), strict=True))
        pairs = {(shown[name], branch) for name, branch in zip(NAMES, branches, strict=True)}
        assert len(pairs) == len(set(branches)) == len(set(shown.values())) == count
        assert page.evaluate("document.getElementById('map').data.length") == count
        assert page.locator("#roles-shown").inner_text().startswith(str(count))


def test_dark_mode_is_followed_at_once_and_nothing_is_wider_than_a_phone(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"document.getElementById('heatmap').layout.font.color === '{DARK[INK]}'")
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(f"document.documentElement.scrollWidth <= {width}")
    # Text of 8 points stays above 9 pixels.
    shrunk = page.locator("figure img:visible").evaluate_all("all => all.map(i => i.clientWidth / i.naturalWidth)")
    assert min(shrunk) > 0.9


def test_a_sampled_graph_has_blanks_and_no_tree(browser_page: Any, tmp_path: Path) -> None:
    graph = gs.graphs.uniform(24, 60, seed=0)
    browser_page.goto(make_page(tmp_path, graph))
    browser_page.wait_for_selector("html[data-ready]")
    drawn = browser_page.evaluate("document.getElementById('heatmap').data[0].z").copy()
    assert sum(value is not None for row in drawn for value in row) == 120
    assert browser_page.locator("#roles").count() == browser_page.locator("#map").count() == 0


def test_without_javascript_everything_is_there_as_pictures(browser_page: Any, address: str) -> None:
    context = browser_page.context.browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(address)
    pictures = still.locator("figure img")
    assert pictures.count() == 4
    assert all(pictures.nth(at).is_visible() for at in range(4))
    assert still.locator("#heatmap").is_hidden()
    assert still.locator("#agents tbody tr").count() == 24
    context.close()
