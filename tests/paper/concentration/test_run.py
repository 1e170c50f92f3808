"""The concentration experiment against loops, enumerations, power laws and populations that violate on purpose."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphsnd as gs
from paper.cells import Cells
from paper.concentration import run as concentration
from paper.concentration.numbers import numbers, slope
from paper.concentration.run import (
    DELTA,
    EXPERIMENT,
    SIZES,
    chernoff_ratio,
    enough,
    summarise,
    unconditional,
)
from paper.expanders import initial_team
from paper.experiment import Outcome, Scale
from paper.judging.claims import load_claims

DISTANCES = torch.tensor([0.2, 1.0, 0.4, 0.0, 0.3, 0.7], dtype=torch.float64)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(tmp_path_factory.mktemp("cells")))


def all_errors(m: int) -> torch.Tensor:
    """The errors of every draw of m of the six distances."""
    means = [np.mean(picked) for picked in itertools.combinations(DISTANCES.tolist(), m)]
    return torch.tensor(means, dtype=torch.float64) - DISTANCES.mean()


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_exact_spread_by_enumeration(m: int) -> None:
    cell = summarise(all_errors(m), DISTANCES, m)
    assert cell["rms"] == pytest.approx(cell["exact_sd"])


def test_radii_and_violations_by_hand() -> None:
    errors = torch.tensor([0.0, 0.5, -0.86, 0.87, -1.1], dtype=torch.float64)
    cell = summarise(errors, DISTANCES, 2)
    assert cell["hoeffding"] == pytest.approx(math.sqrt(math.log(20) / 4))  # 0.8654
    assert cell["serfling"] == pytest.approx(math.sqrt(math.log(20) / 4 * 5 / 6))  # 0.7900
    assert (cell["hoeffding_violations"], cell["serfling_violations"]) == (2, 3)
    assert cell["largest"] == pytest.approx(1.1)


def test_the_percentile_and_its_interval() -> None:
    errors = torch.arange(2000, dtype=torch.float64) / 2000
    cell = summarise(errors[torch.randperm(2000, generator=torch.Generator().manual_seed(5))], DISTANCES, 3)
    assert cell["quantile"] == pytest.approx(0.95, abs=1e-3)
    half = 1.96 * math.sqrt(0.95 * 0.05 / 2000)
    assert cell["quantile_low"] == pytest.approx(0.95 - half, abs=2e-3)
    assert cell["quantile_high"] == pytest.approx(0.95 + half, abs=2e-3)


def power_law(exponent: float, factor: float = 1.0) -> dict[str, Any]:
    cells = []
    for m in SIZES:
        middle = factor * m**exponent
        cells.append({"m": m, "quantile": middle, "quantile_low": middle * 0.9, "quantile_high": middle * 1.1})
    return {"cells": cells, "distances": [0.0] * 120}


def test_slopes_of_power_laws() -> None:
    value, error = slope(power_law(-0.5, 3.0))
    assert value == pytest.approx(-0.5)
    x = np.log(SIZES)
    spread = math.log(1.1 / 0.9) / (2 * 1.96) / math.sqrt(((x - x.mean()) ** 2).sum())
    assert error == pytest.approx(spread)
    team = power_law(-0.5)
    for cell in team["cells"]:
        for key in ("quantile", "quantile_low", "quantile_high"):
            cell[key] *= math.sqrt(1 - cell["m"] / 120)
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
    found = enough(12, 32)
    assert found["edges"] == wanted
    assert found["share"] == pytest.approx(wanted / 66)


def test_bernoulli_graphs_beyond_the_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concentration, "AGENTS", 4)
    found = unconditional(DISTANCES, 0.3, 400, torch.Generator().manual_seed(0))
    assert found["radius"] == pytest.approx(math.sqrt(math.log(20) / 1.8))
    assert found["allowed"] == pytest.approx(min(1.0, 0.1 + math.exp(-1.8 / 8)))
    assert found["empty"] == pytest.approx(0.7**6, abs=0.06)
    assert found["beyond"] == 0.0
    # With a radius that is far too small every graph with an edge is beyond it, and only those.
    monkeypatch.setattr(concentration.bounds, "bernoulli", lambda *given: gs.bounds.BernoulliBound(-1.0, 0.0))
    again = unconditional(DISTANCES, 0.3, 400, torch.Generator().manual_seed(0))
    assert again["beyond"] == pytest.approx(1 - again["empty"])


def test_the_smoke_run_holds_together(outcome: Outcome) -> None:
    found = outcome.numbers
    assert found["direct_difference"].value < 1e-14
    assert found["hoeffding_violation"].value == found["serfling_violation"].value == 0
    assert 0.01 < found["hoeffding_violation"].high < 0.02  # type: ignore[operator]
    assert found["serfling_over_hoeffding"].value == pytest.approx(math.sqrt(1 - 5 / 120))
    assert found["serfling_over_hoeffding"].low == pytest.approx(math.sqrt(1 - 95 / 120))
    assert found["serfling_gap_growth"].value > 0
    for team in outcome.data["teams"]:
        assert team["snd"] == pytest.approx(np.mean(team["distances"]))
        for cell in team["cells"]:
            assert cell["rms"] == pytest.approx(cell["exact_sd"], rel=0.25)


def test_every_claim_has_its_number(outcome: Outcome) -> None:
    pytest.importorskip("yaml")
    claims = [claim for claim in load_claims() if claim.experiment == "concentration"]
    assert {claim.number for claim in claims if Scale.SMOKE in claim.scales} <= outcome.numbers.keys()
    data = {**outcome.data, "enough": {"share": 0.01}}
    assert {claim.number for claim in claims} <= numbers(data).keys()


def test_violations_are_counted(outcome: Outcome) -> None:
    data = json.loads(json.dumps(outcome.data))
    data["teams"][1]["cells"][2]["hoeffding_violations"] = 50
    found = numbers(data)
    assert found["hoeffding_violation"].value == 0.25
    assert found["serfling_violation"].value == 0


def test_the_figure_has_both_checkpoints(outcome: Outcome, tmp_path: Path) -> None:
    figure = EXPERIMENT.figure(json.loads(json.dumps(outcome.data)))
    assert [ax.get_xscale() for ax in figure.axes] == ["log", "log"]
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
