"""The page of a measurement, as text; tests/plots/test_browser.py drives it."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import plots
from graphsnd.analysis import level_curve
from graphsnd.plots.charts import contributions_chart, graph_chart, heatmap_chart, map_chart
from graphsnd.plots.distances import read_distances
from graphsnd.plots.intervals import draw_levels
from graphsnd.plots.page import _agents_rows, report, report_figure
from graphsnd.plots.style import save_png

NASTY = "</script><img src=x onerror=alert(1)>\x1b&"


class Outline(HTMLParser):
    """Collects what a page refers to, and whether its tags balance."""

    VOID = frozenset({"meta", "img", "link", "input", "source"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.alts: list[str] = []
        self.rows: list[tuple[str, str]] = []  # of tables, with the name of each
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        values = {key: value or "" for key, value in attrs}
        kept = ((self.ids, "id"), (self.links, "href"), (self.sources, "src"), (self.sources, "srcset"))
        for found, key in kept:
            found += [values[key]] if key in values else []
        if tag == "img":
            self.alts.append(values.get("alt", ""))
        if tag == "tr" and "id" in values:
            self.rows.append((values["id"], values["class"]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def random_team(agents: int) -> gs.Behavior:
    team = gs.Deterministic(torch.randn(40, agents, 2, generator=torch.Generator().manual_seed(0)))
    return team.with_names([NASTY, *(f"agent {k}" for k in range(agents - 1))])


@pytest.fixture
def no_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.plots.page.find_spec", lambda name: None)


@pytest.mark.parametrize(
    ("agents", "design", "pictures"),
    [(2, None, 4), (4, None, 4), (6, "uniform:9", 4), (6, "agents:4", 1), (370, None, 1), (600, "uniform:900", 3)],
)
def test_pages_show_what_the_estimate_kept(agents: int, design: str | None, pictures: int, no_plotly: None) -> None:
    estimate = gs.measure(random_team(agents), design=design)
    page = report(estimate, title=NASTY)
    outline = Outline(page)
    assert outline.open == []
    assert len(outline.alts) == pictures
    assert all(outline.alts)
    sources = outline.sources + outline.links
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert len(sources) == 2 * pictures  # for light and for dark readers
    assert page.count("<script") == 1
    assert NASTY not in page
    assert "\x1b" not in page
    assert estimate.number() in page
    assert ("Which agents differ" in page) == (estimate.pair_distances is not None)


def test_levels_of_diversity_have_a_page() -> None:
    runs = {0: [1.0, 1.2, 1.1], 0.3: [1.6, 1.5, 1.4], 0.5: [1.2], None: [1.2, 1.3, 1.1]}
    curve = level_curve(runs, runs, [[0.0] * 3, [0.31, 0.29, 0.3], [0.5], [0.8, 0.9, 0.7]])
    page = report({"complete": curve, NASTY: curve}, title=NASTY)
    outline = Outline(page)
    assert outline.open == []
    assert outline.alts == ["Reward against diversity."]
    assert (page.count("<script"), NASTY in page) == (1, False)
    assert page.count(f'<div class="value">{curve.verdict}</div>') == 2
    assert all(f">{cell}</t" in page for row in curve.rows() for cell in row)
    alone = report({"complete": curve})  # of one design
    assert (">Verdict</div>" in alone, "complete" in alone) == (True, False)
    assert "How much diversity does the task want?" in report(curve)
    assert "Best other level, difference from unconstrained" not in report(
        level_curve([0, 0.3], [[1.0, 1.2], [1.0, 1.1]])
    )


def test_levels_are_drawn_at_the_snd_they_reached() -> None:
    curve = level_curve([0, 0.3, None], [[1.0, 1.2], [1.6, 1.4], [1.2, 1.0]], [0.0, 0.35, 0.2])
    axes = draw_levels({"": curve})
    line, ring = (one for one in axes.lines if one.get_marker() != "_")  # the ends of intervals
    assert line.get_xdata().tolist() == [0.0, 0.35]
    assert line.get_ydata().tolist() == pytest.approx([1.1, 1.5])
    assert (ring.get_xdata().tolist(), ring.get_markerfacecolor()) == ([0.2], "#FFFFFF")
    low, high = axes.collections[0].get_segments()[1][:, 1]
    assert (low, high) == pytest.approx(curve.intervals[1])
    unknown = level_curve([0, 0.3, None], [[1.0, 1.2], [1.6, 1.4], [1.2, 1.0]])
    assert draw_levels({"a": unknown, "b": curve}).get_legend() is not None


def test_the_first_card_is_the_number_with_its_uncertainty(no_plotly: None) -> None:
    estimate = gs.measure(random_team(12), design="uniform:30")
    card = report(estimate).split('<div class="card">')[1]
    assert f'<div class="value">{estimate.number()}</div>' in card
    for words in (
        "95% interval",
        "on these observations, guaranteed for every team",
        "on other observations like these, for large samples",
        "2-Wasserstein of actions, 30 of 66 pairs by uniform:30, 40 observations",
    ):
        assert words in card
    few = report(gs.measure(gs.Deterministic(torch.randn(2, 3, 2)))).split('<div class="card">')[1]
    assert "± is unknown: " in few
    fixed = report(gs.measure(random_team(6), design=gs.graphs.circulant(6, 2))).split('<div class="card">')[1]
    assert "a measure of its own" in fixed


@pytest.mark.parametrize(("agents", "design"), [(4, None), (100, None), (100, "uniform:495"), (362, None)])
def test_live_pages_are_within_ten_megabytes_and_names_cannot_leave_their_text(agents: int, design: str | None) -> None:
    pytest.importorskip("plotly")
    page = report(gs.measure(random_team(agents), design=design))
    assert len(page.encode()) < 7_000_000
    assert NASTY not in page


def test_rows_of_the_table_are_what_a_loop_gives() -> None:
    team = plots.example_team(24, 200).behavior
    matrix = gs.pairwise(team).double().numpy()
    found, estimate = gs.roles(team), gs.measure(team)
    rows = _agents_rows(read_distances(estimate), found)
    columns = ["agent", "role", "mean distance", "SND lost without", "acts most like", "at distance"]
    assert [*rows[0]] == columns
    order = sorted(range(24), key=lambda agent: -matrix[agent].sum())
    for agent, row in zip(order, rows, strict=True):
        others = [other for other in range(24) if other != agent]
        near = min(others, key=lambda other: matrix[agent, other])
        lost = matrix.sum() / 552 - matrix[np.ix_(others, others)].sum() / 506
        role = f"like {team.names[found.representatives[int(found.labels[agent])]]}"
        numbers = (f"{matrix[agent].sum() / 23:#.4g}", f"{lost:+.3g}", f"{matrix[agent, near]:#.4g}")
        assert (*row.values(),) == (team.names[agent], role, *numbers[:2], team.names[near], numbers[2])
    team = random_team(7)
    two = gs.measure(team, design=gs.Graph(7, torch.tensor([[0, 1], [0, 2]])))
    rows = _agents_rows(read_distances(two), None)
    assert {row["agent"] for row in rows} == {NASTY, "agent 0", "agent 1"}  # the others have no pair


def test_charts_hold_the_distances_under_the_names_of_their_agents() -> None:
    pytest.importorskip("plotly")
    places = {"a": 0.0, "b": 9.0, "c": 1.0, "d": 8.5}
    team = gs.Deterministic({name: torch.tensor([[place]]) for name, place in places.items()})
    given = read_distances(gs.measure(team))
    cells = heatmap_chart(given, None).data[0]
    expected = [[abs(places[one] - places[other]) for other in cells.x] for one in cells.y]
    np.testing.assert_allclose(cells.z, expected)
    bars = contributions_chart(given, [0, 1, 0, 1]).data[0]
    np.testing.assert_allclose(bars.y, [sum(abs(places[n] - at) for at in places.values()) / 3 for n in bars.x])
    parts = map_chart(given, [0, 1, 0, 1], "xy").data
    dots = {name: x for part in parts for name, x in zip(part.text, part.x, strict=True)}
    for one, other in combinations(places, 2):
        assert abs(dots[one] - dots[other]) == pytest.approx(abs(places[one] - places[other]))
    some = read_distances(gs.measure(team, design=gs.Graph(4, torch.tensor([[0, 1], [1, 3]]))))
    lines, circle = graph_chart(some).data
    ends = np.stack([circle.x, circle.y], 1)[[0, 1, 1, 3]]
    np.testing.assert_allclose(np.stack([lines.x, lines.y], 1)[[0, 1, 3, 4]], ends, atol=1e-6)
    assert circle.text == ("a<br>1 partners", "b<br>2 partners", "c<br>0 partners", "d<br>1 partners")


@pytest.mark.parametrize("design", [None, "uniform:40", "agents:4"])
def test_no_text_of_a_figure_leaves_it_and_axes_have_units(design: str | None, tmp_path: Path) -> None:
    figure = report_figure(gs.measure(plots.example_team(24, 200).behavior, design=design))
    assert save_png(figure, tmp_path / "a.png", dpi=40).stat().st_size > 5000
    box, outer = figure.get_tightbbox(), figure.bbox_inches
    assert min(box.x0, box.y0) > -0.02
    assert box.x1 < outer.x1 + 0.02
    assert box.y1 < outer.y1 + 0.02
