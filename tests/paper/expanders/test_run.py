"""The experiment at its smallest scale: all of it once, then from its cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper.cells import Cells
from paper.expanders import EXPERIMENT, Family, ablation, initial_team
from paper.expanders.run import PLANS, TRAINED
from paper.experiment import Outcome, Scale
from paper.judging.claims import load_claims
from paper.store import RESULTS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("expanders")


@pytest.fixture(scope="module")
def outcome(folder: Path) -> Outcome:
    return EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=RESULTS))


def test_numbers_of_the_claims_that_smoke_may_decide(outcome: Outcome) -> None:
    claims = [claim for claim in load_claims() if claim.experiment == "expanders" and Scale.SMOKE in claim.scales]
    assert {claim.number for claim in claims} <= set(outcome.numbers)
    for name in ("distortion_violations", "spectral_violations", "probabilistic_violations"):
        assert outcome.numbers[name].value == 0


def test_finished_cells_are_not_repeated(folder: Path, outcome: Outcome) -> None:
    begun: list[str] = []
    again = EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=RESULTS, step=begun.append))
    assert begun == []
    assert again == outcome


def test_rows_are_those_of_the_ablation(outcome: Outcome) -> None:
    plan = PLANS[Scale.SMOKE]
    behaviors = {n: initial_team(n, observations=plan.observations) for n in plan.sizes}
    expected = ablation(behaviors, sizes=plan.sizes, seeds=plan.seeds, forwarding=False)
    found = [dict(zip(outcome.data["columns"], one, strict=True)) for one in outcome.data["teams"]["initial"]]
    assert len(found) == len(expected)
    for one, row in zip(found, expected, strict=True):
        assert (one["family"], one["degree"], one["seed"], one["edges"]) == (
            row.family,
            row.degree,
            row.seed,
            row.edges,
        )
        assert one["ratio"] == pytest.approx(row.ratio, rel=1e-6)
    routed = [one for one in found if one["connected"] and one["seed"] in (0, None)]
    assert all(one["integral_lower"] <= one["integral_upper"] for one in routed)
    assert all(one["integral_upper"] is None for one in found if one["seed"] == 1)  # smoke routes one seed


@pytest.mark.skipif(not (RESULTS / TRAINED).is_dir(), reason="needs the committed training run")
def test_trained_teams_are_read(outcome: Outcome) -> None:
    assert outcome.sources == (f"results/{TRAINED}",)
    columns = outcome.data["columns"]
    snd = {label: rows[0][columns.index("snd")] for label, rows in outcome.data["teams"].items()}
    assert snd["trained-0"] > 10 * snd["initial"]


def test_without_a_trained_team(tmp_path: Path, folder: Path, outcome: Outcome) -> None:
    found = EXPERIMENT.run(Scale.SMOKE, Cells(folder, results=tmp_path))
    assert set(found.data["teams"]) == {"initial", "initial-own"}
    assert found.sources == ()
    EXPERIMENT.figure(json.loads(json.dumps(found.data)))


def test_the_figure(outcome: Outcome, tmp_path: Path) -> None:
    from graphsnd.plots import save_png

    figure = EXPERIMENT.figure(json.loads(json.dumps(outcome.data)))
    assert len(figure.axes) == 4
    assert all(ax.get_xlabel() and ax.get_ylabel() and ax.get_title(loc="left") for ax in figure.axes)
    assert save_png(figure, tmp_path / "one.png", dpi=40).stat().st_size > 5_000
    shown = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"random regular", "Bernoulli", "uniform"} <= shown


def test_every_family_has_a_look_or_is_an_extra() -> None:
    from paper.expanders.panels import LOOKS

    assert set(Family) - set(LOOKS) == {Family.CIRCULANT, Family.BEST}
