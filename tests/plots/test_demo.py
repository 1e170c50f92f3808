from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import graphsnd as gs
from graphsnd.plots.demo import FIGURES
from graphsnd.plots.measurement import PANELS, measurement_figure, pair_distances
from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import draw_panel
from graphsnd.plots.style import phone_figure


def _all(study: Study) -> dict[str, Callable[[], Any]]:
    team, n = study.team.behavior, study.team.behavior.agents
    every, sparse = (
        pair_distances(team, graph, None, gs.measure(team, design=graph))
        for graph in (gs.graphs.complete(n), gs.graphs.uniform(n, 40))
    )
    return {
        **{name: partial(draw, study) for name, draw in FIGURES.items()},
        "graph alone": lambda: phone_figure(3.9, draw_panel, study.local[0], study),
        "measurement": lambda: measurement_figure(every),
        "measurement, sparse": lambda: measurement_figure(sparse),
        "measurement, alone": lambda: phone_figure(3.6, PANELS[0], sparse),
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
