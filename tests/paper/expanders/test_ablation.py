"""The ablation at a size where every entry has an independent oracle."""

from __future__ import annotations

import json
import math

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from paper.expanders import Family, Row, ablation, degrees, initial_team, summarise
from paper.expanders.families import build
from paper.expanders.teams import mean_actions

SIZES, SEEDS = (12, 15), (0, 1)


@pytest.fixture(scope="module")
def teams() -> dict[int, gs.Behavior]:
    return {n: initial_team(n, observations=64) for n in SIZES}


@pytest.fixture(scope="module")
def rows(teams: dict[int, gs.Behavior]) -> list[Row]:
    return ablation(teams, sizes=SIZES, seeds=SEEDS)


def rebuilt(row: Row, teams: dict[int, gs.Behavior]) -> gs.Graph:
    return build(Family(row.family), row.n, row.degree, row.seed or 0, mean_actions(teams[row.n]))


def test_every_family_degree_and_seed_once(rows: list[Row]) -> None:
    keys = {(row.n, row.degree, row.family, row.seed) for row in rows}
    assert len(keys) == len(rows)
    pairs = sum(len(degrees(n)) for n in SIZES)
    assert len(rows) == pairs * (5 * len(SEEDS) + 2)
    json.dumps([row.to_dict() for row in rows], allow_nan=False)


def test_edge_counts_are_matched(rows: list[Row]) -> None:
    for row in rows:
        if row.family == Family.BERNOULLI.value:
            p = row.degree / (row.n - 1)
            pairs = math.comb(row.n, 2)
            assert abs(row.edges - p * pairs) <= 4 * math.sqrt(p * (1 - p) * pairs)
        elif row.family == Family.UNION.value:
            assert row.edges >= row.n * row.degree // 2
        else:
            assert row.edges == row.n * row.degree // 2


def test_values_by_a_loop_over_the_edges(rows: list[Row], teams: dict[int, gs.Behavior]) -> None:
    for row in rows:
        team = teams[row.n]
        assert isinstance(team, gs.Gaussian)
        loc = team.loc.double().numpy()  # scales are all the same, so W2 is the distance of the means
        gap = np.linalg.norm(loc[:, :, None] - loc[:, None], axis=-1).mean(axis=0)
        snd = gap.sum() / (row.n * (row.n - 1))
        mean = np.mean([gap[i, j] for i, j in rebuilt(row, teams).edges.tolist()])
        assert row.snd == pytest.approx(snd, rel=1e-5)
        assert row.ratio == pytest.approx(mean / snd, rel=1e-5)
        assert row.reciprocal == pytest.approx(snd / mean, rel=1e-5)
        assert row.difference == pytest.approx(abs(mean - snd), abs=1e-5 * snd)
        assert row.nuclear_norm == pytest.approx(np.linalg.norm(gap, "nuc"), rel=1e-4)


def test_graph_columns_by_networkx(rows: list[Row], teams: dict[int, gs.Behavior]) -> None:
    for row in rows:
        oracle = rebuilt(row, teams).to_networkx()
        assert row.connected == networkx.is_connected(oracle)
        values = np.sort(np.linalg.eigvalsh(networkx.to_numpy_array(oracle)))
        assert row.lambda_2 == pytest.approx(max(abs(values[0]), abs(values[-2])), abs=1e-6)
        if row.connected:
            crowd = networkx.edge_betweenness_centrality(oracle, normalized=False)
            assert row.forwarding_lower is not None
            assert row.forwarding_upper is not None
            assert row.forwarding_upper <= max(crowd.values()) * (1 + 1e-6)
            assert row.betweenness == pytest.approx(max(crowd.values()), rel=1e-6)
            hops = networkx.average_shortest_path_length(oracle) * math.comb(row.n, 2) / row.edges
            assert row.forwarding_lower >= hops * (1 - 1e-6)


def test_disconnected_graphs_have_no_forwarding_index(rows: list[Row]) -> None:
    alone = [row for row in rows if not row.connected]
    assert alone
    names = ("forwarding_lower", "forwarding_upper", "integral_lower", "integral_upper", "distortion_high")
    for row in alone:
        assert all(getattr(row, name) is None for name in names)


def test_every_bound_holds(rows: list[Row]) -> None:
    for row in rows:
        assert row.ratio is not None
        assert row.reciprocal is not None
        assert row.ratio_low - 1e-9 <= row.ratio <= row.ratio_high + 1e-9
        if row.connected:
            assert row.distortion_low is not None
            assert row.distortion_high is not None
            assert row.distortion_low <= row.reciprocal <= row.distortion_high
        if row.spectral is not None:
            assert row.spectral_low is not None
            assert row.spectral_high is not None
            assert row.spectral_low <= row.ratio <= row.spectral_high
            assert abs(row.ratio - 1) <= row.spectral
    regular = [row for row in rows if row.family == Family.REGULAR.value]
    assert all(row.spectral is not None for row in regular)


def test_the_predicted_spread_is_what_many_seeds_show(teams: dict[int, gs.Behavior]) -> None:
    drawn = (Family.REGULAR, Family.UNIFORM)
    found = ablation(teams, sizes=(15,), seeds=range(80), families=drawn, forwarding=False)
    for one in summarise(found):
        assert one.spread == pytest.approx(one.predicted, rel=0.25), one
        assert one.graphs == 80
    knn = ablation(teams, sizes=(15,), seeds=(0,), families=(Family.KNN,), forwarding=False)
    assert all(row.predicted is None and row.ratio is not None and row.ratio < 1 for row in knn)


def test_degrees_of_the_paper() -> None:
    assert [[used for _, used in degrees(n)] for n in (50, 100, 200, 500)] == [
        [6, 12, 23], [7, 14, 27], [8, 16, 31], [9, 18, 36],
    ]  # fmt: skip
    assert degrees(25) == [(5, 6), (10, 10), (19, 20)]  # 25 * 5 is odd
    assert all(n * used % 2 == 0 for n in range(6, 80) for _, used in degrees(n))


def test_bad_input() -> None:
    small = {12: initial_team(12, observations=4)}
    with pytest.raises(gs.InputError, match="behaviors"):
        ablation(small, sizes=(20,))
    with pytest.raises(gs.InputError, match="behaviors"):
        ablation(lambda n: small[12], sizes=(20,))
    with pytest.raises(gs.InputError, match="behaviors"):
        ablation({12: gs.Categorical(probs=torch.full((4, 12, 3), 1 / 3))}, sizes=(12,))
