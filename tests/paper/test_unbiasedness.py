"""The Horvitz-Thompson experiment against loops, enumerations and a bias put in on purpose."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from scipy import stats

import graphsnd as gs
from graphsnd.rl.streams import hashed
from paper import unbiasedness
from paper.experiment import Outcome, Scale
from paper.propositions import random_team
from paper.rows import decode
from paper.runner import Cells
from paper.shared.draws import indicators
from paper.unbiasedness import (
    EXPERIMENT,
    PROBABILITIES,
    Cell,
    Data,
    cancellation_error,
    describe_estimates,
    enumerate_bias,
    estimate,
    summarise,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells") / "cells"))


def test_estimates_of_many_graphs_are_those_of_the_metric() -> None:
    team, source = random_team(5, generator()), generator(1)
    drawn = [gs.graphs.bernoulli(5, 0.3, seed=source) for _ in range(30)]
    distances = gs.pairwise(team, graph=gs.graphs.complete(5))
    values = estimate(indicators(drawn), distances, 0.3)
    assert values.tolist() == pytest.approx([float(gs.horvitz_thompson(team, graph)) for graph in drawn], abs=1e-14)


def test_a_cell_against_a_loop() -> None:
    distances = torch.tensor([0.2, 1.0, 0.4], dtype=torch.float64)
    chosen = (torch.rand(500, 3, generator=generator(3)) < 0.25).double()
    mean, se, z, ratio, _ = describe_estimates(8 / 15, distances, chosen, 0.25)
    values = np.asarray([sum(d for d, z in zip(distances.tolist(), row, strict=True) if z) / 0.75 for row in chosen])
    assert mean == pytest.approx(values.mean())
    assert se == pytest.approx(values.std(ddof=1) / math.sqrt(500))
    assert z == pytest.approx((values.mean() - 8 / 15) / se)
    assert ratio == pytest.approx(values.var(ddof=1) / (3 * (0.2**2 + 1 + 0.4**2) / 9))


@pytest.mark.parametrize("p", PROBABILITIES)
def test_the_exact_variance_by_enumeration(p: float) -> None:
    distances = torch.tensor([0.2, 1.0, 0.4, 0.0, 0.3, 0.7], dtype=torch.float64)
    mean = square = 0.0
    for picks in itertools.product((0, 1), repeat=6):
        chance = p ** sum(picks) * (1 - p) ** (6 - sum(picks))
        value = float(np.dot(picks, distances)) / (6 * p)
        mean, square = mean + chance * value, square + chance * value**2
    chosen = torch.eye(6, dtype=torch.float64)
    *_, ratio, _ = describe_estimates(float(distances.mean()), distances, chosen, p)
    assert ratio == pytest.approx(float(estimate(chosen, distances, p).var(correction=1)) / (square - mean**2))


def joint_p(cells: list[Cell]) -> float:
    """How likely deviations this large are without a bias: cells are independent, so that squares add up."""
    return float(stats.chi2.sf(sum(cell.z**2 for cell in cells), len(cells)))


def test_the_smoke_run_holds_together(outcome: Outcome) -> None:
    numbers, teams = outcome.numbers, outcome.data.teams
    cells = [cell for team in teams for cell in team.cells]
    assert numbers["enumerated_bias"].value < 1e-12
    assert numbers["cancellation_error"].value < 1e-12
    assert joint_p(cells) > 1e-4
    assert numbers["variance_times_p_ratio"].value == pytest.approx(0.25 / 0.9, rel=0.35)
    for team in teams:
        assert team.snd == pytest.approx(np.mean(team.distances))
        assert [cell.p for cell in team.cells] == list(PROBABILITIES)


def test_a_bias_is_found(outcome: Outcome) -> None:
    stored = json.loads(json.dumps(outcome.data, default=asdict))
    for cell in stored["teams"][1]["cells"]:
        cell["z"] += 4.0
    biased = decode(Data, stored)
    assert summarise(biased)["covering_cells"].value <= 4
    assert summarise(biased)["largest_z"].value > 2.73
    assert joint_p([cell for team in biased.teams for cell in team.cells]) < 1e-6


def test_enumeration_notices_a_wrong_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    team = random_team(6, generator(2))
    assert enumerate_bias(team) < 1e-12
    # The sample mean with 0 for a graph without edges, the paper's convention, is not unbiased.
    monkeypatch.setattr("paper.unbiasedness.horvitz_thompson", gs.graph_snd)
    assert enumerate_bias(team) == pytest.approx(0.9**6)


def test_cancellation_is_measured_on_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    team, graph = random_team(6, generator(4)), gs.graphs.bernoulli(6, 0.5, seed=1)
    assert cancellation_error(team, graph) < 1e-14
    monkeypatch.setattr("paper.unbiasedness.graph_snd", lambda *given: gs.graph_snd(*given) + 0.5)
    assert cancellation_error(team, graph) == pytest.approx(0.5)


def test_synthetic_teams_by_independent_distances() -> None:
    rows = unbiasedness.measure_synthetic(400)
    assert [row.distance for row in rows] == ["total-variation", "hellinger", "wasserstein"]
    stream = hashed(unbiasedness.SYNTHETIC_SEED)
    shape = (unbiasedness.OBSERVATIONS, unbiasedness.AGENTS, unbiasedness.CATEGORIES)
    logits = torch.randn(shape, generator=stream, dtype=torch.float64)
    torch.randn(shape, generator=stream, dtype=torch.float64)
    shift = torch.randn(shape[1:], generator=stream, dtype=torch.float64)
    probs = (logits + shift).softmax(-1).numpy()
    pairs = list(itertools.combinations(range(unbiasedness.AGENTS), 2))
    tv = [0.5 * np.abs(probs[:, i] - probs[:, j]).sum(-1).mean() for i, j in pairs]
    hellinger = [np.sqrt(0.5 * ((probs[:, i] ** 0.5 - probs[:, j] ** 0.5) ** 2).sum(-1)).mean() for i, j in pairs]
    assert [row.snd for row in rows[:2]] == pytest.approx([np.mean(tv), np.mean(hellinger)], rel=1e-6)
    assert all(len(row.z) == 4 and max(map(abs, row.z)) < 4 for row in rows)
    assert all(row.violations <= 0.1 for row in rows)
