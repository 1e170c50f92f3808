from __future__ import annotations

from paper.control.figure import draw_study
from paper.control.logs import split_runs
from paper.control.study import summarise_study
from tests.paper.control_rows import noisy
from tests.training import control_settings, control_task

TASK = control_task(
    10, (0.12, 0.15), ("complete", "bernoulli:0.1"), (0, 1, 2), settings=control_settings(iterations=20)
)


def test_a_partial_study_is_drawn() -> None:
    left_out = [run for run in TASK.runs() if run.seed == 2 or (run.target == 0.15 and run.arm != "complete")]
    rows = [row for run in TASK.runs() if run not in left_out for row in noisy(run, 20)]
    study = summarise_study(TASK, 5, split_runs(rows))
    assert (len(study.missing), study.agents) == (len(left_out), 10)
    figure = draw_study(study)
    figure.canvas.draw()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert {"Diversity, target 0.12", "Diversity, target 0.15"} <= set(titles)
    assert "6 of 12 runs are missing" in figure.legends[0].get_title().get_text()
