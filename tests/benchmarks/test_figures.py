from __future__ import annotations

import json
from pathlib import Path

from benchmarks.figures import FIGURES

ROOT = Path(__file__).parents[2]
COMMITTED = {"speed": "benchmarks/results/speed/cpu-2-cores.json", "designs": "paper/results/designs/cpu-2-cores.json"}


def test_figures_are_labelled() -> None:
    for name, figure in FIGURES.items():
        axes = figure([json.loads((ROOT / COMMITTED[name]).read_text(encoding="utf-8"))]).axes
        assert all(ax.get_xlabel() for ax in axes[-1:])
        assert axes[0].get_ylabel().endswith("]")
