from __future__ import annotations

from benchmarks import training, worlds
from benchmarks.__main__ import _cell
from benchmarks.figures import training_figure, worlds_figure

TIME = {"median_s": 0.002, "min_s": 0.001, "q1_s": 0.001, "q3_s": 0.003}
RESULT = {
    "device": "cpu",
    "hardware": {"threads": 2},
    "worlds": [
        {"world": "navigation", "agents": 100, "environments": 32, "ratio": 50.0,
         "contestants": {"graphsnd": TIME, "vmas": {**TIME, "median_s": 0.1}}},
        {"world": "navigation", "agents": 1000, "environments": 32, "ratio": None, "contestants": {"graphsnd": TIME}},
    ],
}  # fmt: skip
TRAINING = {"device": "cpu", "hardware": {"threads": 2}, "agents": 4, "runs": 1, "samples": 64, "gradient_steps": 8,
            "rollout": TIME, "update": TIME, "iteration": TIME}  # fmt: skip


def test_tables_have_a_row_for_each_case() -> None:
    [(steps, columns)], [(iterations, _)] = worlds.tables(RESULT).values(), training.tables(TRAINING).values()
    assert [_cell(row, "contestants.vmas") for row in steps] == ["100 ms", "-"]
    assert "contestants.vmas" in columns
    assert _cell(iterations[0], "rollout") == "2.00 ms"


def test_figures_are_labelled() -> None:
    ax = worlds_figure([RESULT]).axes[0]
    assert ax.get_xlabel().endswith("[ms]")
    assert len(ax.patches) == 3
    assert ax.get_yticklabels()[0].get_text().startswith("navigation")
    top, bottom = (worlds_figure([RESULT] * count).axes[0].get_ylim() for count in (1, 2))
    assert top == bottom  # panels share the axis, which is turned over once
    assert top[0] > top[1]  # so that the first world is above
    ax = training_figure([TRAINING, TRAINING]).axes[0]
    assert ax.get_xlabel().endswith("[s]")
    assert len(ax.patches) == 4
