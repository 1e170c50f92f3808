from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.plots.study import Study
from graphsnd.plots.study_figures import draw_panel, graphs_figure
from graphsnd.plots.style import phone_figure


def test_sampled_graphs_lie_on_the_map_of_behaviour_and_local_ones_in_the_world(small: Study) -> None:
    axes = graphs_figure(small).axes
    assert [ax.get_title(loc="left") for ax in axes] == [one.spec for one in (*small.sampled, *small.local)]
    assert all("map of behaviour" in ax.get_xlabel() for ax in axes[:3])
    assert all("world" in ax.get_xlabel() for ax in axes[3:])
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, False] * 2


def test_every_edge_is_a_line(small: Study) -> None:
    one = small.local[0]
    [ax] = phone_figure(3.9, draw_panel, one, small).axes
    x, y = ax.lines[0].get_data()
    drawn = np.stack([x, y], 1).reshape(-1, 3, 2)[:, :2]
    np.testing.assert_array_equal(drawn, small.team.positions.double().numpy()[one.graph.edges])
    assert ax.get_ylabel()


def test_edges_join_the_places_of_their_agents_in_the_colours_of_their_distances() -> None:
    points = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    team = gs.Deterministic(points[None].requires_grad_()).with_names(list("abcdef"))
    graph = gs.graphs.circulant(6, 2)
    ax = gs.plots.graph(graph, team)
    lines = ax.collections[0]
    lengths = [np.linalg.norm(one[1] - one[0]) for one in lines.get_segments()]
    expected = gs.pairwise(team, graph=graph).detach()
    np.testing.assert_allclose(lengths, expected, rtol=1e-4)
    np.testing.assert_allclose(lines.get_array(), expected, rtol=1e-6)
    assert [text.get_text() for text in ax.texts] == list("abcdef")
    assert "6 of 15 pairs" in ax.get_title(loc="left")


def test_a_graph_alone_is_a_circle_and_other_numbers_of_agents_are_refused() -> None:
    graph = gs.graphs.complete(5)
    offsets = gs.plots.graph(graph).collections[0].get_offsets()
    np.testing.assert_allclose(np.linalg.norm(offsets, axis=1), 1.0)
    with pytest.raises(gs.InputError, match="source"):
        gs.plots.graph(graph, torch.zeros(4, 4))
    with pytest.raises(gs.InputError, match="positions"):
        gs.plots.graph(graph, positions=torch.zeros(5, 3))
