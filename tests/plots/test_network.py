from __future__ import annotations

import numpy as np
import pytest
import torch

import graphsnd as gs


def test_every_edge_is_a_line() -> None:
    positions, drawn = torch.randn(7, 2), gs.graphs.uniform(7, 9, seed=0)
    x, y = gs.plots.graph(drawn, positions=positions).lines[0].get_data()
    ends = np.stack([x, y], 1).reshape(-1, 3, 2)[:, :2]
    np.testing.assert_allclose(ends, positions[drawn.edges])


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
