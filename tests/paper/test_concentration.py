"""The concentration experiment against loops, enumerations, power laws and populations that violate on purpose."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch

import graphsnd as gs
from graphsnd.bounds.concentration import BernoulliBound
from paper import concentration
from paper.concentration import (
    DELTA,
    EXPERIMENT,
    SIZES,
    Cell,
    Data,
    Team,
    chernoff_ratio,
    describe_bernoulli,
    describe_errors,
    enough_edges_share,
    slope,
    summarise,
)
from paper.expanders import initial_team
from paper.experiment import Outcome, Scale
from paper.rows import decode
from paper.runner import Cells

DISTANCES = torch.tensor([0.2, 1.0, 0.4, 0.0, 0.3, 0.7], dtype=torch.float64)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells") / "cells"))


def all_errors(m: int) -> torch.Tensor:
    """The errors of every draw of m of the six distances."""
    means = [np.mean(picked) for picked in itertools.combinations(DISTANCES.tolist(), m)]
    return torch.tensor(means, dtype=torch.float64) - DISTANCES.mean()


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_exact_spread_by_enumeration(m: int) -> None:
    exact = float(DISTANCES.std(correction=1)) * math.sqrt((1 - m / 6) / m)  # the curve of the figure
    assert float(all_errors(m).square().mean().sqrt()) == pytest.approx(exact)


def test_radii_and_violations_by_hand() -> None:
    errors = torch.tensor([0.0, 0.5, -0.86, 0.87, -1.1], dtype=torch.float64)
    cell = describe_errors(errors, DISTANCES, 2)
    assert cell.hoeffding == pytest.approx(math.sqrt(math.log(20) / 4))  # 0.8654
    assert cell.serfling == pytest.approx(math.sqrt(math.log(20) / 4 * 5 / 6))  # 0.7900
    assert (cell.hoeffding_violations, cell.serfling_violations) == (2, 3)
    assert cell.largest == pytest.approx(1.1)


def test_the_percentile_and_its_interval() -> None:
    errors = torch.arange(2000, dtype=torch.float64) / 2000
    cell = describe_errors(errors[torch.randperm(2000, generator=torch.Generator().manual_seed(5))], DISTANCES, 3)
    assert cell.quantile == pytest.approx(0.95, abs=1e-3)
    half = 1.96 * math.sqrt(0.95 * 0.05 / 2000)
    assert cell.quantile_low == pytest.approx(0.95 - half, abs=2e-3)
    assert cell.quantile_high == pytest.approx(0.95 + half, abs=2e-3)


def power_law(exponent: float, factor: float = 1.0, *, finite: bool = False) -> Team:
    cells = []
    for m in SIZES:
        middle = factor * m**exponent * (math.sqrt(1 - m / 120) if finite else 1.0)
        cells.append(Cell(m, 0, 0, middle, middle * 0.9, middle * 1.1, 0, 0, 0))
    return Team(0, 0.0, [0.0] * 120, cells, [])


def test_slopes_of_power_laws() -> None:
    value, error = slope(power_law(-0.5, 3.0))
    assert value == pytest.approx(-0.5)
    x = np.log(SIZES)
    spread = math.log(1.1 / 0.9) / (2 * 1.96) / math.sqrt(((x - x.mean()) ** 2).sum())
    assert error == pytest.approx(spread)
    team = power_law(-0.5, finite=True)
    assert slope(team)[0] == pytest.approx(-0.74, abs=0.02)
    assert slope(team, adjusted=True)[0] == pytest.approx(-0.5)


def test_chernoff_by_summing_binomial_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concentration, "CHERNOFF_AGENTS", (4, 6))
    monkeypatch.setattr(concentration, "CHERNOFF_PROBABILITIES", (0.1, 0.5, 0.9))
    ratios = []
    for pairs, p in itertools.product((6, 15), (0.1, 0.5, 0.9)):
        below = [k for k in range(pairs + 1) if k < pairs * p / 2]
        chance = sum(math.comb(pairs, k) * p**k * (1 - p) ** (pairs - k) for k in below)
        ratios.append(chance / math.exp(-pairs * p / 8))
    assert chernoff_ratio() == pytest.approx(max(ratios))


def test_enough_edges_by_the_formula() -> None:
    matrix = gs.pairwise(initial_team(12, observations=32)).double().numpy()
    mean = matrix[np.triu_indices(12, 1)].mean()
    wanted = math.ceil((matrix.max() / (0.1 * mean)) ** 2 * math.log(2 / DELTA) / 2)
    assert enough_edges_share(12, 32) == pytest.approx(wanted / 66)


def test_bernoulli_graphs_beyond_the_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concentration, "AGENTS", 4)
    bound = describe_bernoulli(DISTANCES, 0.3, 400, torch.Generator().manual_seed(0))
    assert bound.allowed == pytest.approx(min(1.0, 0.1 + math.exp(-1.8 / 8)))
    assert bound.beyond == 0.0
    # With a radius that is far too small every graph with an edge is beyond it, and only those.
    monkeypatch.setattr(concentration.bounds, "bernoulli", lambda *given: BernoulliBound(-1.0, 0.0))
    again = describe_bernoulli(DISTANCES, 0.3, 400, torch.Generator().manual_seed(0))
    assert again.beyond == pytest.approx(1 - 0.7**6, abs=0.06)


def test_the_smoke_run_holds_together(outcome: Outcome) -> None:
    numbers = outcome.numbers
    assert numbers["hoeffding_violation"].value == numbers["serfling_violation"].value == 0
    assert 0.01 < numbers["hoeffding_violation"].high < 0.02  # type: ignore[operator]
    assert numbers["serfling_over_hoeffding"].value == pytest.approx(math.sqrt(1 - 5 / 120))
    assert numbers["serfling_over_hoeffding"].low == pytest.approx(math.sqrt(1 - 95 / 120))
    assert numbers["serfling_gap_growth"].value > 0
    for team in outcome.data.teams:
        assert team.snd == pytest.approx(np.mean(team.distances))


def test_violations_are_counted(outcome: Outcome) -> None:
    stored = json.loads(json.dumps(outcome.data, default=asdict))
    stored["teams"][1]["cells"][2]["hoeffding_violations"] = 50
    numbers = summarise(decode(Data, stored))
    assert numbers["hoeffding_violation"].value == 0.25
    assert numbers["serfling_violation"].value == 0
