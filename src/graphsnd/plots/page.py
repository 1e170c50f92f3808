"""HTML pages: a measurement with its intervals, which agents differ and a table, or rewards by level of diversity."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsnd.analysis import roles
from graphsnd.analysis.grouping import Roles
from graphsnd.analysis.levels import LevelCurve
from graphsnd.errors import plural, printable
from graphsnd.estimation import Estimate
from graphsnd.estimation.estimate import KEPT
from graphsnd.graphs import Graph
from graphsnd.plots.distances import Distances, read_distances
from graphsnd.plots.intervals import draw_levels, interval_bars
from graphsnd.plots.intervals import estimate as draw_estimate
from graphsnd.plots.matrix import contributions, heatmap
from graphsnd.plots.matrix import map as draw_map
from graphsnd.plots.network import graph
from graphsnd.plots.style import png_bytes, styled_figure, theme
from graphsnd.plots.tables import format_interval, summarise

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

LARGEST = 2000  # agents up to which their distances are shown
MATRIX = 500  # agents up to which a matrix with blanks is drawn
EDGES = 5000  # pairs up to which a graph is drawn; more are unreadable


@dataclass(frozen=True)
class Picture:
    """A figure that stands alone on a page or beside others in a file."""

    alt: str  # text for readers who cannot see it
    draw: Callable[..., Any]  # draws with matplotlib on ``ax``
    chart: Callable[[], Any] | None  # the same with Plotly
    height: float  # inches, at a width of 4.8


def report(source: Estimate | LevelCurve | Mapping[str, LevelCurve], *, title: str = "") -> str:
    """Return the HTML page of a measurement, or of rewards by level of diversity: one file that loads no other.

    It shows what the estimate kept: the number, and which agents differ if the distances of single pairs were kept.
    Nothing is measured again. With Plotly (``pip install graphsnd[page]``) hovering over its charts shows the agents.

    Args:
        source: Result of :func:`graphsnd.measure` or :func:`graphsnd.analysis.level_curve`, or curves by name.
        title: Heading; chosen by the kind of source when empty.

    Example:
        >>> import torch, graphsnd as gs
        >>> page = report(gs.measure(gs.Deterministic(torch.randn(32, 6, 2))))
        >>> page[:15], "6 agents" in page
        ('<!doctype html>', True)
    """
    if not isinstance(source, Estimate):
        curves = {"": source} if isinstance(source, LevelCurve) else source
        return _levels_report(curves if len(curves) > 1 else {"": next(iter(curves.values()))}, title)
    estimate = source
    given, found = _read(estimate)
    value, *pictures = _pictures(estimate, given, found)
    pairs, values, agents = pictures[:-1], [value] if interval_bars(estimate) else [], pictures[-1:]
    return _render(
        "page.html",
        [*pairs, *values, *agents][:1],
        e=estimate,
        title=title or f"How differently do {estimate.agents:,} agents act?",
        cards=_cards(estimate, given, found),
        given=given,
        pairs=pairs,
        value=values,
        agents=agents,
        rows=[] if given is None else _agents_rows(given, found),
        full=summarise(estimate),
        limits=(KEPT, LARGEST),
    )


def _levels_report(curves: Mapping[str, LevelCurve], title: str) -> str:
    cards: list[tuple[str, ...]] = []
    for name, curve in curves.items():
        notes = [line for line in str(curve).splitlines()[1:2] if line]  # against unconstrained agents
        may = ", ".join(row[0].removesuffix(" *") for row in curve.rows() if row[0].endswith("*"))
        sure = f"{100 * curve.confidence:.4g}% intervals over seeds"
        cards.append((name or "Verdict", curve.verdict, *notes, f"May be the best level: {may} ({sure})."))
    tables = {
        name or "All levels": [dict(zip(c.heads(), row, strict=True)) for row in c.rows()] for name, c in curves.items()
    }
    picture = Picture("Reward against diversity.", partial(draw_levels, curves), None, 4.0)
    title = title or "How much diversity does the task want?"
    return _render("levels.html", [], title=title, cards=cards, tables=tables, picture=picture)


def _render(template: str, first: list[Picture], **values: Any) -> str:
    """Return a page; the first of its pictures brings Plotly's code."""
    from jinja2 import Environment, FileSystemLoader

    from graphsnd import __version__

    page = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    page.finalize = lambda text: printable(text) if type(text) is str else text
    page.filters["picture"] = partial(_picture, first=first)
    text: str = page.get_template(template).render(**values, version=__version__)
    return text


def report_figure(estimate: Estimate) -> Figure:
    """Return the pictures of :func:`report` side by side, for a file.

    Example:
        >>> import torch, graphsnd as gs
        >>> len(report_figure(gs.measure(gs.Deterministic(torch.randn(32, 6, 2)))).axes)
        4
    """
    pictures = _pictures(estimate, *_read(estimate))
    with styled_figure(5.2 * len(pictures), 4.6) as figure:
        for ax, picture in zip(figure.subplots(1, len(pictures), squeeze=False)[0], pictures, strict=True):
            picture.draw(ax=ax)
        return figure


