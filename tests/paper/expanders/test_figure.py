from __future__ import annotations

import pytest

from paper.expanders.comparison import Data
from paper.expanders.families import Family
from paper.expanders.figure import LOOKS, draw_expanders
from paper.rows import decode
from paper.runner import RESULTS, read_result


def check_figure(data: Data) -> None:
    figure = draw_expanders(data)
    assert len(figure.axes) == 3
    assert all(ax.get_xlabel() and ax.get_ylabel() and ax.get_title(loc="left") for ax in figure.axes)
    shown = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"random regular", "Bernoulli", "uniform"} <= shown
    figure.canvas.draw()


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_committed_results_are_drawn(scale: str) -> None:
    check_figure(decode(Data, read_result(RESULTS / "expanders" / f"{scale}.json").data))


def test_every_family_has_a_look() -> None:
    assert set(Family) == set(LOOKS)
