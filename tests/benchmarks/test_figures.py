from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.figures import make_log, speed_figure

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "speed" / "cpu-2-cores.json"


def test_the_figure_is_labelled() -> None:
    (ax,) = speed_figure([json.loads(COMMITTED.read_text(encoding="utf-8"))]).axes
    assert ax.get_xlabel() == "agents, n"
    assert ax.get_ylabel().endswith("[ms]")


def test_logarithmic_axes_have_the_ticks_that_lie_within() -> None:
    ax = Figure().subplots()
    ax.plot([1, 1000], [0.3, 4.0])
    make_log(ax, [1, 1000], [0.02, 0.5, 1, 2, 50])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "1,000"]
    assert ax.get_yticks().tolist() == [0.5, 1, 2]
