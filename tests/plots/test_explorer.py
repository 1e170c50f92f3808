"""The live part of a page, as text; tests/plots/test_browser.py drives it."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.plots import explorer
from graphsnd.plots.measurement import PairDistances, measurement_page, pair_distances
from graphsnd.plots.summary import summarise
from tests.plots.test_page import Outline

pytest.importorskip("plotly")
NASTY = "</script><b>&"


def page(behavior: gs.Behavior, graph: gs.Graph | None = None) -> str:
    estimate = gs.measure(behavior, design=graph)
    pairs = pair_distances(behavior, graph, None, estimate)
    return measurement_page(pairs, summarise(estimate), source="a", command="b", seed=0)


def random_team(agents: int) -> gs.Behavior:
    team = gs.Deterministic(torch.randn(20, agents, 2, generator=torch.Generator().manual_seed(0)))
    return team.with_names([NASTY, *(f"agent {k}" for k in range(agents - 1))])


def test_the_data_are_the_distances_and_names_cannot_leave_it() -> None:
    team = random_team(6)
    text = page(team)
    [data] = re.findall(r'<script type="application/json" id="team">(.*?)</script>', text)
    held = json.loads(data)
    assert tuple(held["names"]) == team.names
    matrix = gs.pairwise(team).numpy()
    np.testing.assert_allclose(held["distances"], matrix[np.triu_indices(6, 1)], rtol=1e-3)
    assert [len(set(labels)) for labels in held["roles"]] == [1, 2, 3, 4, 5, 6]
    assert held["roles"][held["count"] - 1] == gs.roles(team).labels.tolist()
    sparse = page(team, gs.graphs.circulant(6, 2))
    [data] = re.findall(r'<script type="application/json" id="team">(.*?)</script>', sparse)
    assert json.loads(data)["edges"] == gs.graphs.circulant(6, 2).edges.tolist()


def test_without_plotly_the_page_is_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorer, "find_spec", lambda name: None)
    text = page(random_team(6))
    assert "<script" not in text
    assert Outline(text).open == []
    assert text.count("data:image/svg+xml;base64,") == 4
    assert len(text) < 1_000_000


def test_the_largest_live_page_is_within_six_megabytes() -> None:
    text = page(random_team(explorer.LIVE))
    assert 'id="heatmap"' in text
    assert len(text.encode()) < 6_000_000
    assert not explorer.is_live(explorer.LIVE + 1)


def test_rows_of_the_table_are_what_a_loop_gives() -> None:
    team = random_team(7)
    matrix = gs.pairwise(team).double().numpy()
    i, j = np.triu_indices(7, 1)
    roles = gs.roles(team)
    estimate = gs.measure(team)
    all_pairs = PairDistances(estimate, np.stack([i, j], 1), matrix[i, j], None, "all pairs", team.names, roles)
    table, order = explorer.agents_table(all_pairs)
    assert table.columns == ("agent", "role", "mean distance", "SND lost without", "acts most like")
    assert order == sorted(range(7), key=lambda agent: -matrix[agent].sum())
    for agent, row in zip(order, table.rows, strict=True):
        others = [other for other in range(7) if other != agent]
        near = min(others, key=lambda other: matrix[agent, other])
        lost = matrix.sum() / 42 - matrix[np.ix_(others, others)].sum() / 30
        expected = (
            team.names[agent],
            str(int(roles.labels[agent]) + 1),
            f"{matrix[agent].sum() / 6:.4f}",
            f"{lost:+.4f}",
        )
        assert row == (*expected, f"{team.names[near]} ({matrix[agent, near]:.4f})")
    two_pairs = PairDistances(estimate, np.array([[0, 1], [0, 2]]), np.array([3.0, 1.0]), None, "two", team.names)
    sparse, order = explorer.agents_table(two_pairs)
    assert sparse.rows[:3] == [
        ("agent 0", "3.0000", f"{NASTY} (3.0000)"),
        (NASTY, "2.0000", "agent 1 (1.0000)"),
        ("agent 1", "1.0000", f"{NASTY} (1.0000)"),
    ]
    assert sparse.rows[3][1:] == ("no pair", "")


def test_of_many_agents_the_table_lists_both_ends_and_the_page_says_so() -> None:
    team = gs.Deterministic(torch.arange(1000.0).square()[None, :, None])
    graph = gs.Graph(1000, torch.stack([torch.arange(900), torch.arange(1, 901)], 1))
    pairs = pair_distances(team, graph, None, gs.measure(team, design=graph))
    table, order = explorer.agents_table(pairs)
    assert order == [*range(900, 800, -1), *range(99, -1, -1)]  # 901 and more have no pair
    assert len(table.rows) == 200
    page = measurement_page(pairs, [], source="team.npz", command="", seed=0)
    assert "The table lists 200 of 1,000 agents" in page
    assert not explorer.describe_omission(500, 500)
