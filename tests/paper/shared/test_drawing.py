from __future__ import annotations

import numpy as np

from graphsnd.plots.style import new_figure
from paper.experiment import Number
from paper.shared.drawing import error_bars, make_log, write_below


def test_bars_ticks_and_words() -> None:
    ax = new_figure(4, 3).subplots()
    error_bars(ax, [1, 10], [Number(2.0, 1.0, 4.0), Number(0.3)], color="k")
    (segments,) = ax.containers[0].lines[2]
    assert [segment[:, 1].tolist() for segment in segments.get_segments()] == [[1.0, 4.0], [0.3, 0.3]]
    make_log(ax, x=[1, 10])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "10"]
    low, high = ax.get_ylim()
    assert all(low <= tick <= high for tick in ax.get_yticks())
    assert np.isin([0.5, 1, 2], ax.get_yticks()).all()
    write_below(ax, 1.0, "no gain")
    assert ax.texts[0].get_text() == "no gain"
