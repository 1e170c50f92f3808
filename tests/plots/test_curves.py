from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.plots.style import new_figure


def test_a_curve_is_the_mean_and_its_band_the_range_of_what_was_measured() -> None:
    runs = torch.tensor([[1.0, float("nan"), 3.0, float("nan")], [3.0, 5.0, 9.0, float("nan")]], requires_grad=True)
    ax = gs.plots.over_time([0, 10, 20, 30], {"a": runs}, ax=new_figure(3, 3).subplots())
    line = ax.lines[0]
    assert line.get_xdata().tolist() == [0, 10, 20]  # at 30 nothing was measured
    assert line.get_ydata().tolist() == [2, 5, 6]
    band = ax.collections[0].get_paths()[0].vertices
    ends = {x: sorted({y for at, y in band.tolist() if at == x}) for x in (0.0, 10.0, 20.0)}
    assert ends == {0.0: [1, 3], 10.0: [5], 20.0: [3, 9]}


def test_other_summaries_steps_and_a_target() -> None:
    curves = {"a": np.ones((3, 2)), "$b": np.zeros(5)}
    steps = {"a": [1, 2], "$b": range(5)}
    median = lambda runs: (np.median(runs, 0),) * 3  # noqa: E731
    ax = gs.plots.over_time(steps, curves, summary=median, target=0.5, ylabel="reward")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["target 0.5", "a", r"\$b"]
    assert [len(line.get_xdata()) for line in ax.lines] == [2, 2, 5]
    assert ax.get_ylabel() == "reward"


@pytest.mark.parametrize("count", [2, 6])
def test_the_legend_covers_no_curve(count: int) -> None:
    steps = np.arange(50)
    ax = gs.plots.over_time(steps, {f"run {k}": (steps - 12.0 * k) ** 2 for k in range(count)}, target=900.0)
    ax.figure.draw_without_rendering()
    lowest = ax.get_legend().get_window_extent().y0
    for line in ax.lines:
        assert ax.transData.transform(line.get_xydata())[:, 1].max() < lowest


@pytest.mark.parametrize("curves", [{}, {"a": np.zeros((2, 3))}, {"a": np.zeros((1, 2, 4))}, {"a": np.zeros((0, 4))}])
def test_curves_that_do_not_fit_are_refused(curves: dict[str, np.ndarray]) -> None:
    with pytest.raises(gs.InputError, match="curves"):
        gs.plots.over_time(range(4), curves)
