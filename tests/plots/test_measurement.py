from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd import plots
from graphsnd.plots.clustering import cluster
from graphsnd.plots.measurement import PairDistances, measurement_figure, pair_distances


def _pairs(graph: gs.Graph, team: gs.Behavior) -> PairDistances:
    return pair_distances(team, graph, None, gs.measure(team, design=graph))


@pytest.mark.parametrize("n", [2, 600])
def test_measurement_figures_of_odd_sizes(n: int, tmp_path: Path) -> None:
    team = gs.Deterministic(torch.randn(3, n, 2, generator=torch.Generator().manual_seed(0)))
    for graph in (gs.graphs.complete(n), gs.graphs.uniform(n, 1), gs.Graph(n, torch.empty(0, 2, dtype=torch.int64))):
        plots.style.save_png(measurement_figure(_pairs(graph, team)), tmp_path / "a.png", dpi=40)


def test_the_picture_of_the_complete_graph_is_the_matrix_reordered() -> None:
    team = gs.Deterministic(torch.tensor([[[0.0], [9.0], [1.0], [8.0]]]))
    pairs = _pairs(gs.graphs.complete(4), team)
    order = cluster(gs.pairwise(team)).order
    drawn = measurement_figure(pairs).axes[0].images[0].get_array()
    np.testing.assert_array_equal(drawn, gs.pairwise(team).numpy()[np.ix_(order, order)])


def test_at_most_a_million_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphsnd.plots.measurement.DRAWN", 10)
    team = gs.Deterministic(torch.randn(3, 8, 2))
    pairs = _pairs(gs.graphs.uniform(8, 20), team)
    assert len(pairs.edges) == len(pairs.distances) == 10
    assert pairs.drawn == "10 of the measured pairs"
    monkeypatch.setattr("graphsnd.plots.measurement.ORDERED", 5)
    pairs = pair_distances(team, None, None, gs.measure(team))
    assert len(pairs.edges) == 10
    assert pairs.drawn == "10 of all pairs"


def test_units() -> None:
    loc = torch.zeros(4, 3, 2)
    graph = gs.graphs.complete(3)
    assert _pairs(graph, gs.Deterministic(loc)).unit == "action units"
    assert _pairs(graph, gs.Categorical(logits=loc)).unit == "total variation, at most 1"
    both = gs.Joint([gs.Deterministic(loc), gs.Categorical(logits=loc)], [1, 3])
    assert _pairs(graph, both).unit == "0.25 wasserstein + 0.75 total-variation"


@pytest.mark.parametrize("edges", [None, [[0, 1], [1, 3]]])
def test_names_stay_with_their_agents(edges: list[list[int]] | None) -> None:
    places = {"a": 0.0, "b": 9.0, "c": 1.0, "d": 8.5}
    team = gs.Deterministic({name: torch.tensor([[place]]) for name, place in places.items()})
    graph = gs.graphs.complete(4) if edges is None else gs.Graph(4, torch.tensor(edges))
    pairs = _pairs(graph, team)
    for (i, j), distance in zip(pairs.edges, pairs.distances, strict=True):
        assert distance == abs(places[pairs.names[i]] - places[pairs.names[j]])
    heatmap, _, agents = measurement_figure(pairs).axes[:3]
    order = range(4) if pairs.tree is None else pairs.tree.order
    assert [label.get_text() for label in heatmap.get_yticklabels()] == [pairs.names[agent] for agent in order]
    means = {"a": 9.0, "b": 4.75, "d": 0.5}
    if edges is None:
        means = {name: sum(abs(place - other) for other in places.values()) for name, place in places.items()}
    labels = [label.get_text() for label in agents.get_xticklabels()]
    assert [means[label] for label in labels] == sorted(means.values(), reverse=True)
    assert set(labels) == set(means)