def _picture(picture: Picture, first: list[Picture]) -> Any:
    """Return a figure as HTML; the first of a page brings Plotly's code."""
    from markupsafe import Markup, escape

    if picture.chart is not None and find_spec("plotly") is not None:
        height = f"clamp({78 * picture.height:.0f}px, {20 * picture.height:.0f}vw, {110 * picture.height:.0f}px)"
        name = f"chart-{picture.alt.split()[0].lower()}"
        look: dict[str, bool] = {"displayModeBar": False, "responsive": True}
        about = {"full_html": False, "include_plotlyjs": picture in first, "div_id": name, "default_height": height}
        return Markup(picture.chart().to_html(look, **about))
    addresses = []
    for ground in ("dark", "light"):
        with theme(ground), styled_figure(4.8, picture.height) as figure:
            picture.draw(ax=figure.subplots())
            data = base64.b64encode(png_bytes(figure)).decode("ascii")
            addresses.append(f"data:image/png;base64,{data}")
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{addresses[0]}">'
    return Markup(f'<picture>{source}<img src="{addresses[1]}" alt="{escape(picture.alt)}"></picture>')


def _read(e: Estimate) -> tuple[Distances | None, Roles | None]:
    """Return the distances that an estimate kept, and roles where these are all."""
    if e.pair_distances is None or not e.pairs_used or e.agents > LARGEST:
        return None, None
    given = read_distances(e)
    return given, roles(e) if given.complete else None


def _pictures(e: Estimate, given: Distances | None, found: Roles | None) -> list[Picture]:
    """Return the picture of the number, those of the pairs, and the one of the agents, the last two where known."""
    from graphsnd.plots import charts

    height = 1.8 + 0.25 * len(interval_bars(e))
    value = Picture("Value and intervals.", partial(draw_estimate, e), partial(charts.estimate_chart, e), height)
    if given is None:
        return [value]
    groups = None if found is None else found.labels

    def picture(alt: str, draw: Callable[..., Any], chart: Callable[..., Any], *more: Any, height: float) -> Picture:
        return Picture(alt, partial(draw, e, groups=groups), partial(chart, given, groups, *more), height)

    pictures = [value]
    if len(given.names) <= MATRIX:
        alt = "Matrix of the distances, agents that act alike side by side."
        pictures.append(picture(alt, heatmap, charts.heatmap_chart, height=4.8))
    if found is not None:
        alt = "Map of the agents, close where they act alike."
        pictures.append(picture(alt, draw_map, charts.map_chart, role_names(found), height=4.8))
    elif e.edges is not None and e.pairs_used <= EDGES:
        pairs = Graph(e.agents, e.edges, family=e.design)
        alt = "Graph of the measured pairs."
        pictures.append(Picture(alt, partial(graph, pairs), partial(charts.graph_chart, given), 4.8))
    alt = "Contributions: mean distance of each agent."
    return [*pictures, picture(alt, contributions, charts.contributions_chart, height=3.2)]


def _cards(e: Estimate, given: Distances | None, found: Roles | None) -> list[tuple[str, ...]]:
    """Return labels, values and notes: the number with its uncertainty, and what it is about."""
    sure, notes = f"{100 * e.confidence:.4g}% interval", []
    kind = "guaranteed for every team" if e.guaranteed else "for large samples"
    for ends, about in ((e.population_interval, "on other observations like these, for large samples"),
                        (None if e.exact else e.interval, f"on these observations, {kind}")):  # fmt: skip
        if ends is not None:
            notes.append(f"{sure} {format_interval(e, ends)} {about}")
    notes += [e.zero] * bool(e.zero)
    if e.observation_error is None:
        notes.append(f"± is unknown: {e.clusters}")
    what = str(e).partition(" (")[2].partition(";")[0].removesuffix(")")
    measure = e.target if e.target == "SND" else f"{e.target}, a measure of its own on this graph"
    cards: list[tuple[str, ...]] = [(measure, e.number(), *notes, what)]
    cards.append(("Agents", f"{e.agents:,}", e.pairs()))
    if given is not None:
        first = given.arrange("contribution")[0]
        mean = f"mean distance {given.contributions[first]:.4g}"
        cards.append(("Most distinctive", given.names[first], mean))
        nearest = _without_self(given)
        i, j = divmod(int(nearest.argmin()), e.agents)
        cards.append(("Most alike", f"{given.names[i]}, {given.names[j]}", f"distance {nearest[i, j]:.4g}"))
    if found is not None:
        roles_are = ", ".join(role_names(found)) if found.count > 1 else "no groups that act alike"
        cards.append((plural("Role", found.count), str(found.count), roles_are))
    return cards


def _agents_rows(given: Distances, found: Roles | None) -> list[dict[str, str]]:
    """Return a row by columns for each agent that has a measured pair, the most distinctive first."""
    nearest, names, rows = _without_self(given), given.names, []
    for agent in [agent for agent in given.arrange("contribution").tolist() if given.partners[agent]]:
        row, near = {"agent": names[agent]}, int(nearest[agent].argmin())
        if found is not None and found.count > 1:
            row["role"] = f"like {names[found.representatives[int(found.labels[agent])]]}"
        row["mean distance"] = f"{given.contributions[agent]:#.4g}"
        if found is not None:
            row["SND lost without"] = f"{float(found.loss[agent]):+.3g}"
        rows.append({**row, "acts most like": names[near], "at distance": f"{nearest[agent, near]:#.4g}"})
    return rows


def _without_self(given: Distances) -> NDArray[np.float64]:
    """Return the distances, infinite from an agent to itself and where none was measured."""
    diagonal = np.eye(len(given.names), dtype=bool)
    return np.where(diagonal | np.isnan(given.matrix), np.inf, given.matrix)


def role_names(found: Roles) -> list[str]:
    """Return a name for each role: the agent nearest to its others, and the size."""
    sizes = np.bincount(found.labels.numpy())
    return [f"like {found.names[agent]} ({size})" for size, agent in zip(sizes, found.representatives, strict=True)]
