from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.spatial.distance
import torch
from matplotlib.colors import to_hex

import graphsnd as gs
from graphsnd.errors import InputError
from graphsnd.plots.matrix import draw_bars
from graphsnd.plots.style import group_look, new_figure

POINTS = torch.tensor([[0.0, 0.0], [9.0, 1.0], [1.0, 0.0], [8.0, 1.0], [4.0, 4.0]], requires_grad=True)
MATRIX = torch.cdist(POINTS, POINTS)
NAMES = ("ann", "bob", "$cid", "dan", "eve")


@pytest.mark.parametrize("order", ["tree", "names", "contribution", [4, 3, 2, 1, 0]])
def test_cells_belong_to_the_names_beside_them(order: str | list[int]) -> None:
    ax = gs.plots.heatmap(MATRIX, names=NAMES, order=order)
    labels = [tick.get_text().replace("\\", "") for tick in ax.get_yticklabels()]
    places = [NAMES.index(name) for name in labels]
    np.testing.assert_allclose(ax.images[0].get_array(), MATRIX.detach()[places][:, places])
    condensed = scipy.spatial.distance.pdist(POINTS.detach().double())
    means = MATRIX.detach().double().sum(1) / 4
    expected = {
        "tree": scipy.cluster.hierarchy.leaves_list(
            scipy.cluster.hierarchy.linkage(condensed, "average", optimal_ordering=True)
        ).tolist(),
        "names": [0, 1, 2, 3, 4],
        "contribution": sorted(range(5), key=lambda agent: -means[agent]),
    }
    assert places == (order if isinstance(order, list) else expected[order])


def test_names_of_many_agents_are_thinned_out_and_that_is_said() -> None:
    team = gs.Deterministic(torch.randn(4, 100, 2)).with_names([f"agent number {k}" for k in range(100)])
    for draw in (gs.plots.heatmap, gs.plots.contributions):
        ax = draw(team)
        ax.figure.draw_without_rendering()
        boxes = sorted((tick.get_window_extent() for tick in ax.get_xticklabels()), key=lambda box: box.x0)
        assert 20 < len(boxes) < 60
        assert all(one.x1 <= other.x0 + 1 for one, other in pairwise(boxes))  # boxes, with the space between lines
        assert "is named" in ax.get_xlabel()


def test_the_tree_stands_above_the_heatmap_and_branches_of_one_group_take_its_colour() -> None:
    ax = gs.plots.heatmap(MATRIX, groups=[0, 1, 0, 1, 0])
    colours = {to_hex(colour) for collection in ax.child_axes[-1].collections for colour in collection.get_colors()}
    assert {group_look(0)[0].lower(), group_look(1)[0].lower()} <= colours
    assert not any(len(child.collections) for child in gs.plots.heatmap(MATRIX, order="names").child_axes[1:])


def test_identical_agents_have_a_flat_tree_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.plots.heatmap(torch.zeros(5, 5))


def test_an_estimate_is_drawn_from_what_it_kept_and_blank_elsewhere() -> None:
    team = gs.Deterministic(torch.randn(40, 6, 2)).with_names(list("abcdef"))
    whole, some = gs.measure(team), gs.measure(team, design=gs.graphs.circulant(6, 2))
    matrix = gs.pairwise(team).numpy()
    ax = gs.plots.heatmap(whole)
    order = ["abcdef".index(tick.get_text()) for tick in ax.get_yticklabels()]
    np.testing.assert_allclose(ax.images[0].get_array(), matrix[np.ix_(order, order)], rtol=1e-6)
    drawn = gs.plots.heatmap(some).images[0].get_array().filled(np.nan)
    measured = np.eye(6, dtype=bool)
    for i, j in gs.graphs.circulant(6, 2).edges.tolist():
        measured[i, j] = measured[j, i] = True
    np.testing.assert_allclose(drawn[measured], matrix[measured], rtol=1e-6)
    assert np.isnan(drawn[~measured]).all()
    with pytest.raises(InputError, match="all pairs"):
        gs.plots.map(some)
    with pytest.raises(InputError, match="one without"):
        gs.plots.heatmap(gs.measure(team, design="agents:4"))
    assert gs.roles(whole).labels.equal(gs.roles(team).labels)
    with pytest.raises(InputError, match="all pairs"):
        gs.roles(some)


def test_the_map_keeps_distances_and_says_how_much_of_them() -> None:
    ax = gs.plots.map(MATRIX, names=NAMES, groups=[0, 0, 0, 1, 1])
    drawn = np.concatenate([part.get_offsets() for part in ax.collections])
    np.testing.assert_allclose(scipy.spatial.distance.pdist(drawn), scipy.spatial.distance.pdist(POINTS.detach()), 1e-5)
    assert "100% of squared distances" in ax.get_xlabel()
    assert [text.get_text().replace("\\", "") for text in ax.texts] == list(NAMES)


def test_names_on_the_map_keep_clear_of_each_other() -> None:
    places = np.array([[0.0, 0.0], [0.01, 0.0], [0.02, 0.0], [5.0, 5.0]])
    ax = gs.plots.map(scipy.spatial.distance.squareform(scipy.spatial.distance.pdist(places)), names=list("abcd"))
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for k, one in enumerate(boxes) for other in boxes[:k])


@pytest.mark.parametrize("agents", [30, 401])
def test_contributions_are_sorted_bars_or_one_line(agents: int) -> None:
    ax = new_figure(4, 4).subplots()
    draw_bars(ax, np.random.default_rng(0).random(agents), [str(k) for k in range(agents)])
    heights = [bar.get_height() for bar in ax.patches] if agents < 400 else ax.patches[0].get_data().values.tolist()
    assert len(heights) == agents
    assert heights == sorted(heights, reverse=True)


def test_contributions_of_a_behaviour_are_those_of_the_metric() -> None:
    team = gs.Categorical(logits=torch.randn(7, 6, 3, requires_grad=True))
    ax = gs.plots.contributions(team, distance=gs.Hellinger())
    expected = gs.contributions(team, gs.Hellinger()).sort(descending=True).values
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], expected.detach(), rtol=1e-6)
    assert "hellinger" in ax.get_ylabel()


def test_other_orders_and_names_are_refused() -> None:
    for order in ("size", [0, 0, 1, 2, 3]):
        with pytest.raises(gs.InputError, match="order"):
            gs.plots.heatmap(MATRIX, order=order)
    with pytest.raises(gs.InputError, match="names"):
        gs.plots.map(MATRIX, names=["a"] * 5)


@pytest.mark.parametrize("draw", [gs.plots.heatmap, gs.plots.map, gs.plots.contributions])
def test_other_groups_axes_and_things_without_numbers_are_refused(draw: Any) -> None:
    matrix = torch.ones(3, 3) - torch.eye(3)
    for groups in ([0, 1], [0, 1, np.nan], "abc", object()):
        with pytest.raises(InputError, match="groups"):
            draw(matrix, groups=groups, ax=new_figure(2, 2).subplots())
    for ax in ("axes", new_figure(2, 2)):
        with pytest.raises(InputError, match="ax"):
            draw(matrix, ax=ax)
    nan = torch.tensor([[0.0, float("nan")], [1.0, 0.0]])
    no_matrices = torch.zeros(3, 2), torch.zeros(3), torch.zeros(1, 1), nan
    for source in (object(), matrix.to_sparse(), matrix.to("meta"), *no_matrices):
        with pytest.raises(InputError, match="source"):
            draw(source)
    ax = new_figure(2, 2).subplots()
    assert draw(matrix.bfloat16(), ax=ax) is ax
