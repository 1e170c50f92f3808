from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import graphsnd as gs
from graphsnd.plots import example_team


def test_a_small_demo_writes_its_page_and_a_team_that_measure_reads(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "demo"
    result = run("demo", "--out", out, "--agents", 16)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == {"index.html", "team.npz"}
    assert "2-Wasserstein of Gaussians" in result.stdout
    page = (out / "index.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in page
    assert "medic-" in page
    [command] = [line.split()[3:] for line in result.stdout.splitlines() if line.startswith("Try next: graphsnd ")]
    measured = json.loads(run(*command, "--json").stdout)
    snd = gs.snd(example_team(16).behavior)
    assert measured["interval"][0] <= snd <= measured["interval"][1]
