from __future__ import annotations

import json
from pathlib import Path

from benchmarks.figures import speed_figure

COMMITTED = Path(__file__).parents[2] / "benchmarks" / "results" / "speed" / "cpu-2-cores.json"


def test_the_figure_is_labelled() -> None:
    (ax,) = speed_figure([json.loads(COMMITTED.read_text(encoding="utf-8"))]).axes
    assert ax.get_xlabel() == "agents, n"
    assert ax.get_ylabel().endswith("[ms]")
