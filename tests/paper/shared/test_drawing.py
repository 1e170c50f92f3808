from __future__ import annotations

from graphsnd.plots.style import new_figure
from paper.experiment import Number
from paper.shared.drawing import error_bars


def test_bars_end_where_numbers_do() -> None:
    ax = new_figure(4, 3).subplots()
    error_bars(ax, [1, 10], [Number(2.0, 1.0, 4.0), Number(0.3)], color="k")
    (segments,) = ax.containers[0].lines[2]
    assert [segment[:, 1].tolist() for segment in segments.get_segments()] == [[1.0, 4.0], [0.3, 0.3]]
