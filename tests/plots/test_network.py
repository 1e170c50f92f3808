from __future__ import annotations

from graphsnd.plots import Study
from graphsnd.plots.network import graph_figure, graphs_figure


def test_sampled_graphs_lie_on_the_map_of_behaviour_and_local_ones_in_the_world(small: Study) -> None:
    axes = graphs_figure(small).axes
    assert [ax.get_title(loc="left") for ax in axes] == [one.spec for one in (*small.sampled, *small.local)]
    assert all("map of behaviour" in ax.get_xlabel() for ax in axes[:3])
    assert all("world" in ax.get_xlabel() for ax in axes[3:])
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, False] * 2


def test_every_edge_is_a_line(small: Study) -> None:
    one = small.local[0]
    [ax] = graph_figure(small, one).axes
    assert len(ax.collections[0].get_segments()) == one.graph.m
    assert ax.get_ylabel()
