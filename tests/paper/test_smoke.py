"""Every experiment at smoke scale, as the command line runs it, and the claims it must be able to decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from paper.cli import app
from paper.experiment import NAMES, Scale
from paper.judging.claims import Kind, load_claims
from paper.judging.verdicts import Verdict, judge_all
from paper.runner import read_result, read_results

# Left out by the experiment where a short run cannot tell; elsewhere a missing number is a misspelt name.
COARSE = {"dico50-identical-rollouts"}
COMMITTED = Path(__file__).parents[2] / "paper" / "results"


@pytest.mark.parametrize("name", NAMES)
def test_smoke(name: str, tmp_path: Path) -> None:
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    folders = ["--out", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    done = runner.invoke(app, ["run", name, "--scale", "smoke", *folders], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = read_result(tmp_path / "results" / name / "smoke.json")
    assert (result.experiment, result.scale) == (name, Scale.SMOKE)
    assert (tmp_path / "results" / name / "smoke.png").stat().st_size > 4_000
    mine = [claim for claim in load_claims() if claim.experiment == name and Scale.SMOKE in claim.scales]
    judged = judge_all(mine, tmp_path / "results")
    assert {one.claim.id for one in judged if one.verdict is Verdict.NOT_MEASURED} <= COARSE
    # Only a bug makes a theorem fail, and smoke scale is for bugs.
    theorems = [one for one in judged if one.claim.kind is Kind.THEOREM]
    assert [one.claim.id for one in theorems if one.verdict is Verdict.NOT_CONFIRMED] == []


@pytest.mark.parametrize("name", NAMES)
def test_committed_results_decide_every_claim(name: str) -> None:
    mine = [claim for claim in load_claims() if claim.experiment == name]
    found = read_results(COMMITTED, name)
    assert {Scale.LAPTOP, Scale.PAPER} <= set(found)
    judged = judge_all(mine, COMMITTED)
    missing = {one.claim.id for one in judged if one.verdict is Verdict.NOT_MEASURED}
    assert missing <= {"dico50-metric-milliseconds"}  # for a GPU
    for result in found.values():
        assert (result.experiment, result.provenance["commit"] is None) == (name, False)
