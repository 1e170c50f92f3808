from __future__ import annotations

import numpy as np
import pytest

from graphsnd.plots import Study
from graphsnd.plots.matrix import draw_contributions, draw_heatmap, draw_tree, heatmap_figure
from graphsnd.plots.style import group_look, new_figure


def test_the_heatmap_is_in_the_order_of_the_tree(small: Study) -> None:
    image = heatmap_figure(small).axes[0].images[0]
    order = small.tree.order
    np.testing.assert_array_equal(image.get_array(), small.matrix.numpy()[np.ix_(order, order)])
    assert draw_heatmap(new_figure(1, 1).subplots(), np.zeros((401, 401))).get_interpolation() == "antialiased"


def test_branches_of_one_group_take_its_colour(small: Study) -> None:
    ax = new_figure(4, 4).subplots()
    draw_tree(ax, small.tree, np.zeros(24, dtype=int))
    assert [collection.get_colors()[0][0] for collection in ax.collections] == [pytest.approx(0.0)]
    assert group_look(0)[0] == "#0072B2"


@pytest.mark.parametrize(("agents", "bars"), [(30, 30), (401, 0)])
def test_contributions_are_sorted_bars_or_an_area(agents: int, bars: int) -> None:
    ax = new_figure(4, 4).subplots()
    draw_contributions(ax, np.random.default_rng(0).random(agents))
    heights = [bar.get_height() for bar in ax.patches]
    assert len(heights) == bars
    assert heights == sorted(heights, reverse=True)
    assert len(ax.collections) == (bars == 0)
