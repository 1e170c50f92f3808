from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import plots
from graphsnd.plots import Study
from graphsnd.plots.demo import figures
from graphsnd.plots.measured import measured_panels
from graphsnd.plots.network import graph_panel
from graphsnd.plots.tree import behaviour_map, cluster


def _detail(graph: gs.Graph, team: gs.Behavior) -> plots.Detail:
    return plots.detail(team, graph, None, gs.measure(team, graph))


def _all(study: Study) -> dict[str, Callable[[], Any]]:
    team, n = study.team.behavior, study.team.behavior.agents
    whole, some = (_detail(graph, team) for graph in (gs.graphs.complete(n), gs.graphs.uniform(n, 40)))
    return {
        **figures(study),
        "panel": lambda: graph_panel(study, study.local[0]),
        "measured": lambda: plots.measured_figure(whole),
        "measured, sparse": lambda: plots.measured_figure(some),
        "measured, alone": lambda: measured_panels(some)[0],
    }


def test_every_figure_labels_its_axes_with_units(small: Study) -> None:
    for name, draw in _all(small).items():
        figure = draw()
        assert figure.axes, name
        for ax in figure.axes:
            if ax.get_label() == "<colorbar>":
                assert "[" in ax.get_ylabel(), name
            else:
                assert ax.get_xlabel(), name
                # Rows named by their tick labels need no name for the axis itself.
                assert ax.get_ylabel() or any(tick.get_text() for tick in ax.get_yticklabels()), name


def test_no_text_leaves_its_figure(small: Study) -> None:
    for name, draw in _all(small).items():
        figure = draw()
        figure.draw_without_rendering()
        box, outer = figure.get_tightbbox(), figure.bbox_inches
        assert box.x0 > -0.02, name
        assert box.y0 > -0.02, name
        assert box.x1 < outer.x1 + 0.02, name
        assert box.y1 < outer.y1 + 0.02, name


def test_png_and_svg(small: Study, tmp_path: Path) -> None:
    figure = plots.contributions_figure(small.contributions)
    assert plots.save_png(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    address = plots.svg_uri(figure)
    svg = base64.b64decode(address.removeprefix("data:image/svg+xml;base64,"))
    assert b"<svg" in svg
    again = plots.svg_uri(plots.contributions_figure(small.contributions))
    assert again == address


def test_drawing_leaves_matplotlib_as_it_was(small: Study) -> None:
    before = dict(matplotlib.rcParams)
    plots.hero_figure(small)
    assert dict(matplotlib.rcParams) == before


def test_the_hero_is_small_enough_for_a_readme(small: Study, tmp_path: Path) -> None:
    path = plots.save_png(plots.hero_figure(small), tmp_path / "hero.png", dpi=120)
    assert path.stat().st_size < 400_000


@pytest.mark.parametrize("n", [2, 600])
def test_measured_figures_of_odd_sizes(n: int, tmp_path: Path) -> None:
    team = gs.Deterministic(torch.randn(3, n, 2, generator=torch.Generator().manual_seed(0)))
    for graph in (gs.graphs.complete(n), gs.graphs.uniform(n, 1), gs.Graph(n, torch.empty(0, 2, dtype=torch.int64))):
        plots.save_png(plots.measured_figure(_detail(graph, team)), tmp_path / "a.png", dpi=40)


def test_detail_of_the_complete_graph_is_the_matrix_reordered() -> None:
    team = gs.Deterministic(torch.tensor([[[0.0], [9.0], [1.0], [8.0]]]))
    found = _detail(gs.graphs.complete(4), team)
    order = cluster(gs.pairwise(team)).order
    matrix = gs.pairwise(team).numpy()[np.ix_(order, order)]
    for (i, j), distance in zip(found.edges, found.distances, strict=True):
        assert matrix[i, j] == distance


def test_detail_draws_at_most_a_million_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.plots.measured.DRAWN", 10)
    team = gs.Deterministic(torch.randn(3, 8, 2))
    found = _detail(gs.graphs.uniform(8, 20), team)
    assert len(found.edges) == len(found.distances) == 10
    assert found.drawn == "10 of the measured pairs"
    monkeypatch.setattr("graphsnd.plots.measured.ORDERED", 5)
    found = plots.detail(team, None, None, gs.measure(team))
    assert len(found.edges) == 10
    assert found.drawn == "10 of all pairs"


def test_the_map_keeps_distances_that_fit_into_the_plane() -> None:
    points = torch.randn(9, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    matrix = torch.cdist(points, points)
    drawn = torch.from_numpy(behaviour_map(matrix))
    torch.testing.assert_close(torch.cdist(drawn, drawn), matrix, atol=1e-6, rtol=1e-6)
