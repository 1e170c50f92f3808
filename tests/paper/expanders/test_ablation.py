"""The ablation at a size where every entry has an independent oracle, and as an experiment at its smallest scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import networkx
import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds.relabelling import split_squares
from graphsnd.teams import GaussianHead, StackedMLP, StackedTeam
from paper.expanders.ablation import (
    ACTIONS,
    FEATURES,
    Plan,
    Subject,
    compare_team,
    initial_team,
    mean_actions,
    summarise_drawn,
    trained_team,
)
from paper.expanders.comparison import Data, Distances, Row, select
from paper.expanders.families import Family, build, degrees
from paper.expanders.numbers import summarise
from paper.rows import decode
from paper.runner import RESULTS, read_result
from paper.training import COMMITTED, STACKS, roll_out
from tests.paper.committed import assert_same_numbers

SIZES, SEEDS = (12, 15), (0, 1)


def compare_all(
    teams: dict[int, gs.Behavior],
    sizes: Sequence[int],
    seeds: Sequence[int],
    families: Sequence[Family] = tuple(Family),
    *,
    forwarding: bool = False,
) -> list[Row]:
    routed = dict.fromkeys(sizes, len(seeds)) if forwarding else {}
    plan = Plan(sizes, seeds, 64, routed, 10.0, ())
    rows = []
    for n in sizes:
        subject = Subject(n, False, False, None, {}, lambda n=n: teams[n])
        for degree in degrees(n):
            drawn = {f: summarise_drawn(plan, f, n, degree) for f in Family if f.drawn}
            rows += compare_team(plan, subject, degree, drawn)
    return [row for row in rows if row.family in families]


@pytest.fixture(scope="module")
def teams() -> dict[int, gs.Behavior]:
    return {n: initial_team(n, observations=64) for n in SIZES}


@pytest.fixture(scope="module")
def rows(teams: dict[int, gs.Behavior]) -> list[Row]:
    return compare_all(teams, SIZES, SEEDS, forwarding=True)


def rebuilt(row: Row, teams: dict[int, gs.Behavior]) -> gs.Graph:
    return build(Family(row.family), row.n, row.degree, row.seed or 0, mean_actions(teams[row.n]))


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


def test_graph_columns_by_networkx(rows: list[Row], teams: dict[int, gs.Behavior]) -> None:
    for row in rows:
        oracle = rebuilt(row, teams).to_networkx()
        assert row.connected == networkx.is_connected(oracle)
        if row.connected:
            assert row.integral_lower is not None
            hops = networkx.average_shortest_path_length(oracle) * math.comb(row.n, 2) / row.edges
            assert row.integral_lower >= hops * (1 - 1e-6)


def test_every_bound_holds(rows: list[Row]) -> None:
    for row in rows:
        assert row.ratio is not None
        assert row.reciprocal is not None
        if row.connected:
            assert row.distortion_low is not None
            assert row.distortion_high is not None
            assert row.distortion_low <= row.reciprocal <= row.distortion_high
        if row.spectral is not None:
            assert abs(row.ratio - 1) <= row.spectral
    regular = [row for row in rows if row.family == Family.REGULAR.value]
    assert all(row.spectral is not None for row in regular)


def test_the_predicted_spread_is_what_many_seeds_show(teams: dict[int, gs.Behavior]) -> None:
    drawn = (Family.REGULAR, Family.UNIFORM)
    rows = compare_all(teams, (15,), range(80), drawn)
    for family in drawn:
        for degree in degrees(15):
            mine = select(rows, family, degree=degree)
            spread = np.sqrt(np.mean([(row.ratio - 1) ** 2 for row in mine if row.ratio is not None]))
            predicted = np.sqrt(np.mean([row.predicted**2 for row in mine if row.predicted is not None]))
            assert spread == pytest.approx(predicted, rel=0.25)
            assert len(mine) == 80
    knn = compare_all(teams, (15,), (0,), (Family.KNN,))
    assert all(row.predicted is None and row.ratio is not None and row.ratio < 1 for row in knn)


def saved(folder: Path, agents: int) -> StackedTeam:
    generator = torch.Generator().manual_seed(agents)
    network = StackedMLP.create((agents,), (FEATURES, 8, ACTIONS), generator=generator)
    team = StackedTeam(network, GaussianHead(ACTIONS, batch=(agents,)))
    team.save(folder / "seed-0")
    return team


def test_a_trained_team_on_what_it_saw(tmp_path: Path) -> None:
    team = saved(tmp_path, 5)
    behavior = trained_team(tmp_path, 0, observations=4096)
    assert isinstance(behavior, gs.Gaussian)
    assert (behavior.agents, behavior.observations) == (5, 4096)
    # Agent 0's own observations, which an earlier version took for those of all, are another sample.
    task = replace(STACKS[COMMITTED], agents=5)
    seen = roll_out(task, team, 0)
    with torch.no_grad():
        of_all, of_first = team.evaluate(seen.flatten(0, -2)), team.evaluate(seen[:, :, 0].flatten(0, 1))
    assert float(gs.snd(behavior)) == pytest.approx(float(gs.snd(of_all)), rel=0.02)
    assert abs(float(gs.snd(of_first)) / float(gs.snd(of_all)) - 1) > 0.001


def test_own_observations_make_distances_sums_of_effects() -> None:
    shared, own = (Distances.of(gs.pairwise(initial_team(30, observations=256, own=own))) for own in (False, True))
    assert own.variance**0.5 / own.snd < shared.variance**0.5 / shared.snd
    effects, rest = ([float(split_squares(one.matrix)[part]) for one in (shared, own)] for part in (0, 1))
    assert effects[1] / rest[1] > effects[0] / rest[0]


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_committed_data_give_the_committed_numbers(scale: str) -> None:
    result = read_result(RESULTS / "expanders" / f"{scale}.json")
    data = decode(Data, result.data)
    # Published rows have seven digits, the numbers come from all of them.
    assert_same_numbers(summarise(data), result.numbers, rel=1e-4)
