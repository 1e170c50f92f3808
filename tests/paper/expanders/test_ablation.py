"""The ablation at a size where every entry has an independent oracle, and as an experiment at its smallest scale."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
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
    EXPERIMENT,
    FEATURES,
    PLANS,
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
from paper.experiment import Outcome, Scale
from paper.judging.claims import load_claims
from paper.rows import decode
from paper.runner import RESULTS, Cells, read_result
from paper.training import COMMITTED, STACKS, roll_out
from tests.paper.committed import assert_same_numbers
from tests.paper.expanders.test_figure import check_figure

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


def test_every_family_degree_and_seed_once(rows: list[Row]) -> None:
    keys = {(row.n, row.degree, row.family, row.seed) for row in rows}
    assert len(keys) == len(rows)
    pairs = sum(len(degrees(n)) for n in SIZES)
    assert len(rows) == pairs * (3 * len(SEEDS) + 2)


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


def test_disconnected_graphs_have_no_forwarding_index(rows: list[Row]) -> None:
    alone = [row for row in rows if not row.connected]
    assert alone
    names = ("integral_lower", "integral_upper", "distortion_low", "distortion_high")
    for row in alone:
        assert all(getattr(row, name) is None for name in names)


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


def test_the_team_is_the_same_every_time_and_all_agents_see_the_same() -> None:
    one, two = initial_team(6, observations=32), initial_team(6, observations=32)
    assert isinstance(one, gs.Gaussian)
    assert isinstance(two, gs.Gaussian)
    assert torch.equal(one.loc, two.loc)
    assert one.loc.shape == (32, 6, 2)
    assert float(one.loc.abs().max()) < 0.2  # a head of gain 0.01
    assert torch.allclose(one.scale, torch.tensor(math.exp(-0.5)))


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


def test_mean_actions() -> None:
    actions = torch.arange(12.0).reshape(2, 3, 2)
    assert mean_actions(gs.Gaussian(actions, torch.ones(2))).tolist() == [[3, 4], [5, 6], [7, 8]]
    with pytest.raises(gs.InputError, match="of Gaussian policies"):
        mean_actions(gs.Categorical(probs=torch.full((4, 3, 3), 1 / 3)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expanders")


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=RESULTS))


def test_numbers_of_the_claims_that_smoke_may_decide(outcome: Outcome) -> None:
    claims = [claim for claim in load_claims() if claim.experiment == "expanders" and Scale.SMOKE in claim.scales]
    assert all(outcome.numbers[claim.number] is not None for claim in claims)
    for name in ("distortion_violations", "spectral_violations", "probabilistic_violations"):
        assert outcome.numbers[name].value == 0


def test_finished_cells_are_not_repeated(folder: Path, outcome: Outcome) -> None:
    begun: list[str] = []
    again = EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=RESULTS, step=begun.append))
    assert begun == []
    assert again == outcome


def test_rows_are_those_of_the_teams(outcome: Outcome) -> None:
    plan = PLANS[Scale.SMOKE]
    behaviors = {n: initial_team(n, observations=plan.observations) for n in plan.sizes}
    expected = compare_all(behaviors, plan.sizes, plan.seeds)
    rows = outcome.data.teams[0].rows
    assert len(rows) == len(expected)
    for one, row in zip(rows, expected, strict=True):
        assert (one.family, one.degree, one.seed, one.edges) == (row.family, row.degree, row.seed, row.edges)
        assert one.ratio == pytest.approx(row.ratio, rel=1e-6)
    routed = [row for row in rows if row.connected and row.seed in (0, None)]
    assert all(row.integral_lower <= row.integral_upper for row in routed)
    assert all(row.integral_upper is None for row in rows if row.seed == 1)  # smoke routes one seed


@pytest.mark.skipif(not (RESULTS / COMMITTED).is_dir(), reason="needs the committed training run")
def test_trained_teams_are_read(outcome: Outcome) -> None:
    assert outcome.sources == (f"results/{COMMITTED}",)
    snd = {(team.trained, team.own, team.seed): team.rows[0].snd for team in outcome.data.teams}
    assert snd[True, False, 0] > 10 * snd[False, False, None]


def test_without_a_trained_team(tmp_path: Path, folder: Path, outcome: Outcome) -> None:
    untrained = EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=tmp_path))
    assert [(team.trained, team.own) for team in untrained.data.teams] == [(False, False), (False, True)]
    assert untrained.sources == ()
    EXPERIMENT.figure(untrained.data)


def test_the_figure_of_the_smallest_run(outcome: Outcome) -> None:
    check_figure(decode(Data, json.loads(json.dumps(outcome.data, default=asdict))))


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_committed_data_give_the_committed_numbers(scale: str) -> None:
    result = read_result(RESULTS / "expanders" / f"{scale}.json")
    data = decode(Data, result.data)
    # Published rows have seven digits, the numbers come from all of them.
    assert_same_numbers(summarise(data), result.numbers, rel=1e-4)
