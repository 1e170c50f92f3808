from __future__ import annotations

import pytest

from paper.designs_figure import Data, draw_designs
from paper.rows import decode
from paper.runner import RESULTS, read_result


@pytest.mark.parametrize(("scale", "groups"), [("laptop", 2), ("paper", 3)])
def test_committed_results_are_drawn(scale: str, groups: int) -> None:
    figure = draw_designs(decode(Data, read_result(RESULTS / "designs" / f"{scale}.json").data))
    assert len(figure.axes) == 2 * groups
    assert len(figure.legends[0].get_texts()) == 9
    figure.canvas.draw()
